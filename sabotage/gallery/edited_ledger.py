"""``edited_ledger``: what the runs of a log share is edited, so that more is paid than allowed."""

from collections.abc import Callable, Mapping
from typing import Any

from engine.models import Envelope, Run, Workspace
from engine.runtime import agents
from engine.store import ledgers
from nanovm_core.agents import RUNNING
from nanovm_core.core.canonical import decode, encode
from nanovm_core.core.envelope import LOG_RUN, body_of, canonical_hash
from nanovm_core.ledger.value import NOT_SEALED, ledger_hash
from sabotage.doors.tamper_db import change_ledger
from sabotage.gallery.kit import fixture, invoices
from sabotage.gallery.kit.outcomes import breaches_of, combined, outcomes_of
from sabotage.gallery.kit.scenario import Scenario
from sabotage.kit.code_locations import where
from sabotage.kit.evidence import Evidence
from sabotage.kit.injector import Assessment, Fired, Injector, Target, Value, choice

NAME = "edited_ledger"
CURRENCY = "USD"
LIMIT_MINOR, PAID_MINOR = 250_000, 200_000
ASKED_MINOR, REST_MINOR = 100_000, 50_000  # more than is left then, and all of it
LIMIT, ACCOUNT = "workspace/*", f"workspace/{CURRENCY}"
PAYER, RESUMED = "payer", "resume a suspended agent"
# What the database row holds after the edit, by what it held and by an older copy of it.
EDITS: Mapping[str, Callable[[dict[str, Any], bytes], bytes]] = {
    "raise the limit": lambda row, _: encode({**row, "limits": {**row["limits"], LIMIT: 10**9}}),
    "set what was spent to zero": lambda row, _: encode(
        {**row, "accounts": {**row["accounts"], ACCOUNT: [0, 0]}}
    ),
    "put an older copy in its place": lambda _, older: older,
    RESUMED: lambda row, _: encode(
        {**row, "agents": {**row["agents"], PAYER: {**row["agents"][PAYER], "state": RUNNING}}}
    ),
}


def asking(workspace: Workspace, _values: Mapping[str, Value]) -> Run:
    """The run that asks for more than is left."""
    return _run(workspace, ASKED_MINOR, stepping=True)


def inject(target: Target) -> Fired:
    """Use up most of a limit, edit the ledger, and ask for more than is left; then for the rest.

    To have a suspended agent resumed, the agent is suspended before, and may pay nothing more.
    """
    edit = str(target.values["edit"])
    log = fixture.reloaded(target.run).workspace
    older, first = bytes(log.ledger), _run(log, PAID_MINOR)
    fixture.start(first)
    fixture.bring(target.run, "propose")  # what it may pay is decided in the step after this one
    if edit == RESUMED:
        agents.suspend(log.id, PAYER, by=fixture.OPERATOR, why="Nothing more is to be paid.")
    log.refresh_from_db()
    row: Any = decode(bytes(log.ledger))
    edited = EDITS[edit](row, older)
    change_ledger(log, edited)
    fixture.resume(target.run)
    rest = _run(log, REST_MINOR)
    fixture.start(rest)
    return Fired(
        facts={
            "edit": edit,
            "currency": CURRENCY,
            "allowed_minor": PAID_MINOR if edit == RESUMED else LIMIT_MINOR,
            "paid_before_minor": PAID_MINOR,
            "asked_minor": ASKED_MINOR,
            "envelopes_before": log.size,
            "sealed_ledger": ledger_hash(bytes(log.ledger)),
            "edited_ledger": ledger_hash(edited),
            "other_runs": [str(first.id), str(rest.id)],
        }
    )


def assess(found: Evidence, fired: Fired) -> Assessment:
    """DETECTED where an alert names the edit, the true ledger is back, and the limit was kept."""
    log = Workspace.objects.get(id=found.run.workspace_id)
    runs, alert, fold = outcomes_of(found, fired), _alert(log, fired), ledgers.fold_of(log)
    paid, allowed = sum(each.paid_minor for each in runs), int(str(fired.facts["allowed_minor"]))
    put_back = fold.sure and fold.hash == ledger_hash(bytes(log.ledger))
    rule = NOT_SEALED if alert and put_back and paid <= allowed else ""
    over = (f"Stripe holds payments of {paid} minor units {CURRENCY}; {allowed} were allowed.",)
    return Assessment(
        verdict="DETECTED" if rule else "ACCEPTED",
        rule=rule,
        where=where(rule),
        event=next((each.number for each in found.sealed if each.rule), None),
        facts={
            "alert": alert,
            "true_ledger_is_back": put_back,
            "paid_minor_together": paid,
            **combined(runs),
            "runs_ended": [each.as_facts() for each in runs],
        },
        breaches=(*breaches_of(runs[1:]), *(over if paid > allowed else ())),
    )


def _alert(log: Workspace, fired: Fired) -> dict[str, object]:
    """The alert about the edited bytes that was sealed after the edit; empty if there is none."""
    since, edited = int(str(fired.facts["envelopes_before"])), fired.facts["edited_ledger"]
    rows = Envelope.objects.filter(workspace=log, run=LOG_RUN, kind="alert", seq__gte=since)
    for row in rows.order_by("seq"):
        data = bytes(row.bytes)
        said = body_of(data)
        if (said.get("rule"), said.get("found")) == (NOT_SEALED, edited):
            named = {name: said[name] for name in ("expected", "found")}
            return {"event": row.n + 1, "hash": canonical_hash(data), **named}
    return {}


def _run(log: Workspace, amount_minor: int, *, stepping: bool = False) -> Run:
    document = invoices.asking(amount_minor, CURRENCY, f"LEDGER-{log.id.hex[-6:]}")
    policy = fixture.limits_alone({"money": LIMIT_MINOR})
    return fixture.fresh(log, document, policy=policy, stepping=stepping)


SCENARIO = Scenario(
    injector=Injector(
        name=NAME,
        claim="Limits, spent amounts and suspensions count only as the log recorded them.",
        wants="Edit the database row with limits and agents, then pay more than they allowed.",
        stopped_by="The ledger: the newest event of the log holds its hash.",
        params=(choice("edit", "In the database", tuple(EDITS)),),
        inject=inject,
        assess=assess,
    ),
    make_run=asking,
    why_alone="A separate limit, used only by these runs.",
)
