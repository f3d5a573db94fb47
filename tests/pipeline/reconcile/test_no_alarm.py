"""The controller: honest runs and bad lists raise no alarm."""

import random
from collections.abc import Callable
from itertools import product
from typing import Any

import pytest
import stripe

from engine.errors import OutcomeUnknownError
from engine.models import Run
from pipeline.reconcile.turns import Turns
from pipeline.steps.charge import gateway
from tests.kit.house import House, bodies, invoice
from tests.pipeline.after_payment.events import delivered, driven, every, happened, listening
from tests.pipeline.after_payment.pages import DEBIT, DOLLARS, THREE_D_SECURE, press, settle
from tests.pipeline.reconcile.world import GONE, changed, edited, lying, refunded, two


def honest(house: House, dice: random.Random) -> list[Run]:
    """Runs of each kind, in any order: paid, declined, under way, authenticated, given back."""
    total = iter(range(100, 10_000))

    def run(method: str = "pm_card_visa") -> Run:
        return house.run(invoice(f"Total  USD {next(total)}.00"), payment_method=method)

    def later(kind: str) -> Run:
        given = run("pm_card_createDispute" if kind == "disputed" else "pm_card_visa")
        if kind == "refunded":
            refunded(given, dice.randrange(1, 9_000))
        for event in (*happened(given, "charge."), *every("refund."), *every("charge.dispute.")):
            assert delivered(event) == 200
        return driven(given)

    def completed(method: str) -> Run:
        given = run(method)
        settle(given, "succeeded") if method == DEBIT else press(given, "complete")
        assert delivered(happened(given, "payment_intent.succeeded")[0]) == 200
        return driven(given)

    ways: list[Callable[[], Run]] = [
        run,
        lambda: run("pm_card_chargeDeclined"),
        lambda: run(THREE_D_SECURE),
        lambda: run(DEBIT),
        lambda: completed(THREE_D_SECURE),
        lambda: completed(DEBIT),
        lambda: later("refunded"),
        lambda: later("disputed"),
    ]
    dice.shuffle(ways)
    return [way() for way in ways]


def honest_runs(house: House, monkeypatch: pytest.MonkeyPatch, rounds: int, seed: int) -> int:
    listening(monkeypatch)
    dice, turns, count = random.Random(seed), Turns(), 0  # noqa: S311 - a test's own order
    for _ in range(rounds):
        count += len(honest(house, dice))
        last = two(turns)
        assert (last.open, last.why) == ({}, "")
    assert not [each for each in bodies("log") if "REC-00" in str(each)]
    return count


@pytest.mark.parametrize("rounds", [1, pytest.param(125, marks=pytest.mark.soak)])
def test_honest_runs_raise_no_alarm(
    house: House, monkeypatch: pytest.MonkeyPatch, rounds: int
) -> None:
    assert honest_runs(house, monkeypatch, rounds, seed=rounds) == 8 * rounds


BAD: dict[str, tuple[Callable[[list[Any]], list[Any]], str]] = {
    "cut off": (lambda each: each[:1], "lacked a payment"),
    "reordered": (lambda each: each[::-1], ""),
    "repeated": (lambda each: each * 3, ""),
    "of live mode": (lambda each: [*each, changed(each[0], id="pi_x", livemode=True)], ""),
    "without an id": (lambda each: [*each, changed(each[0], id=None)], "not of the form"),
    "of wrong types": (lambda each: [*each, changed(each[0], amount_received="1")], "not of"),
    "of no objects": (lambda each: [*each, None], "not of the form"),
    "without charges": (lambda each: [changed(one, latest_charge=None) for one in each], "not of"),
}


def test_bad_list_raises_no_alarm_and_says_why(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    for total in ("120", "77", "78"):
        house.run(invoice(f"Total  USD {total}.00"))
    for how, (change, why) in BAD.items():
        with monkeypatch.context() as patch:
            lying(patch, change)
            last = two(Turns())
        assert (last.open, why in last.why, bool(last.why)) == ({}, True, bool(why)), how


FAILS: tuple[Exception, ...] = (
    OutcomeUnknownError("STR-004", "endless"),
    stripe.APIConnectionError("away"),  # type: ignore[no-untyped-call]
    stripe.AuthenticationError("no"),
    stripe.APIError("500"),
)


def test_list_that_is_not_read_to_its_end_concludes_nothing_from_absence(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, honest_list, turns = house.run(DOLLARS), gateway.listed, Turns()
    edited(house, run, lambda _: GONE)
    for error, place in product(FAILS, ("payment_intents", "refunds", "disputes")):

        def listed(kind: str, since_ms: int, *, there: str = place, **more: Any) -> Any:
            yield from honest_list(kind, since_ms, **more)
            if kind == there:
                raise error  # noqa: B023 - called within the round

        with monkeypatch.context() as patch:
            patch.setattr(gateway, "listed", listed)
            last = two(turns)
        assert (last.open, "list of Stripe's" in last.why) == ({}, True), (place, error)
    assert two(turns).open == {"REC-002": 1}
