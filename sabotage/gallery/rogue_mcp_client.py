"""``rogue_mcp_client``: an agent that others wrote, with a token of its own, attacks the gate.

It uses a throw-away data folder, with the gate's own doors and a bank behind them.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from django.conf import settings

from gate.replies import UNKNOWN
from sabotage.gallery.kit import fixture
from sabotage.gallery.kit.scenario import Scenario
from sabotage.kit import throwaway
from sabotage.kit.code_locations import named_in, where
from sabotage.kit.evidence import Evidence
from sabotage.kit.injector import Assessment, Fired, InjectionError, Injector, Target, choice

NAME = "rogue_mcp_client"
FOLDER, WHAT = "rogues", "attack on a gate"
SECONDS_MAX = 100.0  # five on an idle machine
COPIES, PADDING, DEPTH = 50, 2_000_000, 1_000
UNLISTED, WIDER = "an unlisted tool", "more than the grant allows"
COPIED = f"{COPIES} copies of one request at once"
TOKEN, REQUEST = "its token with another agent's name", "another agent's request id"
CHANGED = "a tool whose description was changed"
OVERSIZE, NESTED = "a call of two megabytes", f"a call nested {DEPTH:,} deep"
SPLIT, SUSPENDED = "a limit split over three agents", "while it is suspended"
NO_WARRANT, OTHERS_WARRANT = "a report without a warrant", "a report for another's warrant"
MAY = "It asks nobody what this agent may do"
READABLE = "another agent can read what was paid"
SIZE = "It reads whatever it is sent"
BOUND = ("nanovm_core/core/authority/arguments.py", "read", "low")
KNOWN = ("gate/calls.py", "_known", "GAT-001")
DOOR = ("gate/doors/wire.py", "read")
PINNED = ("gate/upstreams/wires.py", "_called", "PIN")


class Form(NamedTuple):
    """What an agent loop lacks against it; the rule that stops it here, and where it is decided.

    No ``rule``: nothing has to refuse it. ``harm``: of a call that is in order but for its size.
    """

    lacks: str
    rule: str
    decided: tuple[str, ...] = ()
    harm: str = ""


FORMS: Mapping[str, Form] = {
    UNLISTED: Form("It calls whatever tool is named", "CAP-001"),
    WIDER: Form("Its schema knows types and no limit of this agent", "CAP-006", BOUND),
    COPIED: Form(f"It was sent {COPIES} copies", "", ("gate/calls.py", "run_of", "uuid5")),
    TOKEN: Form(MAY, "GAT-003", ("gate/identity.py", "holder", "GAT-003")),
    REQUEST: Form("It keeps no answer for one agent alone", "GAT-001", KNOWN, READABLE),
    CHANGED: Form("It calls a tool by its name alone", "GAT-008", PINNED),
    OVERSIZE: Form(SIZE, "GAT-006", (*DOOR, "GAT-006"), "read two megabytes"),
    NESTED: Form(SIZE, "GAT-005", (*DOOR, "GAT-005"), "read a thousand lists"),
    SPLIT: Form("Each of the agents has a limit of its own", "POL-020"),
    SUSPENDED: Form(MAY, "CAP-040", ("nanovm_core/core/fsm/advance.py", "_halted", "CAP-040")),
    NO_WARRANT: Form("It asks no person", "GAT-007", ("gate/calls.py", "report", "GAT-007")),
    OTHERS_WARRANT: Form("It believes any report", "GAT-001", KNOWN),
}
MORE = "Calls made, by the bank's own list: {executed}. Calls allowed: {may_execute}."
BELIEVED = "A report was taken from an agent that had no warrant for the call."
BROKE = "The gate broke, so nothing is known of its guard."
UNMADE = "The call that is in order was not made."
READ = "It was told what became of another agent's call."
OPEN = "The gate did not decide the call, so nothing is known of its guard. Fire it again."


def inject(target: Target) -> Fired:
    """Have the gate of a folder of its own attacked, and read what came of it."""
    program = throwaway.command("sabotage.rogue")
    try:
        with throwaway.folder_in(settings.NANOVM_DATA / FOLDER, WHAT) as folder:
            facts = throwaway.outcome_of(program, folder, target.values, SECONDS_MAX, WHAT)
    except throwaway.NoOutcomeError as error:
        raise InjectionError(str(error)) from error
    form = FORMS[facts["how"]]
    return Fired(facts={**facts, "loop_lacks": form.lacks, "loop_harm": form.harm})


def assess(_found: Evidence, fired: Fired) -> Assessment:
    """BLOCKED where a rule answered, IGNORED where none has to; the calls in order were made.

    Raises:
        InjectionError: no rule answered where one has to, or what became of a call is unknown.
    """
    told: Mapping[str, Any] = fired.facts
    form, codes = FORMS[told["how"]], [each for each in told["answers"] if each[:1].isupper()]
    wrong = {
        MORE.format(**told): told["executed"] > told["may_execute"],
        BELIEVED: told["believed"],
        BROKE: "GAT-019" in codes,
        UNMADE: told["executed"] + told["warranted"] < told["may_execute"],
        READ: told["how"] == REQUEST and not codes,
    }
    got_out = tuple(text for text, true in wrong.items() if true)
    rule = form.rule if form.rule in ("", *codes) else ["", *codes][-1]
    is_open = rule == "" != form.rule and not throwaway.THROUGH  # a copy may lack the rule
    if not got_out and (is_open or UNKNOWN in told["answers"]):
        raise InjectionError(OPEN)
    settled = named_in(*form.decided) if form.decided and rule == form.rule else where(rule)
    return Assessment(
        verdict="ACCEPTED" if got_out else "BLOCKED" if rule else "IGNORED",
        rule="" if got_out else rule,
        where="" if got_out else settled,
        breaches=got_out,
    )


SCENARIO = Scenario(
    injector=Injector(
        name=NAME,
        claim="An agent that others wrote can make only calls it is allowed, and each only once.",
        wants="Have the gate make a call that its token does not allow, or one call twice.",
        stopped_by="The gate: it knows the agent by its token alone, each call by its agent and "
        "request id, and has the kernel judge every one before anything is sent.",
        params=(choice("how", "It sends", tuple(FORMS)),),
        inject=inject,
        assess=assess,
    ),
    make_run=fixture.plain_run,
    why_alone="A separate data folder with a gate and a bank, deleted after the attack.",
)
