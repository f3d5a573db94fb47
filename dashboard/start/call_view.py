"""What the page of a foreign agent's call shows in place of an invoice."""

from collections.abc import Mapping
from typing import Any

from dashboard.start import calls
from dashboard.templatetags.show import money
from dashboard.verdicts.verdict_card import rule_of
from engine.queries.log import BY_PERSON, EventRow
from engine.queries.record import RunRecord
from engine.store import programs
from gate import answers, asked
from gate.asked import Asked
from nanovm_core.core.gate.why import Check
from nanovm_core.core.program import Program
from nanovm_core.decimals import minor_of
from pipeline.queries import personal, stuck_runs

TO, TO_CHARS_MAX = ("recipient", "to", "payee"), 40  # arguments that name who gets something
JUDGED = ("ACCEPTED", "HELD", "BLOCKED", "SUSPENDED")  # what the gate says of a call


def parts(
    record: RunRecord, stall: stuck_runs.StuckReason | None, label: str
) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """The fields of an outcome's line, and those of a run's view, that differ for a call.

    ``label``: of the button that approves anything else than a held call.
    """
    (it,) = asked.of_runs([record.run]).values()
    cost = _cost(programs.shape_of(record.stored), it)
    reply = None if record.run.quarantined else answers.reply_of(record.stored)
    is_hold = stall is None or stall.label in ("", stuck_runs.HELD_CALL.label)
    return _line(record, it, cost), {
        "asked": it,
        "reply": reply,
        "checks": tuple(Check(*each, ()) for each in reply.checks.items()) if reply else (),
        "mine": personal.Personal(
            values={}, facts=(*it.args, it.result) if it.result else it.args, crops=()
        ),
        "approve_label": _approve(it, money(*cost)) if is_hold else label,
    }


def _line(record: RunRecord, it: Asked, cost: tuple[int | None, str]) -> Mapping[str, Any]:
    """The line of a call, with what it would cost."""
    people = [row for row in record.rows if row.state_event in BY_PERSON]
    checked = judged(record)
    decided = people[-1] if people and not record.run.suspended else checked
    return {
        "amount_minor": cost[0],
        "currency": cost[1],
        "says": f"{it.agent} asked for {it.tool} · {calls.word(record.run, it)}",
        "code": rule_of(it.rule).code,
        "decided_by": decided.decided_by if decided else "",
        "decided_in": decided.number if decided else None,
        "checked_in": checked.number if checked else None,
    }


def judged(record: RunRecord) -> EventRow | None:
    """The newest event that judged a foreign agent's call."""
    return next((row for row in reversed(record.rows) if row.verdict in JUDGED), None)


def _cost(program: Program, it: Asked) -> tuple[int | None, str]:
    """What a call would cost in minor units, as its program counts it; None for nothing."""
    known = program.tools.get(it.tool)
    args = {each.slot: each.value for each in it.args}
    if known is None or known.money is None:
        return None, ""
    spec = known.args[known.money.amount]
    digits = spec.places if spec.item == "decimal" else 0  # an integer is in minor units
    currency = known.money.currency_is or args.get(known.money.currency, "")
    return minor_of(args.get(known.money.amount), digits) or None, currency


def _approve(it: Asked, cost: str) -> str:
    """The button's words for a call: what it costs, to whom, and its tool."""
    to = next((each.value for each in it.args if each.slot in TO), "")
    to = f" to {to if len(to) <= TO_CHARS_MAX else f'{to[: TO_CHARS_MAX - 1]}…'}" if to else ""
    return f"Approve {cost}{to} ({it.tool})" if cost else f"Approve {it.tool}{to}"
