"""A suspended agent begins no effect, wherever its run stands, and loses none of its runs."""

from collections.abc import Callable

import pytest

from nanovm_core.core import events
from nanovm_core.core import lifecycle as life
from nanovm_core.core.authority.policy import UNKNOWN_OUTCOME
from nanovm_core.core.messages import Decision
from tests.core.kit.refund_runs import HASH, RECEIPT, Refund, code

HALTED = {"": "suspended.by_rule"}
WAIT_MS, BACKOFF_MS = 1_800_000, 1_500

# A run, and what would begin its next effect: every way into one that the program has.
NEXT: dict[str, tuple[Callable[[], Refund], Callable[[Refund], Decision]]] = {
    "start": (Refund, Refund.start),
    "next step": (lambda: Refund().to_refund(), lambda run: run.done(RECEIPT)),
    "question": (lambda: _started(), Refund.look_up),
    "the call": (lambda: Refund().to_ask(), Refund.propose),
    "wait over": (lambda: _cooling(), lambda run: run.feed(events.TimePassed, after_ms=WAIT_MS)),
    "retry": (lambda: _failed(), lambda run: run.feed(events.TimePassed, after_ms=BACKOFF_MS)),
    "error path": (lambda: Refund().to_ask(), lambda run: _denied(run)),
}


def _started() -> Refund:
    run = Refund()
    run.start()
    return run


def _cooling() -> Refund:
    run = _started()
    run.look_up(urgent=False)
    return run


def _failed() -> Refund:
    run = _started()
    run.fail()
    return run


def _denied(run: Refund) -> Decision:
    run.propose(tool="wire")
    return run.propose(tool="wire")


@pytest.mark.parametrize("way", NEXT)
def test_no_effect_begins_while_the_agent_is_suspended(way: str) -> None:
    make, begin = NEXT[way]
    run = make()
    agent = run.now.agent
    run.halted = {agent: "suspended.by_rule"}
    decision = begin(run)
    assert (decision.effects, run.now.state) == ((), life.PAUSED)
    assert (run.now.owed, run.now.reason and run.now.reason[0]) == (None, "CAP-040")
    refused = run.feed(events.ResumeRequested, program=HASH)
    assert (code(refused), run.now.state) == ("CAP-040", life.PAUSED)
    run.halted = {}
    assert run.feed(events.ResumeRequested, program=HASH).effects


def test_another_agent_is_none_of_this_runs() -> None:
    run = Refund()
    run.halted = {"somebody-else": "terminated.killed"}
    assert run.start().effects


def test_an_effect_under_way_is_answered_and_not_handed_out_again() -> None:
    run = Refund().to_refund()
    run.halted = {run.now.agent: "suspended.user_paused"}
    run.unknown()
    assert run.now.held_by == UNKNOWN_OUTCOME
    assert code(run.approve()) == "CAP-040"
    assert run.now.state == life.APPROVAL
    paid = Refund().to_refund()
    paid.pause()
    paid.halted = run.halted
    paid.done(RECEIPT)
    assert (paid.now.state, paid.now.step) == (life.PAUSED, "letter")
