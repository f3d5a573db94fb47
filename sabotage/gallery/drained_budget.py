"""``drained_budget``: one run after the other, and the stopped one again, until nothing is left."""

from collections.abc import Mapping
from typing import NamedTuple

from engine.models import AdapterCall, Envelope, Run, Workspace
from engine.store import ledgers
from nanovm_core.core import lifecycle as life
from pipeline.application import current
from sabotage.gallery.kit import fixture, invoices
from sabotage.gallery.kit.outcomes import RunOutcome, breaches_of, combined, first_stop, outcomes_of
from sabotage.gallery.kit.scenario import Scenario
from sabotage.kit.code_locations import where
from sabotage.kit.evidence import Evidence
from sabotage.kit.injector import Assessment, Fired, Injector, Target, Value, choice

NAME = "drained_budget"
AMOUNT_MINOR = 100_000
RUNS, RESUMES = 4, 2
CURRENCY = "USD"
ENOUGH_FOR = 2  # runs
MAX = {"calls": 4, "steps": 12, "money": ENOUGH_FOR * AMOUNT_MINOR}  # each is for those


class Usage(NamedTuple):
    """An account by its row, and what was used by the records of the adapters and of Stripe."""

    limit: int
    booked: int
    used: int


def first(workspace: Workspace, values: Mapping[str, Value]) -> Run:
    """The first of the runs."""
    return _run(workspace, str(values["unit"]))


def inject(target: Target) -> Fired:
    """Run one after the other beyond the account's end, then resume whatever was stopped."""
    unit = str(target.values["unit"])
    workspace = fixture.reloaded(target.run).workspace
    runs = [target.run]
    fixture.start(target.run)
    for _ in range(RUNS - 1):
        runs.append(_run(workspace, unit))
        fixture.start(runs[-1])
    resumed = 0
    for run in runs * RESUMES:
        if fixture.reloaded(run).state == life.EXHAUSTED:
            fixture.resume(run)
            resumed += 1
    return Fired(
        facts={
            "unit": unit,
            "resumed": resumed,
            "amount_minor": AMOUNT_MINOR,
            "currency": CURRENCY,
            "enough_for": ENOUGH_FOR,
            "other_runs": [str(run.id) for run in runs[1:]],
        }
    )


def assess(found: Evidence, fired: Fired) -> Assessment:
    """BLOCKED where a run was stopped by the empty account, and no more was used than it held."""
    unit, runs = str(fired.facts["unit"]), outcomes_of(found, fired)
    account, stopped = _account(found.run, unit, runs), first_stop(runs)
    rule = stopped.rule if stopped else ""
    over = (f"{account.used} {unit} were used of an account that held {account.limit}.",)
    return Assessment(
        verdict="BLOCKED" if stopped and account.used <= account.limit else "ACCEPTED",
        rule=rule,
        where=where(rule),
        facts={
            "account": account._asdict(),
            **combined(runs),
            "runs_ended": [each.as_facts() for each in runs],
        },
        breaches=(*breaches_of(runs[1:]), *(over if account.used > account.limit else ())),
    )


def _account(run: Run, unit: str, runs: list[RunOutcome]) -> Usage:
    name = f"workspace/{CURRENCY if unit == 'money' else unit}"
    found = ledgers.stored(Workspace.objects.get(id=run.workspace_id))
    return Usage(MAX[unit], found.used(name) if found else 0, _used(unit, runs))


def _used(unit: str, runs: list[RunOutcome]) -> int:
    """What was used, by records that no account is read for."""
    if unit == "money":
        return sum(each.paid_minor for each in runs)
    if unit == "steps":
        names = [each.run.name for each in runs]
        return Envelope.objects.filter(run__in=names, kind="intent").count()
    calls = AdapterCall.objects.filter(run__in=[each.run for each in runs])
    granted = calls.filter(tool__in=list(current().grants))
    return granted.values("key").distinct().count()


def _run(workspace: Workspace, unit: str) -> Run:
    named = {unit: MAX[unit]} | ({} if unit == "money" else {"money": 10**9})
    document = invoices.asking(AMOUNT_MINOR, CURRENCY, f"DRAIN-{workspace.id.hex[-6:]}")
    return fixture.fresh(workspace, document, policy=fixture.limits_alone(named))


SCENARIO = Scenario(
    injector=Injector(
        name=NAME,
        claim="Stopping, resuming or retrying does not refill a budget.",
        wants="Use up a budget, then continue with new runs and resumed runs.",
        stopped_by="The budget: every use is reserved before it happens.",
        params=(choice("unit", "Account of", tuple(MAX)),),
        inject=inject,
        assess=assess,
    ),
    make_run=first,
    why_alone="A separate budget, used only by these runs.",
)
