"""What a card tells of an attack: the attempt with its values, the outcome, the payments."""

from typing import Any

import pytest

from dashboard.verdicts import cards, narration, step_order
from dashboard.verdicts.cards import Shot
from engine.queries.runs import RunHead
from tests.dashboard.visitor import TRANSFER, Visitor, by_code, words

pytestmark = pytest.mark.usefixtures("db")

KEPT_NOTHING = "Make the model call a tool. Its text is not stored: the run had ended."


def shot_at(visitor: Visitor, run: RunHead, injector: str, **params: object) -> Shot:
    visitor.fire(run, injector, **params)
    return cards.of_run(by_code(run.code)).shots[0]


def test_an_injected_call_is_told_by_its_tool_until_it_is_erased(owner: Visitor) -> None:
    run = owner.make(hold=True)
    shot = shot_at(owner, run, "tool_injection", proposal=TRANSFER)
    assert narration.attempt(shot) == "Make the model call wire_transfer."
    owner.erase(run)
    erased = cards.of_run(by_code(run.code)).shots[0]
    assert narration.attempt(erased) == "Make the model call a tool. Its text was erased."
    assert "a call whose text was erased" in narration.summary(erased)


def test_an_injected_call_after_the_end_is_told_without_its_words(
    owner: Visitor, paid: RunHead
) -> None:
    shot = shot_at(owner, paid, "tool_injection", proposal=TRANSFER)
    assert narration.outcome(shot) == "No effect: the run has ended."
    assert narration.attempt(shot) == KEPT_NOTHING
    assert ">Proposed</" not in owner.read(f"/runs/{paid.code}/attacks/{shot.id}/")
    assert narration.attempt(told(verdict="IGNORED")) == KEPT_NOTHING


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


def test_a_payment_is_told_in_its_currency() -> None:
    paid = {"amount_minor": 128450, "currency": "EUR", "status": "succeeded"}
    yen = {"amount_minor": 900, "currency": "JPY", "status": "succeeded"}
    failed = {"amount_minor": 1, "currency": "EUR", "status": "requires_payment_method"}
    far = {"reachable": True, "payments": [paid, failed, yen]}
    assert narration.payments(told(far_side=far).evidence) == "2 (EUR 1,284.50, JPY 900)"
    assert narration.payments(told(far_side={"reachable": True, "payments": []}).evidence) == "none"
    assert narration.payments(told(far_side={"reachable": False}).evidence).startswith("unknown")


SUM = {"amount_minor": 128450, "currency": "EUR"}
PAID = {"reachable": True, "payments": [{**SUM, "status": "succeeded"}]}


@pytest.mark.parametrize(
    ("evidence", "said"),
    [
        ({"at_stake": SUM, "far_side": PAID}, "A second payment of EUR 1,284.50 was not made."),
        (
            {"at_stake": SUM, "far_side": {"reachable": True, "payments": []}},
            "A duplicate payment of EUR 1,284.50 was not made.",
        ),
        ({"at_stake": {}, "far_side": PAID}, "A second payment of EUR 1,284.50 was not made."),
        ({"at_stake": {}, "far_side": {"reachable": False}}, narration.BEFORE),
        (
            {"at_stake": SUM, "far_side": {"reachable": False}},
            f"EUR 1,284.50 was at stake. Payments: {narration.NOT_KNOWN}.",
        ),
        ({}, ""),  # of an older release
    ],
)
def test_duplicates_are_told_with_the_sum_at_stake(evidence: dict[str, Any], said: str) -> None:
    shot = told("IGNORED", injector="double_exec", redeliveries=7, before="READY", **evidence)
    assert narration.stake(shot) == said
    assert (narration.advice(shot) == narration.FIRE_LATER) == (said == narration.BEFORE)
    assert narration.stake(told("ACCEPTED", injector="double_exec", **evidence)) == ""
    if said == narration.BEFORE:
        assert narration.summary(shot) == "Ignored: 7 duplicate messages before any payment"


def row(shot: Shot) -> list[str]:
    """The row of steps, a text each."""
    return [
        f"{step.number} {step.name} {step.says}".strip() + " *" * step.here
        for step in step_order.steps_of(shot)
    ]


def test_skipped_steps_are_marked_in_the_row_of_steps(owner: Visitor) -> None:
    run = owner.paused("propose")
    shot = shot_at(owner, run, "skip_step", skip="charge without authorize")
    assert row(shot) == [
        *("1 receive", "2 extract", "3 vault"),
        *("4 propose skipped by the attack *", "5 authorize skipped by the attack"),
        *("6 charge reported as done by the attack", "7 seal"),
    ]
    page = words(owner.read(f"/runs/{run.code}/attacks/{shot.id}/"))
    assert "4 propose : skipped by the attack (the run was here) 5 authorize : skipped" in page
    late = shot_at(owner, run, "skip_step", skip="result of a step", step="vault")
    assert [text for text in row(late) if "attack" in text] == [
        "3 vault reported as done by the attack"
    ]


def test_moved_steps_are_marked_in_the_order_that_the_attack_wanted(
    owner: Visitor, ready: RunHead
) -> None:
    how = {"how": "resume under a permuted program", "order": "charge before authorize"}
    shot = shot_at(owner, ready, "reorder_steps", **how)
    assert row(shot) == [
        *("1 receive *", "2 extract", "3 vault", "4 propose"),
        *("6 charge moved to place 5", "5 authorize moved to place 6", "7 seal"),
    ]
    assert ">Proposed</" not in owner.read(f"/runs/{ready.code}/attacks/{shot.id}/")
    shot = shot_at(owner, ready, "reorder_steps", how="results in the reverse order")
    assert [text.split()[0] for text in row(shot)] == ["7", "6", "5", "4", "3", "2", "1"]


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
