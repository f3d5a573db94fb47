"""``crash_loop``: a process is killed each time it has used a tool, before its answer is stored.

It uses a throw-away data folder with processes of its own under a real supervisor.
"""

from collections.abc import Mapping
from typing import Any

from django.conf import settings

from engine.runtime.processes import GAVE_UP_CODE
from nanovm_core.supervision import ONE_FOR_ALL, ONE_FOR_ONE, REST_FOR_ONE
from sabotage.gallery.kit import fixture
from sabotage.gallery.kit.scenario import Scenario
from sabotage.kit import throwaway
from sabotage.kit.code_locations import named_in
from sabotage.kit.evidence import Evidence
from sabotage.kit.injector import Assessment, Fired, InjectionError, Injector, Param, Target
from sabotage.kit.injector import choice as one_of

NAME = "crash_loop"
FOLDER, WHAT = "crashes", "crash loop"
SECONDS_MAX = 100.0  # fifteen on an idle machine
# Each is a step in which a process uses a tool: the payer's first, then the reader's.
STEPS = ("charge", "seal", "vault", "receive", "extract", "propose")
# simple_one_for_one is for instances of one program: reader and payer are two.
STRATEGIES = (ONE_FOR_ONE, ONE_FOR_ALL, REST_FOR_ONE)
TIMES_MAX = 6  # one more than a supervisor restarts
SUPERVISION, GATEWAY = "nanovm_core/supervision.py", "pipeline/steps/charge/gateway.py"
LOST = "The run has not ended, nobody will go on with it, and no alert says so."
DAMAGED = "The records that it left do not agree with each other."


def inject(target: Target) -> Fired:
    """Have the processes of a folder of their own killed, and read what came of it."""
    asked = {**target.values, "moment": "after", "through": throwaway.THROUGH}
    program = throwaway.command("sabotage.crashes")
    try:
        with throwaway.folder_in(settings.NANOVM_DATA / FOLDER, WHAT) as folder:
            facts = throwaway.outcome_of(program, folder, asked, SECONDS_MAX, WHAT)
    except throwaway.NoOutcomeError as error:
        raise InjectionError(str(error)) from error
    return Fired(facts=facts)


def assess(_found: Evidence, fired: Fired) -> Assessment:
    """IGNORED where the run was paid once all the same, BLOCKED where the supervisor gave up."""
    told: Mapping[str, Any] = fired.facts
    gave_up = any(each["rule"] == GAVE_UP_CODE for each in told["alerts"])
    wrong = {
        LOST: told["run_ended"] != "paid" and not gave_up,
        DAMAGED: told["recomputed"]["exit_status"] != 0,
    }
    got_out = (*told["breaches"], *(text for text, true in wrong.items() if true))
    rule = GAVE_UP_CODE if gave_up and not got_out else ""
    at_charge = told["killed_at"] == "charge"
    settled = (GATEWAY, "pay", "_find") if at_charge else (SUPERVISION, "decide", "_starts")
    return Assessment(
        verdict="ACCEPTED" if got_out else "BLOCKED" if rule else "IGNORED",
        rule=rule,
        where="" if got_out or rule else named_in(*settled),
        facts={"breaches": []},  # they are told with this attack's own
        breaches=got_out,
    )


SCENARIO = Scenario(
    injector=Injector(
        name=NAME,
        claim="A process that is killed again and again loses no run and pays nothing twice.",
        wants="Kill a process after it paid and before it says so, and have it pay again.",
        stopped_by="A supervisor restarts it, and the run goes on under its own keys. After too "
        "many failures it stops, and a person is told.",
        params=(
            one_of("step", "Kill the process that does", STEPS),
            Param(name="times", label="Times", kind="int", default=3, low=1, high=TIMES_MAX),
            one_of("strategy", "The supervisor's strategy", STRATEGIES),
        ),
        inject=inject,
        assess=assess,
    ),
    make_run=fixture.plain_run,
    why_alone="A separate data folder with processes of its own, deleted after the attack.",
)
