"""The guided tour: each stop does the real thing once, and says what is missing where it cannot."""

import re
from collections.abc import Iterator
from urllib.parse import parse_qs, urlsplit

import pytest

from dashboard.arena import target
from engine.models import Run
from engine.queries.runs import RunHead
from sabotage.models import Attack
from tests.dashboard.visitor import Visitor, by_code, words

pytestmark = pytest.mark.usefixtures("db")


@pytest.fixture(scope="module")
def tourist(owner: Visitor) -> Iterator[Visitor]:
    """A visitor for whom the runs are driven where a page would wait for the workers."""

    def driven(*_: object) -> bool:
        for run in Run.objects.filter(state__startswith="running."):
            owner.driven(run.code)
        return True

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(target, "wait_until", driven)
        yield owner


@pytest.fixture(scope="module")
def picked(tourist: Visitor) -> RunHead:
    """A run with which the first stop was taken."""
    return by_code(parse_qs(urlsplit(take(tourist, 1)).query)["run"][0])


@pytest.fixture(scope="module")
def shown_all(tourist: Visitor) -> RunHead:
    """A run with which the stops before the sixth were taken, which needs a queue."""
    code = parse_qs(urlsplit(take(tourist, 1)).query)["run"][0]
    for number in range(2, 6):
        assert take(tourist, number, by_code(code)) == f"/tour/{number + 1}/?run={code}"
        tourist.driven(code)
    return by_code(code)


def take(tourist: Visitor, number: int, run: RunHead | None = None, **form: str) -> str:
    """Press the button of a stop; returns where that led."""
    at = f"/tour/{number}/" + (f"?run={run.code}" if run else "")
    response = tourist.post(at, form)
    assert response.status_code == 303, response.content.decode()
    return str(response["Location"])


def panel(tourist: Visitor, number: int, run: RunHead | None = None) -> str:
    page = tourist.read(f"/tour/{number}/" + (f"?run={run.code}" if run else ""))
    return str(re.findall(r'<section id="tour".*?</section>', page, re.S)[0])


def offer(shown: str) -> str:
    """What the panel's own button would post to."""
    found = re.search(r'<form method="post" action="([^"]+)"', shown)
    return found[1] if found else ""


def test_the_start_page_leads_to_the_tour(tourist: Visitor) -> None:
    assert 'href="/tour/1/"' in tourist.read("/")
    assert "1 of 8" in words(panel(tourist, 1))
    for number in (0, 9, 10**12):
        assert tourist.get(f"/tour/{number}/").status_code == 404


def test_without_a_run_every_stop_offers_one_and_makes_none(tourist: Visitor) -> None:
    before = Run.objects.count()
    for number in range(2, 9):
        page = tourist.read(f"/tour/{number}/")
        assert "Pick an invoice first" in words(panel(tourist, number))
        assert 'action="/tour/1/" id="tour-pick"' in page
        assert take(tourist, number) == f"/tour/{number}/"
    assert Run.objects.count() == before


def test_the_tour_goes_from_an_invoice_to_an_erased_run_that_verifies(tourist: Visitor) -> None:
    run = tourist.make(pace="step", hold=True)
    for number in range(2, 6):
        take(tourist, number, by_code(run.code))
        tourist.driven(run.code)
    run = by_code(run.code)
    assert run.label == "SUCCESS"
    shot = Attack.objects.get(run_id=run.id)
    assert (shot.verdict, shot.rule, shot.integrity) == ("BLOCKED", "CAP-001", "HELD")
    assert offer(panel(tourist, 6, run)) == f"/tour/6/?run={run.code}"
    assert take(tourist, 7, run) == f"/tour/8/?run={run.code}"
    before = words(tourist.read(f"/tour/8/?run={run.code}"))
    assert f"Verified {run.length} of {run.length}" in before
    confirmed = {"reason": "art17-1-a", "confirm": f"ERASE {run.code}"}
    assert take(tourist, 8, run, **confirmed) == f"/tour/8/?run={run.code}"
    after = words(tourist.read(f"/tour/8/?run={run.code}"))
    erased = by_code(run.code)
    assert erased.erased_ms
    assert f"Verified {erased.length} of {erased.length}" in after
    assert "The personal data is gone" in after
    for number in range(2, 8):
        shown = panel(tourist, number, erased)
        assert "was erased" in words(shown)
        assert offer(shown) == "/tour/1/"


def test_a_wrong_confirmation_erases_nothing_and_is_said_on_the_same_page(
    tourist: Visitor, shown_all: RunHead
) -> None:
    wrong = {"reason": "", "confirm": "erase"}
    said = words(tourist.refused(f"/tour/8/?run={shown_all.code}", wrong))
    assert f"Type ERASE {shown_all.code} exactly. Nothing was erased." in said
    assert "8 of 8" in said
    assert not by_code(shown_all.code).erased_ms


# Before each stop is taken: what the later ones offer instead of themselves.
OFFERED = {2: {3: 2, 4: 2, 5: 2, 6: 2}, 3: {4: 3, 5: 3}, 4: {5: 4, 6: 5}, 5: {6: 5}}


def test_out_of_turn_a_stop_says_what_is_missing_and_offers_it(
    tourist: Visitor, picked: RunHead
) -> None:
    for taking, later in OFFERED.items():
        run = by_code(picked.code)
        for number, offered in later.items():
            shown = panel(tourist, number, run)
            assert 'data-kind="missing"' in shown
            assert offer(shown) == f"/tour/{offered}/?run={run.code}", (taking, number)
            assert "First: " in words(shown)
            if number != 5:  # whose own button lets any paused run go on
                assert take(tourist, number, run) == f"/tour/{number}/?run={run.code}"
                assert by_code(run.code).length == run.length
        key = {"Idempotency-Key": str(taking) * 32}  # a double click does it once
        assert take(tourist, taking, run, **key) == take(tourist, taking, run, **key)
    assert Attack.objects.get(run_id=picked.id).injector == "tool_injection"
    at = f"/tour/6/?run={picked.code}"  # it goes on now, and here nobody drives it
    response = tourist.get(at)
    assert response["Refresh"] == f"2; url={at}"
    assert "reloads automatically" in words(response.content.decode())


def test_what_was_done_is_not_done_again(tourist: Visitor, shown_all: RunHead) -> None:
    for number in range(2, 6):
        shown = panel(tourist, number, shown_all)
        assert 'data-kind="done"' in shown
        assert offer(shown) == ""
        take(tourist, number, shown_all)
    assert by_code(shown_all.code).length == shown_all.length
    assert Attack.objects.filter(run_id=shown_all.id).count() == 1
    key = {"Idempotency-Key": "a" * 32}
    assert take(tourist, 1, None, **key) == take(tourist, 1, None, **key)


def test_a_failed_run_sends_to_a_new_one(tourist: Visitor) -> None:
    run = by_code(tourist.make(sample="broken").code)
    for number in (3, 4, 5, 6):
        shown = panel(tourist, number, run)
        assert "This run is FAILED" in words(shown)
        assert offer(shown) == "/tour/1/"


def test_another_visitors_run_is_no_page(picked: RunHead) -> None:
    for number in range(1, 9):
        assert Visitor().get(f"/tour/{number}/?run={picked.code}").status_code == 404
        assert Visitor().post(f"/tour/{number}/?run={picked.code}").status_code == 404
    assert by_code(picked.code).label == "READY"
