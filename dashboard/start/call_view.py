"""What the page of a foreign agent's call shows in place of an invoice."""

from collections.abc import Mapping
from typing import Any

from dashboard.start import calls
from dashboard.verdicts.verdict_card import rule_of
from engine.queries.log import BY_PERSON, EventRow
from engine.queries.record import RunRecord
from gate import answers, asked
from gate.asked import Asked
from nanovm_core.core.gate.why import Check
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
    reply = None if record.run.quarantined else answers.reply_of(record.stored)
    is_hold = stall is None or stall.label in ("", stuck_runs.HELD_CALL.label)
    return _line(record, it), {
        "asked": it,
        "reply": reply,
        "checks": tuple(Check(*each, ()) for each in reply.checks.items()) if reply else (),
        "mine": personal.Personal(
            values={}, facts=(*it.args, it.result) if it.result else it.args, crops=()
        ),
        "approve_label": _approve(it) if is_hold else label,
    }


def _line(record: RunRecord, it: Asked) -> Mapping[str, Any]:
    """The line of a call; an amount is one of its arguments, shown there."""
    people = [row for row in record.rows if row.state_event in BY_PERSON]
    checked = judged(record)
    decided = people[-1] if people and not record.run.suspended else checked
    return {
        "says": f"{it.agent} asked {it.tool} · {calls.WORDS[it.verdict]}",
        "code": rule_of(it.rule).code,
        "decided_by": decided.decided_by if decided else "",
        "decided_in": decided.number if decided else None,
        "checked_in": checked.number if checked else None,
    }


def judged(record: RunRecord) -> EventRow | None:
    """The newest event that judged a foreign agent's call."""
    return next((row for row in reversed(record.rows) if row.verdict in JUDGED), None)


def _approve(it: Asked) -> str:
    """The button's words for a call: its tool, and to whom or with what."""
    to = next((each.value for each in it.args if each.slot in TO), "")
    return f"Approve {it.tool} to {to[:TO_CHARS_MAX]}" if to else f"Approve {it.tool} ({it.brief})"
