"""What of a transition only the runtime may say: its context, and what is stored beside it."""

from typing import NamedTuple

from engine.clock import now_ms
from engine.runtime import terms, warrants
from engine.runtime.agent_moves import Agents
from engine.runtime.transaction import Commit, LockedRun
from engine.store import leases, outbox, programs, records, run_rows, tail
from nanovm_core.core.authority.budget import AGENT_TOKENS, name_of
from nanovm_core.core.events import Approved, Context, Event, KillRequested, ProgramRefused
from nanovm_core.core.lifecycle import TERMINAL
from nanovm_core.core.messages import NOTHING, Decision, Snapshot
from nanovm_core.core.program import Program
from nanovm_core.ledger.value import Used


class Sender(NamedTuple):
    """Who submits an event: in whose name, under which lease, and whether they are vouched for."""

    actor: str = "runtime"
    holder: str = ""
    vouched: bool = False


RUNTIME = Sender()


def context_of(
    event: Event, commit: Commit, locked: LockedRun, program: Program, now: Snapshot, sender: Sender
) -> Context:
    """What the runtime knows about an event of this run, and of who sent it."""
    workspace = locked.workspace
    ended = now.state in TERMINAL  # it takes nothing, and the program may be another's
    kills, owed = isinstance(event, KillRequested), now.owed
    at_ms = now_ms()
    halted = Agents(commit.ledgers, workspace).halted(at_ms)
    ledger = commit.ledgers.of(workspace)
    at_ms = max(at_ms, ledger.at_ms)  # a log's time never goes back
    counts = commit.ledgers.counts
    approves = isinstance(event, Approved) and not ended
    compares = approves or (now.agreed_ms and not ended)  # an intent may follow an approval
    genesis = records.body_of(locked.chain.envelopes[0].data) if approves else {}
    return Context(
        at_ms=at_ms,
        actor=sender.actor,
        by_holder=leases.is_holder(locked.run.holder, sender.holder),
        vouched=sender.vouched,
        under_way=not kills or (owed is not None and outbox.is_under_way(locked.run, owed)),
        ledger={} if ended else commit.ledgers.left(workspace, program, now, event),
        counts={} if ended else counts(workspace, program, now.agent, at_ms),
        halted=halted,
        frozen=ledger.accounts.get(name_of(AGENT_TOKENS, now.agent), Used()).reserved,
        revoked=warrants.revoked(workspace, program) if program.grants else frozenset(),
        terms=terms.terms_of(locked.run, now) if compares else NOTHING,
        requested_by=str(genesis.get("actor", "")),
    )


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
