"""What an event cannot know by itself: accounts, recorded calls, revocations, effects begun."""

from dataclasses import replace

from nanovm_core.events import Event, KillRequested
from nanovm_core.messages import Snapshot
from nanovm_core.program import Program
from pipeline import accounts, authority, histories, outbox
from pipeline.models import Workspace


def informed(event: Event, workspace: Workspace, program: Program, now: Snapshot) -> Event:
    """The event with all that the runtime knows under its lock, whatever the sender wrote there."""
    event = replace(
        event,
        ledger=accounts.ledger(workspace, program, now),
        history=histories.recorded(workspace, program),
        revoked=authority.revoked(workspace),
    )
    if isinstance(event, KillRequested):
        under_way = now.owed is not None and outbox.begun(now.owed)
        return replace(event, under_way=under_way)
    return event
