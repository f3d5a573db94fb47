"""What is stored of a run and its log, looked at beside an event that is decided."""

from engine.clock import now_ms
from engine.runtime.transaction import LockedRun
from engine.store import programs, records, run_rows, tail
from nanovm_core.core.events import Approved, Event, ProgramRefused
from nanovm_core.core.messages import Decision


def expect_end(locked: LockedRun, event: Event, decision: Decision) -> None:
    """Return unless a payment may be a second one, because the log's end was cut off.

    Asked where a person approved, or where the far side may have forgotten an earlier call.
    """
    approved = isinstance(event, Approved) and decision.refusal is None
    if approved or any(each.warrant is not None for each in decision.effects):
        genesis = records.body_of(locked.chain.envelopes[0].data)
        if approved or genesis["at_ms"] <= now_ms() - tail.KEY_LIFE_MS:
            tail.check(locked.workspace, genesis["seq"], locked.run.length)


def exchanged(locked: LockedRun) -> list[Event]:
    """The event that a foreign program beside the run is; the true copy is put back."""
    found = programs.found_hash(locked.run)
    if found == locked.run.program_hash:
        return []
    source = programs.source_of(locked.run)
    if source is not None:
        run_rows.put_back(locked.run, source)
    return [ProgramRefused(found=found)]
