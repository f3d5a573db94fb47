"""What an approval is bound to beside its hold: the terms it was given on, a deadline, a person."""

from collections.abc import Mapping

from nanovm_core.core import lifecycle as life
from nanovm_core.core.authority.origin import REGISTER
from nanovm_core.core.authority.policy import CHANGED_SINCE, UNKNOWN_OUTCOME
from nanovm_core.core.events import Approved
from nanovm_core.core.fsm import moves
from nanovm_core.core.fsm.moves import Cause
from nanovm_core.core.messages import Decision, Snapshot
from nanovm_core.core.program import Program
from nanovm_core.errors import RefusedError

LOOK = "Look at the run again, then decide."


def require(program: Program, event: Approved, cause: Cause) -> None:
    """Return if the sender may approve (POL-026), and saw the terms as they are now (POL-025)."""
    context, actor = cause.context, cause.context.actor
    if program.policy.four_eyes and actor in (context.requested_by or actor, REGISTER):
        text = f"The policy wants the approval of another person than {actor}"
        what = "make a link to approve it and give it to somebody else, or decline it"
        raise RefusedError("POL-026", f"{text}: {what}.")
    if changed := _changed(event.seen, context.terms):
        raise RefusedError("POL-025", f"Changed since this was shown: {changed}. {LOOK}")


def is_late(program: Program, since_ms: int, cause: Cause) -> bool:
    """Whether what began at ``since_ms`` is older than an approval may be."""
    return cause.at_ms - since_ms > program.limits.approval_ttl_ms


def lapsed(program: Program, now: Snapshot, cause: Cause) -> Decision | None:
    """The run held again where the approval of its call counts no more; else None.

    A call that is owed may have been made: its outcome is unknown.
    """
    if not (now.agreed_ms and now.call):
        return None
    if is_late(program, now.agreed_ms, cause):
        code, why = "POL-024", "The approval is too old for the call"
    elif changed := _changed(now.agreed, cause.context.terms):
        code, why = "POL-025", f"Changed since it was approved: {changed}"
    else:
        return None
    hold = UNKNOWN_OUTCOME if now.owed else CHANGED_SINCE
    return moves.suspend(now, cause, life.APPROVAL, code, f"{why}. {LOOK}", hold)


def asked_again(now: Snapshot, cause: Cause) -> Decision:
    """The same hold, as a new one: no decision about the old one counts for it."""
    clock = moves.STATE_EFFECTS["go_on_with_clock"](now, cause)
    at = now._replace(**clock | {"suspended_ms": cause.at_ms})
    text = f"The hold was too old to be approved, and nothing was paid. {LOOK}"
    return moves.suspend(at, cause, life.APPROVAL, "POL-024", text, now.held_by)


def _changed(seen: Mapping[str, str], found: Mapping[str, str]) -> str:
    differ = {name for name, _ in seen.items() ^ found.items()}
    return ", ".join(sorted(differ | {name for name, value in found.items() if not value}))
