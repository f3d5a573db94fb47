"""Calls that an agent from outside asks for, and makes itself where no process here uses the tool.

The judgement is in the commit that makes the run. A warrant goes out in the commit that marks its
effect as begun and makes the run wait for the report: no second one can exist.
"""

from dataclasses import replace
from functools import partial

from engine.runtime import api, decide, queue
from engine.runtime.agent_moves import HALTED
from engine.runtime.context import Sender
from engine.runtime.transaction import Commit, LockedRun
from engine.store import leases
from nanovm_core.agents import Agent
from nanovm_core.core.events import EffectWaiting, KillRequested, ProposalReceived, RunStarted
from nanovm_core.core.lifecycle import ACTIVE, PAUSED
from nanovm_core.core.messages import Snapshot
from nanovm_core.errors import RefusedError


def require(commit: Commit, locked: LockedRun, agent: str, incarnation: int) -> None:
    """Return if this is the present incarnation of an agent; else RefusedError AGT-003."""
    known = commit.ledgers.of(locked.workspace).agents.get(agent, Agent(incarnation=0))
    if known.incarnation != incarnation:
        text = f"The log {locked.workspace.origin} has no agent {agent!r} of this incarnation."
        raise RefusedError("AGT-003", text)


def judge(commit: Commit, locked: LockedRun, proposal: ProposalReceived, actor: str) -> None:
    """Start a new run and answer its model step, and hand out what that allows.

    An agent that begins nothing now is refused with CAP-040: its run ends, and does not go on
    once the agent is resumed, when nobody waits for it any more.
    """
    leases.give(locked.run)
    sender = Sender(actor, locked.run.holder)
    now = decide.apply(commit, locked, [RunStarted()], sender).snapshot
    if now.state == PAUSED and now.reason is not None and now.reason[0] == HALTED:
        decide.apply(commit, locked, [KillRequested()])
    elif now.owed is not None:
        answer = replace(proposal, key=now.owed.key)
        now = decide.apply(commit, locked, [answer], sender).snapshot
        if not _handed_out(commit, locked, now, sender) and now.owed is not None:
            commit.after.append(partial(queue.wake, locked.run.name))
    leases.free(locked.run)


def hand_out(run_id: str, actor: str) -> bool:
    """Give ``actor`` the call that a run owes to them, so that they make it; whether it was given.

    It is given once: not where it was given already, where the run owes none now, or where its
    agent begins nothing. An approval lets it be given; one of an unknown outcome, once more.
    """

    def given(commit: Commit, locked: LockedRun) -> bool:
        found = decide.sound(commit, locked)
        if found is None or leases.is_held(locked.run.holder, locked.run.until_ms):
            return False
        now = decide.unless_halted(commit, locked, found)
        leases.give(locked.run)
        is_given = _handed_out(commit, locked, now, Sender(actor, locked.run.holder))
        leases.free(locked.run)
        return is_given

    return api.on_run(run_id, given)


def _handed_out(commit: Commit, locked: LockedRun, now: Snapshot, sender: Sender) -> bool:
    """Whether a run owes a call to who asked for it; it is begun then, and its answer awaited."""
    owed = now.owed
    if owed is None or now.state != ACTIVE or not decide.is_outside(locked, owed):
        return False
    decide.start(locked, now, owed)
    return decide.apply(commit, locked, [EffectWaiting(key=owed.key)], sender).refusal is None
