"""What an event cannot know by itself: accounts, recorded calls, revocations, effects begun."""

from dataclasses import replace

from nanovm_core.core.events import Event, KillRequested
from nanovm_core.core.messages import Snapshot
from nanovm_core.core.program import Program
from pipeline.runtime import warrants
from pipeline.runtime.transaction import Commit, Held
from pipeline.store import call_history, outbox


def informed(
    event: Event,
    commit: Commit,
    held: Held,
    program: Program,
    now: Snapshot,
    *,
    by_holder: bool,
) -> Event:
    """The event with all that the runtime knows under its lock, whatever the sender wrote there."""
    workspace = held.workspace
    event = replace(
        event,
        by_holder=by_holder,
        ledger=commit.till.ledger(workspace.id, program, now, event),
        history=call_history.recorded(workspace.id, program, commit.pending(workspace.id)),
        revoked=warrants.revoked(workspace, program) if program.grants else frozenset(),
    )
    if isinstance(event, KillRequested):
        under_way = now.owed is not None and outbox.begun(held.id, now.owed)
        return replace(event, under_way=under_way)
    return event
