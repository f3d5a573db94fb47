"""A person's word is about what they saw held, and about nothing that came after it."""

import pytest

from nanovm_core.core import lifecycle as life
from nanovm_core.core.events import Approved, Declined, Event
from nanovm_core.core.fsm import transition
from nanovm_core.core.fsm.commands import hold_id
from nanovm_core.core.messages import Snapshot
from nanovm_core.vm import Unknown
from tests.core.fsm.test_two_payments import held_again, twice
from tests.core.kit.builders import Play, proposal, worker_context
from tests.core.kit.refund_desk import Run, Till

OVER = 1_000_001


def held() -> Play:
    """A payment over the limit, before a person."""
    play = Play().to_propose(amount_minor=OVER)
    play.propose(proposal(amount_minor=OVER))
    assert play.now.state == life.APPROVAL
    return play


def refused(play: Play, event: Event) -> str:
    """The code with which an event is refused as it is; nothing has changed by it."""
    decision = transition(play.program, play.now, event, worker_context())
    assert decision.snapshot == play.now
    return decision.refusal.code if decision.refusal else ""


@pytest.mark.parametrize("kind", [Approved, Declined])
def test_decision_that_names_no_hold_or_another_is_refused(
    kind: type[Approved] | type[Declined],
) -> None:
    play = held()
    for hold in ("", "0" * 64, hold_id(play.now).upper()):
        assert refused(play, kind(hold=hold)) == "FSM-016"
    named = play.feed(kind(hold=hold_id(play.now)))
    assert named.refusal is None


def test_second_click_lifts_no_hold_that_nobody_has_seen() -> None:
    run = Run(program=twice('"completed"', '"propose_again"'), order="A-4").go()
    seen = run.hold
    assert run.tell(Approved, hold=seen) == ""
    run.run()
    held_again(run)
    assert run.tell(Approved, hold=seen) == "FSM-016"
    held_again(run)
    assert run.tell(Declined, hold=seen) == "FSM-016"
    assert run.tell(Approved, hold=run.hold) == ""


def test_unknown_outcome_is_decided_about_once_a_time() -> None:
    lost = Unknown(code="OUT-1", text="?")
    run = Run(Till(lost, lost), order="A-1").go()
    seen = run.hold
    assert run.tell(Approved, hold=seen) == ""
    run.run()
    assert run.tell(Approved, hold=seen) == "FSM-016"
    assert run.hold != seen


def test_nothing_held_has_no_name() -> None:
    assert Run(order="A-1").hold == ""
    assert [hold_id(draft.after) != "" for draft in held().drafts][-2:] == [False, True]


def _others(now: Snapshot) -> dict[str, Snapshot]:
    assert now.call is not None
    tool, args = now.call
    return {
        "run": now._replace(run="another"),  # type: ignore[arg-type]
        "step": now._replace(step="another"),
        "rule": now._replace(held_by="another"),
        "tool": now._replace(call=("another", args)),
        "arguments": now._replace(call=(tool, {**args, "amount_minor": 1})),
        "time": now._replace(suspended_ms=now.suspended_ms + 1),
        "place": now._replace(begun=now.begun + 1),
    }


@pytest.mark.parametrize("other", _others(held().now))
def test_every_hold_has_a_name_of_its_own(other: str) -> None:
    now = held().now
    assert len(hold_id(now)) == 64
    assert hold_id(_others(now)[other]) != hold_id(now)
