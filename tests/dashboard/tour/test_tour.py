"""The guided tour: each stop does the real thing once, and says what is missing where it cannot."""

import re
from collections.abc import Callable
from urllib.parse import parse_qs, urlsplit

import pytest

from dashboard.arena import target
from pipeline.models import Run
from pipeline.queries.runs import RunHead
from sabotage.models import Attack
from tests.dashboard.visitor import Visitor, by_code, words


@pytest.fixture
def tourist(visitor: Visitor, monkeypatch: pytest.MonkeyPatch) -> Visitor:
    """A visitor for whom the runs are driven where a page would wait for the workers."""

    def driven(_holds: Callable[[], bool], _limit_ms: int | None = None) -> bool:
        for run in Run.objects.filter(state__startswith="running."):
            visitor.driven(run.code)
        return True

    monkeypatch.setattr(target, "wait_until", driven)
    return visitor


def take(tourist: Visitor, number: int, run: RunHead | None = None, **form: str) -> str:
    """Press the button of a stop; returns where that led."""
    at = f"/tour/{number}/" + (f"?run={run.code}" if run else "")
    response = tourist.post(at, form)
    assert response.status_code == 303, response.content.decode()
    return str(response["Location"])


def taken(tourist: Visitor, upto: int) -> RunHead:
    """A run with which the stops before this one were taken."""
    code = parse_qs(urlsplit(take(tourist, 1)).query)["run"][0]
    for number in range(2, upto):
        assert take(tourist, number, by_code(code)) == f"/tour/{number + 1}/?run={code}"
        tourist.driven(code)
    return by_code(code)


def panel(tourist: Visitor, number: int, run: RunHead | None = None) -> str:
    page = tourist.read(f"/tour/{number}/" + (f"?run={run.code}" if run else ""))
    found = re.search(r'<section id="tour".*?</section>', page, re.S)
    assert found
    return found[0]


def offer(shown: str) -> str:
    """What the panel's own button would post to."""
    found = re.search(r'<form method="post" action="([^"]+)"', shown)
    return found[1] if found else ""


def test_the_start_page_leads_to_the_tour(tourist: Visitor) -> None:
    assert 'href="/tour/1/"' in tourist.read("/")
    assert "1 of 8" in words(panel(tourist, 1))


def test_a_look_makes_nothing(tourist: Visitor) -> None:
    for number in range(1, 9):
        tourist.read(f"/tour/{number}/")
    assert not Run.objects.exists()


def test_the_tour_goes_from_an_invoice_to_an_erased_run_that_verifies(tourist: Visitor) -> None:
    run = taken(tourist, upto=6)  # a replay needs the queue: it is seen in the browser
    assert run.label == "SUCCESS"
    shot = Attack.objects.get()
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


def test_a_wrong_confirmation_erases_nothing_and_is_said_on_the_same_page(tourist: Visitor) -> None:
    run = taken(tourist, upto=6)
    response = tourist.post(f"/tour/8/?run={run.code}", {"reason": "", "confirm": "erase"})
    assert response.status_code == 422
    said = words(response.content.decode())
    assert f"Type ERASE {run.code}, exactly so. Nothing was erased." in said
    assert "8 of 8" in said
    assert not by_code(run.code).erased_ms


@pytest.mark.parametrize("number", range(2, 9))
def test_without_a_run_every_stop_offers_one(tourist: Visitor, number: int) -> None:
    page = tourist.read(f"/tour/{number}/")
    assert "pick an invoice first" in words(panel(tourist, number))
    assert 'action="/tour/1/" id="tour-pick"' in page
    assert take(tourist, number) == f"/tour/{number}/"
    assert not Run.objects.exists()


# Before each stop is taken: what the later ones offer instead of themselves.
OFFERED = {2: {3: 2, 4: 2, 5: 2, 6: 2}, 3: {4: 3, 5: 3}, 4: {5: 4, 6: 5}, 5: {6: 5}}


def test_out_of_turn_a_stop_says_what_is_missing_and_offers_it(tourist: Visitor) -> None:
    run = taken(tourist, upto=2)
    for taking, later in OFFERED.items():
        run = by_code(run.code)
        for number, offered in later.items():
            shown = panel(tourist, number, run)
            assert 'data-kind="missing"' in shown
            assert offer(shown) == f"/tour/{offered}/?run={run.code}", (taking, number)
            assert "First: " in words(shown)
            if number != 5:  # whose own button lets any paused run go on
                assert take(tourist, number, run) == f"/tour/{number}/?run={run.code}"
                assert by_code(run.code).length == run.length
        take(tourist, taking, run)
    assert [shot.injector for shot in Attack.objects.all()] == ["tool_injection"]


def test_what_was_done_is_not_done_again(tourist: Visitor) -> None:
    run = taken(tourist, upto=6)
    for number in range(2, 6):
        shown = panel(tourist, number, run)
        assert 'data-kind="done"' in shown
        assert offer(shown) == ""
        take(tourist, number, run)
    assert by_code(run.code).length == run.length
    assert Attack.objects.count() == 1


def test_a_double_click_is_one_run_and_one_attack(tourist: Visitor) -> None:
    key = {"Idempotency-Key": "a" * 32}
    assert take(tourist, 1, None, **key) == take(tourist, 1, None, **key)
    assert Run.objects.count() == 1
    run = taken(tourist, upto=4)
    again = {"Idempotency-Key": "b" * 32}
    assert take(tourist, 4, run, **again) == take(tourist, 4, run, **again)
    assert Attack.objects.count() == 1


def test_an_erased_or_failed_run_sends_to_a_new_one(tourist: Visitor) -> None:
    run = taken(tourist, upto=6)
    tourist.erase(run)
    for number in range(2, 8):
        shown = panel(tourist, number, by_code(run.code))
        assert "was erased" in words(shown)
        assert offer(shown) == "/tour/1/"
    broken = tourist.make(sample="broken", pace="step", hold=True)
    tourist.command(broken, "start")
    tourist.driven(broken.code)
    while not by_code(broken.code).ended:
        tourist.command(by_code(broken.code), "step")
        tourist.driven(broken.code)
    for number in (3, 4, 5, 6):
        shown = panel(tourist, number, by_code(broken.code))
        assert "This run is FAILED" in words(shown)
        assert offer(shown) == "/tour/1/"


def test_a_run_at_work_is_waited_for_without_a_script(tourist: Visitor) -> None:
    run = taken(tourist, upto=5)
    take(tourist, 5, run)  # it goes on now, and here nobody drives it
    response = tourist.get(f"/tour/6/?run={run.code}")
    assert response["Refresh"] == f"2; url=/tour/6/?run={run.code}"
    assert "looks again by itself" in words(response.content.decode())


def test_another_visitors_run_is_no_page(tourist: Visitor, arrive: Callable[[], Visitor]) -> None:
    run = taken(tourist, upto=2)
    for number in range(1, 9):
        assert arrive().get(f"/tour/{number}/?run={run.code}").status_code == 404
        assert arrive().post(f"/tour/{number}/?run={run.code}").status_code == 404
    assert by_code(run.code).label == "READY"


@pytest.mark.parametrize("number", [0, 9, 10**12])
def test_there_are_eight_stops(tourist: Visitor, number: int) -> None:
    assert tourist.get(f"/tour/{number}/").status_code == 404
