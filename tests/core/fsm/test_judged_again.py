"""The judged call is judged when it is made: rules and holds are asked at each new key."""

from dataclasses import replace
from typing import Any

import pytest

from nanovm_core.core import lifecycle as life
from nanovm_core.core.events import Approved, PauseRequested, ResumeRequested
from nanovm_core.core.messages import Decision, Recorded
from nanovm_core.loading import load_program
from tests.core.kit.refund_runs import (
    BUYER,
    FUNDS,
    HASH,
    PROGRAM,
    TEXT,
    Refund,
    body,
    code,
    kinds,
    under,
)

LATE = 'at = "authorize"\noutcome = "deny"\nwhen = "$history.refunds > 0"'
assert LATE in TEXT
HELD = load_program(TEXT.replace(LATE, LATE.replace('"deny"', '"hold"\napprovable = true')).encode())  # fmt: skip # noqa: E501


def refunded(run: Refund) -> None:
    """Somebody refunds elsewhere: no rule allows another one now."""
    run.history = (Recorded(run.at_ms, "money.refund", "called"),)


def refused(run: Refund, decision: Decision) -> None:
    """The call was not made, by rule, and the step's error path was taken."""
    assert [effect.step for effect in decision.effects] == ["apologise"]
    assert (run.now.step, run.why) == ("apologise", "POL-003")
    assert run.now.reserved == ()


def resumed(run: Refund, **fields: Any) -> Decision:
    return run.feed(ResumeRequested, program=HASH, **fields)


def test_first_call_after_a_pause_is_judged_as_it_is_made() -> None:
    run = Refund().to_refund()
    run.now = run.now._replace(owed=None, state=life.PAUSED, suspended_ms=run.at_ms, deadline_ms=0)
    refunded(run)
    refused(run, resumed(run))


def test_call_that_waited_for_funds_is_judged_as_it_is_made() -> None:
    run = Refund().to_ask()
    run.ledger = {**FUNDS, "workspace/EUR": 1}
    run.propose()
    assert (run.now.state, run.now.step) == (life.EXHAUSTED, "refund")
    run.ledger = FUNDS
    refunded(run)
    refused(run, resumed(run))


def test_retry_under_a_new_key_is_judged_as_it_is_made() -> None:
    run = Refund().to_refund()
    refunded(run)
    refused(run, run.fail())


def test_hold_at_the_call_suspends_there_and_its_approval_covers_that_call() -> None:
    run = Refund()
    under(run, HELD)
    run.to_refund()
    first = run.key
    refunded(run)
    held = run.fail()
    assert kinds(held) == ["failed", "suspended"]
    assert (run.now.state, run.now.step, run.now.held_by) == (life.APPROVAL, "refund", "late")
    assert run.now.owed is None
    assert [each.account for each in run.now.reserved] != []  # for the attempt that is to come
    lifted = run.feed(Approved)
    assert kinds(lifted) == ["resumed", "intent"]
    assert (run.owed.attempt, run.key != first) == (2, True)
    assert body(lifted, 1)["decision"] == {"verdict": "ACCEPTED", "rules": ("small", "late")}
    assert run.now.allowed_by == ("small", "late")


def test_same_key_handed_out_once_more_is_asked_no_rule() -> None:
    run = Refund().to_refund()
    key = run.key
    run.feed(PauseRequested)
    refunded(run)
    assert resumed(run).effects[0].key == key


def test_call_is_judged_with_what_its_step_puts_in() -> None:
    """No file says so; a program that is built by hand may."""
    step = replace(PROGRAM.steps["refund"], args={"to": "order"})
    run = Refund()
    run.program = replace(PROGRAM, steps={**PROGRAM.steps, "refund": step})
    run.to_refund()
    assert (run.now.step, run.why) == ("apologise", "POL-010")
    assert BUYER.ref == run.now.slots["buyer"]


@pytest.mark.parametrize("tool", ["desk.apologise", "nobody.knows"])
def test_call_that_was_never_granted_is_not_made(tool: str) -> None:
    run = Refund().to_refund()
    run.now = run.now._replace(owed=None, state=life.PAUSED, suspended_ms=run.at_ms, deadline_ms=0)
    run.now = run.now._replace(call=(tool, {}))
    resumed(run)
    assert (run.now.step, run.why) == ("apologise", "CAP-001")
    assert code(resumed(run)) == "FSM-002"
