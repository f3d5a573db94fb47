"""What a card tells of an attack: the attempt with its values, the outcome, the payments."""

from typing import Any

import pytest

from dashboard.verdicts import cards, narration
from dashboard.verdicts.cards import Shot
from pipeline.queries.runs import RunHead
from tests.dashboard.visitor import TRANSFER, Visitor, by_code

pytestmark = pytest.mark.usefixtures("db")

KEPT_NOTHING = "Make the model call a tool. Its text is not stored: the run had ended."


def shot_at(visitor: Visitor, run: RunHead, injector: str, **params: object) -> Shot:
    visitor.fire(run, injector, **params)
    return cards.of_run(by_code(run.code))[0]


def test_an_injected_call_is_told_by_its_tool_until_it_is_erased(owner: Visitor) -> None:
    run = owner.make(hold=True)
    shot = shot_at(owner, run, "tool_injection", proposal=TRANSFER)
    assert narration.attempt(shot) == "Make the model call wire_transfer."
    owner.erase(run)
    assert "wire_transfer" not in narration.attempt(cards.of_run(by_code(run.code))[0])


def test_an_injected_call_after_the_end_is_told_without_its_words(
    owner: Visitor, paid: RunHead
) -> None:
    shot = shot_at(owner, paid, "tool_injection", proposal=TRANSFER)
    assert narration.outcome(shot) == "No effect: the run has ended."
    assert narration.attempt(shot) == KEPT_NOTHING
    assert ">Proposed</" not in owner.read(f"/runs/{paid.code}/attacks/{shot.id}/")
    assert narration.attempt(told(verdict="IGNORED")) == KEPT_NOTHING


def test_an_injected_call_that_is_none_is_told_so(owner: Visitor, ready: RunHead) -> None:
    shot = shot_at(owner, ready, "tool_injection", proposal="[1, 2")
    assert narration.attempt(shot) == "Make the model answer with bytes that are not a tool call."
    assert narration.outcome(shot) == "Blocked: the call was never made."
    assert narration.afterwards(shot) == "READY (unchanged); the run can continue"


def test_redeliveries_are_told_by_their_number() -> None:
    counted: dict[str, Any] = {"redeliveries": 7, "commands_again": 3, "drove_the_run": 1}
    shot = told("IGNORED", injector="double_exec", unaccounted=2, **counted)
    assert "7 more times and start and resume the run again" in narration.attempt(shot)
    assert narration.outcome(shot) == (
        "No effect: 4 of 7 duplicates ignored, 3 commands refused; "
        "1 started the run's own next step; 2 not answered in time."
    )


@pytest.mark.parametrize(
    ("what", "attempt"),
    [
        ("bytes", "Change the stored bytes of event #2"),
        ("hash", "Change the stored hash of event #2"),
        ("snapshot", "Change the run's stored state"),
    ],
)
def test_damage_is_told_by_its_place(
    owner: Visitor, held: RunHead, what: str, attempt: str
) -> None:
    shot = shot_at(owner, held, "corrupt_hash", envelope="1", what=what)
    assert narration.attempt(shot).startswith(attempt)
    assert narration.outcome(shot).startswith("Detected: ")
    assert narration.outcome(shot).endswith("The run was stopped.")
    assert narration.afterwards(shot) == "SUSPENDED → FAILED"


def test_a_swapped_program_is_told_to_be_back_in_place(owner: Visitor, ready: RunHead) -> None:
    shot = shot_at(owner, ready, "reorder_steps", how="swap the stored program")
    assert narration.attempt(shot).startswith("Replace the stored program")
    assert narration.outcome(shot).endswith("Original restored; the run continues.")


def test_a_payment_is_told_in_its_currency() -> None:
    paid = {"amount_minor": 128450, "currency": "EUR", "status": "succeeded"}
    yen = {"amount_minor": 900, "currency": "JPY", "status": "succeeded"}
    failed = {"amount_minor": 1, "currency": "EUR", "status": "requires_payment_method"}
    far = {"reachable": True, "payments": [paid, failed, yen]}
    assert narration.payments(told(far_side=far)) == "2 (EUR 1,284.50, JPY 900)"
    assert narration.payments(told(far_side={"reachable": True, "payments": []})) == "none"
    assert narration.payments(told(far_side={"reachable": False})).startswith("unknown")


def test_what_got_through_is_never_called_refused() -> None:
    assert narration.outcome(told(verdict="BLOCKED", integrity="BREACHED")) == "It got through."
    assert narration.outcome(told(verdict="ACCEPTED")).startswith("Accepted")


def told(
    verdict: str = "BLOCKED",
    integrity: str = "HELD",
    injector: str = "tool_injection",
    **evidence: object,
) -> Shot:
    known = {"id": "1", "params": {}, "rule": "CAP-001", "where": "", "headline": ""}
    said = {"verdict": verdict, "integrity": integrity, "injector": injector, "evidence": evidence}
    return Shot(**known, **said, created_ms=1, when="READY")  # type: ignore[arg-type]
