"""Windows count exactly what happened within their time, however much that is."""

from dataclasses import replace
from random import Random

import pytest

from nanovm_core.core.authority.capabilities import Grant, attenuate, grant_id, narrower
from nanovm_core.core.authority.windows import Rate, Window, with_result
from nanovm_core.errors import RefusedError
from nanovm_core.ledger.memory import InMemoryLedger
from tests.core.gate.cashier import call, facts, gate
from tests.core.kit.window_histories import AGENTS, PAY, PROGRAM, Happened, drawn, expected

BATCHES, HISTORIES = 100, 100  # 10,000 in all
SEEDS = [0, *(pytest.param(seed, marks=pytest.mark.soak) for seed in range(1, BATCHES))]
BILLED = replace(
    PROGRAM,
    windows=(
        Window(name="calls", counts="calls", within_ms=100),
        Window(name="spent", counts="spent", within_ms=100, currency="EUR"),
    ),
)


@pytest.mark.parametrize("seed", SEEDS)
def test_generated_histories_are_counted_as_by_the_definition(seed: int) -> None:
    for number in range(HISTORIES):
        dice = Random(f"{seed}/{number}")  # noqa: S311  # it chooses examples
        ledger, past = InMemoryLedger(), list[Happened]()
        for _ in range(dice.randint(1, 40)):
            past.append(drawn(dice, ledger.at_ms))
            at_ms, agent, kind, body = past[-1]
            before = ledger.counts(PROGRAM, agent, at_ms)
            ledger.record(PROGRAM, agent, kind, at_ms, body)
            if kind in ("result", "failed") and ledger.at_ms == at_ms:
                check_with_result(past[-1], before, ledger)
            later_ms, agent = ledger.at_ms + dice.choice((0, 1, 7, 8, 41)), dice.choice(AGENTS)
            found = ledger.counts(PROGRAM, agent, later_ms)
            assert found == expected(past, agent, later_ms), (seed, number)


def check_with_result(happened: Happened, before: object, ledger: InMemoryLedger) -> None:
    """A result that is about to be sealed counts as it does afterwards."""
    at_ms, agent, kind, body = happened
    if body["tool"] not in PROGRAM.granted or body.get("outcome") == "waiting":
        return
    by = PROGRAM.acting(body["tool"], agent)
    spent = {
        name.removeprefix("workspace/"): amount
        for name, amount in body.get("budget", {}).get("spent", {}).items()
        if name.startswith("workspace/")
    }
    told = with_result(PROGRAM.windows, before, body["tool"], by, kind, spent)  # type: ignore[arg-type]
    assert told == ledger.counts(PROGRAM, agent, at_ms)


@pytest.mark.parametrize("often", [1, 5, 128, 150, 256, 257, 1_000, 10_000])
def test_a_window_counts_any_number_and_money_to_the_unit(often: int) -> None:
    ledger = InMemoryLedger()
    for n in range(often):
        spent = {"workspace/EUR": n, "run/EUR": n}
        ledger.record(BILLED, "ann", "intent", 1_000, {"tool": PAY})
        ledger.record(BILLED, "ann", "result", 1_000, {"tool": PAY, "budget": {"spent": spent}})
    whole = {"calls": often, "spent": often * (often - 1) // 2, f"rate/{PAY}": often}
    assert ledger.counts(BILLED, "ann", 1_000) == whole
    assert ledger.counts(BILLED, "ann", 1_100) == {**whole, f"rate/{PAY}": 0}  # its last ms
    assert set(ledger.counts(BILLED, "ann", 1_101).values()) == {0}
    assert ledger.counts(BILLED, "ann", 0) == whole  # time does not go back


def test_a_grants_rate_holds_each_new_call_and_none_that_is_handed_out_again() -> None:
    """CAP-041, at its number; where nobody counted, nothing is allowed."""
    held = gate(grants={"pay": Grant(tool="pay", rate=Rate(calls=5, within_ms=60_000))})
    for made, code in ((0, ""), (4, ""), (5, "CAP-041"), (6, "CAP-041"), (None, "CAP-041")):
        known = facts(counts={} if made is None else {"rate/pay": made})
        findings = held.explain(call(), known)
        assert [each.code for each in findings if each.check == "rate"] == [code]
        if code:
            with pytest.raises(RefusedError, match=code):
                held.permit(call(), known)
            with pytest.raises(RefusedError, match=code):
                held.permit_own(call(), known)
        else:
            held.permit(call(), known)
        held.permit_own(call(), known, again=True)


SLOW, FAST = Rate(calls=2, within_ms=100), Rate(calls=3, within_ms=50)


@pytest.mark.parametrize(
    ("inner", "outer", "fits"),
    [
        *((None, None, True), (SLOW, None, True), (None, SLOW, False), (SLOW, SLOW, True)),
        *((SLOW, FAST, True), (FAST, SLOW, False)),
        (replace(SLOW, calls=3), SLOW, False),
        (replace(SLOW, within_ms=99), SLOW, False),
    ],
)
def test_a_grant_is_narrowed_to_a_rarer_rate_alone(
    inner: Rate | None, outer: Rate | None, fits: bool
) -> None:
    wide, narrow = Grant(tool="t", rate=outer), Grant(tool="t", rate=inner)
    assert narrower(narrow, wide) is fits
    assert (grant_id(wide) == grant_id(narrow)) is (inner == outer)
    if not fits:
        with pytest.raises(RefusedError, match="CAP-030"):
            attenuate({"t": wide}, [narrow])
