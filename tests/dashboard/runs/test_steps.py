"""A step's page and the rows of events: input, output, who triggered and what decided."""

import re

import pytest

from engine.queries import log
from engine.queries.runs import RunHead
from engine.runtime import step_times
from tests.dashboard.visitor import TRANSFER, Visitor, by_code, words

pytestmark = pytest.mark.usefixtures("db")


def step(owner: Visitor, run: RunHead, number: int) -> str:
    return words(owner.read(f"/runs/{run.code}/steps/{number}/"))


def test_the_model_s_step_shows_what_was_sent_and_the_answer_with_its_verdict(
    owner: Visitor, paid: RunHead
) -> None:
    page = step(owner, paid, 4)
    assert '"payee": "the invoice\'s payee"' in page
    assert '"amount_minor": 128450' in page
    assert re.search(r"Output: event \d+ , by model → ACCEPTED \(rule within-limit\)", page)
    assert "Nordlicht" not in page


def test_every_refused_answer_is_shown_with_its_rule(owner: Visitor) -> None:
    page = step(owner, owner.make("injected", model="gullible"), 4)
    assert page.count("BLOCKED (rule CAP-001)") == 3
    assert page.count("wire_transfer") >= 3


@pytest.mark.parametrize(("number", "texts"), [
    (5, ("5 checks (re-evaluated now)", "Decided by rule within-limit", "Rule not triggered.")),
    (6, ("EUR 1,284.50", "Idempotency key", "Metadata: code {}", "pm_card_visa",
         "Payment status succeeded", "pi_", "Adapter log")),
])  # fmt: skip
def test_a_step_shows_its_checks_or_its_request_and_its_response(
    owner: Visitor, paid: RunHead, number: int, texts: tuple[str, ...]
) -> None:
    page = step(owner, paid, number)
    assert [each for each in texts if each.format(paid.code) not in page] == []


def test_input_and_output_are_tombstones_after_an_erasure(owner: Visitor) -> None:
    run = owner.make()
    before = [step(owner, run, number) for number in (3, 6, 7)]
    assert ("Nordlicht" in before[0], "pi_" in before[1]) == (True, True)
    owner.erase(run)
    for number in (3, 4, 6, 7):
        assert "[REDACTED_TOMBSTONE]" in step(owner, run, number)
    assert "pi_" not in step(owner, run, 6)


def test_no_event_is_decided_by_the_model(owner: Visitor, paid: RunHead, held: RunHead) -> None:
    owner.fire(held, "tool_injection", proposal=TRANSFER)
    owner.command(held, "approve")
    owner.driven(held.code)
    rows = [*log.rows_of(paid), *log.rows_of(by_code(held.code))]
    found = {(row.kind, row.step, row.decided_by) for row in rows}
    rules = {f"rule {name}" for name in ("within-limit", "over-limit", "CAP-001")}
    assert {decider for *_, decider in found} == {"program", "visitor", *rules}
    assert ("result", "authorize", "rule within-limit") in found
    assert ("suspended", "authorize", "rule over-limit") in found
    assert {("resumed", "authorize", "visitor"), ("intent", "charge", "visitor")} <= found
    assert ("intent", "receive", "program") in found


def test_a_row_of_the_payment_has_its_amount(owner: Visitor, paid: RunHead, held: RunHead) -> None:
    for run, amount in ((paid, "EUR 1,284.50"), (held, "EUR 18,400.00")):
        rows = log.rows_of(run)
        about = [row for row in rows if row.step in ("authorize", "charge")]
        assert {row.amount for row in about if row.kind != "message"} == {amount}
        assert {row.amount for row in rows if row.step == "receive"} == {""}


def test_an_event_has_one_number_and_the_raw_ones_are_folded(owner: Visitor, paid: RunHead) -> None:
    assert "reader→payer" in owner.read(f"/runs/{paid.code}/events/6/")
    page = owner.read(f"/runs/{paid.code}/events/8/")
    before, _, raw = page.partition('<details class="card" id="raw">')
    assert "<h1>Event 8: result</h1>" in before
    assert ("seq" in words(before), "n = 7 in the run, seq = 15" in words(raw)) == (False, True)


def test_the_time_of_a_step_is_shown_by_part_where_it_was_recorded(
    owner: Visitor, paid: RunHead, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "Where the time went Not recorded. " in step(owner, paid, 6)
    assert "decided in the commit of the one before" in step(owner, paid, 5)
    kept = {"stripe": 41.26, "rest": 1_200.0, "whole": 1_241.26}
    asked: list[tuple[str, str]] = []

    def of_step(run: str, name: str) -> dict[str, float]:
        asked.append((run, name))
        return kept

    monkeypatch.setattr(step_times, "of_step", of_step)
    page = step(owner, paid, 6)
    assert asked == [(paid.id, "charge")]
    assert "Stripe 41.3 ms Everything else 1,200.0 ms In all 1,241.3 ms" in page
