"""A run of a log that a restore closed: every event of it is refused and counted, none sealed.

Its log takes no envelope any more: another copy of it, longer than this one, was signed.
"""

from collections.abc import Sequence

from nanovm_core.core.events import Event
from nanovm_core.core.messages import Decision, Refusal, Snapshot
from nanovm_core.errors import VerificationError
from pipeline.runtime.transaction import LockedRun, UnitOfWork
from pipeline.store import logs, records


def refused(commit: UnitOfWork, held: LockedRun, events: Sequence[Event]) -> Decision:
    """Refuse these events (LOG-009): the run keeps its value, and owes nothing to anybody."""
    for event in events:
        commit.count(held, type(event).__name__)
    no = logs.closed_error(held.workspace)
    return Decision(_value(held), refusal=Refusal(code=no.code, text=no.text))


def _value(held: LockedRun) -> Snapshot:
    try:
        return records.value_of(held.run, held.chain, held.workspace.origin)
    except VerificationError:  # it is shown and not sealed: fsck names it
        return records.trusted(held.run, held.chain.envelopes)
