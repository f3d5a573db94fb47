"""The page of a decision shows every check of it, for what was taken as for what was refused."""

import pytest

from engine.models import AdapterCall, Envelope
from engine.queries import why
from engine.queries.runs import RunHead, body_of
from pipeline.labels import CHARGE
from tests.dashboard.visitor import TRANSFER, Visitor, by_code

pytestmark = pytest.mark.usefixtures("db")

CHECKS = "5 checks (re-evaluated now)"


def pages(visitor: Visitor, run: RunHead, kind: str, step: str) -> list[str]:
    """The pages of the run's events of a kind at a step."""
    rows = Envelope.objects.filter(run=run.id, kind=kind).order_by("n")
    found = [row.n for row in rows if body_of(bytes(row.bytes)).get("step") == step]
    return [visitor.read(f"/runs/{run.code}/events/{n + 1}/") for n in found]


def test_a_refused_call_shows_the_check_that_failed_until_its_words_are_erased(
    owner: Visitor,
) -> None:
    run = owner.make(hold=True)
    owner.fire(run, "tool_injection", proposal=TRANSFER)
    url = f"/runs/{run.code}/events/{by_code(run.code).length}/"
    assert "This tool is not on the allowlist." in owner.read(url)
    owner.erase(run)
    assert CHECKS not in owner.read(url)
    assert CHECKS not in owner.read(f"/runs/{run.code}/events/1/")  # decides no call


def test_the_audit_compares_the_log_with_the_adapters_own_book(paid: RunHead) -> None:
    bodies = [body_of(each.bytes) for each in Envelope.objects.filter(run=paid.id).order_by("n")]
    (intent,) = [
        each for each in bodies if (each["kind"], each.get("step")) == ("intent", "charge")
    ]
    judged = [each for each in bodies if each.get("step") in ("authorize", "charge")]

    def audits() -> set[tuple[str, str]]:
        found = [why.checks_of(paid, body) for body in judged]
        return {(checks[-1].state, checks[-1].findings[0].text) for checks in found if checks}

    said = f"Recorded before the adapter made the call: event {intent['n'] + 1}."
    assert audits() == {("passed", said)}
    book = AdapterCall.objects.filter(run_id=paid.id, tool=CHARGE)
    book.update(at_ms=intent["at_ms"] - 1)
    assert {state for state, _ in audits()} == {"refused"}
    book.update(at_ms=intent["at_ms"], key="0" * 64)
    assert {state for state, _ in audits()} == {"refused"}
    book.delete()
    assert {state for state, _ in audits()} == {"not reached"}


def test_a_hold_is_told_with_its_rule_and_with_the_calls_that_it_was_lifted_for(
    owner: Visitor, held: RunHead
) -> None:
    (page,) = pages(owner, held, "suspended", "authorize")
    assert "over-limit" in page
    assert "$proposal.amount_minor &gt; 1000000" in page
    owner.command(held, "approve")
    owner.driven(held.code)
    (page,) = pages(owner, held, "result", "authorize")
    assert "Approved by a person." in page
    assert "A person must approve it first" not in page
    (page,) = pages(owner, held, "suspended", "authorize")
    assert "A person must approve it first" in page
