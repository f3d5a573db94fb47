"""The swim lanes: what is drawn of a run, and that it stays bounded."""

import re

import pytest
from django.db import connection
from django.template.loader import render_to_string
from django.test.utils import CaptureQueriesContext

from dashboard.arena import target
from dashboard.runs.lanes import Lanes, lanes_of
from engine.models import Envelope, Run
from engine.privacy import erasure
from engine.queries import event_stream, steps
from engine.queries.record import record_of
from engine.queries.runs import RunHead, body_of
from engine.runtime import api
from nanovm_core.core.canonical import encode
from tests.dashboard.runs.test_damaged_rows import BODIES, forge
from tests.dashboard.visitor import TRANSFER, Visitor, by_code, words

pytestmark = pytest.mark.usefixtures("db")


def drawn(run: RunHead) -> tuple[Lanes, str]:
    """The lanes of a run as it is now, and their HTML."""
    run = by_code(run.code)
    found = lanes_of(record_of(run), steps.of_run(record_of(run)))
    return found, render_to_string("run/_lanes.html", {"run": run, "lanes": found})


def shapes(found: Lanes) -> list[str]:
    return [mark.shape for mark in found.marks]


def shown(found: Lanes) -> int:
    """How many events the dots stand for."""
    return sum(len(column.rows) for column in found.columns)


def test_a_paid_run_goes_from_the_document_over_model_and_gate_to_stripe(paid: RunHead) -> None:
    found, html = drawn(paid)
    assert shapes(found) == ["bar", "bar", "bar", "proposal", "allowed", "bar", "bar"]
    assert [mark.lane for mark in found.marks][3:6] == ["model", "gate", "stripe"]
    said = words(html)
    assert "allowed ✓" in said
    assert said.count("EUR 1,284.50") >= 2
    assert re.search(r"paid \d+(\.\d)? m?s", said)
    steps = re.findall(r'<a class="mark[^>]+href="([^"]+/steps/[^"]+)"', html)
    assert steps == [f"/runs/{paid.code}/steps/{n}/" for n in (1, 2, 3, 4, 5, 6, 7)]
    agents = re.findall(r'at-agent" title="([^"]+)">(\w+)<', html)
    told = [
        ("The reader begins", "reader"),
        ("reader→payer: vault", "payer"),
        ("payer→reader: propose", "reader"),
        ("reader→payer: authorize", "payer"),
    ]
    assert agents == [*told, told[-1]]  # the newest column always says whose it is
    assert shown(found) == paid.length
    assert "paused" not in found.total


def test_a_run_that_waits_for_its_start_says_so_and_draws_attacks(
    ready: RunHead, owner: Visitor
) -> None:
    found, html = drawn(ready)
    assert found.columns == ()
    assert "Not started yet." in words(html)
    assert "<a" not in html
    owner.fire(ready, "tool_injection", proposal=TRANSFER)
    found, html = drawn(ready)
    assert shapes(found).count("stop") == 1
    assert "Not started yet" in words(html)
    owner.command(by_code(ready.code), "start")
    first = Envelope.objects.get(run=ready.id, kind="intent", n=2)
    stream = event_stream.of_run(record_of(by_code(ready.code)))
    assert stream.started_ms == body_of(first.bytes)["at_ms"]


def test_a_blocked_proposal_ends_at_the_gate(owner: Visitor) -> None:
    run = owner.paused("propose")
    owner.fire(run, "tool_injection", proposal=TRANSFER)
    found, html = drawn(run)
    stop = next(mark for mark in found.marks if mark.shape == "stop")
    assert stop.href == f"/runs/{run.code}/events/{by_code(run.code).length}/"
    assert (stop.lane, stop.called) == ("gate", True)
    assert "stripe" not in [mark.lane for mark in found.marks]
    said = words(html)
    assert "wire_transfer" in said
    assert "USD 50,000" in said
    assert "CAP-001" in said


def test_erased_words_are_not_drawn(visitor: Visitor) -> None:
    run = visitor.make("over_limit")
    visitor.fire(run, "tool_injection", proposal=TRANSFER)
    assert "wire_transfer" in drawn(run)[1]
    erasure.erase_run(str(run.id), "art17-1-a", "visitor")
    assert "wire_transfer" not in drawn(run)[1]


def test_a_pause_is_drawn_with_its_length(owner: Visitor) -> None:
    run = owner.paused("vault")
    found, html = drawn(run)
    pauses = [mark for mark in found.marks if mark.shape == "pause"]
    assert len(pauses) == 2
    assert re.search(r"paused \d+(\.\d)? m?s", pauses[0].title)
    assert pauses[1].title.startswith("paused since ")
    assert ", of which " in found.total
    assert "paused since" in html


def test_a_model_thinks_after_a_pause_and_not_through_it(owner: Visitor) -> None:
    run = owner.paused("propose")
    target.open_question(run.id)
    assert ">thinks<" not in drawn(run)[1]
    api.resume(run.id, "visitor")
    newest = drawn(run)[0].columns[-1]
    assert (newest.still, newest.marks[0].title) == ("", "propose: in progress")


def test_a_hold_is_drawn_at_the_gate_and_that_a_person_approved_it(
    owner: Visitor, held: RunHead
) -> None:
    found, html = drawn(held)
    assert shapes(found)[-2:] == ["stop", "pause"]
    assert (found.marks[-2].text, found.marks[-2].under) == ("on hold: needs a person", "POL-020")
    assert "on hold since" in html
    owner.command(held, "approve")
    owner.driven(held.code)
    found, html = drawn(held)
    assert "approved ✓" in words(html)
    assert found.total.endswith(" on hold")


def test_advice_is_drawn_beside_the_model_and_named_where_it_holds(owner: Visitor) -> None:
    run = owner.make(advisor="asleep")
    found, html = drawn(run)
    advice = "risk 100 of 100, kind “other”, source “asleep: no answer”"
    [mark] = [each for each in found.marks if each.text == "risk 100"]
    assert (mark.lane, mark.under, mark.href) == ("model", "asleep", f"/runs/{run.code}/steps/4/")
    assert mark.title == f"advise: {advice}; it can hold the payment, never allow it"
    assert f"Advice: {advice}. It can hold the payment, never allow it." in words(html)
    page = words(owner.read(f"/runs/{run.code}/"))
    assert f"look at the invoice yourself. R{advice[1:]} advised-risk" in page
    assert "step 6 of 8, authorize" in page
    assert "advisor.assess" in owner.read(f"/audit/?run={run.code}&step=advise")


def test_damage_and_ignored_events_are_marked(owner: Visitor) -> None:
    run = owner.make()
    owner.fire(run, "skip_step")
    owner.fire(run, "corrupt_hash")
    assert by_code(run.code).quarantined
    found, html = drawn(run)
    assert "damage" in shapes(found)
    said = words(html)
    assert "damage found" in said
    assert "ignored" in said


def test_thousands_of_events_cost_and_draw_no_more(owner: Visitor) -> None:
    run = owner.make("over_limit")
    owner.fire(run, "tool_injection", proposal=TRANSFER)
    few = queries(run)
    last = Envelope.objects.filter(run=run.id).order_by("-n")[0]
    body = body_of(last.bytes)
    Envelope.objects.bulk_create(
        Envelope(
            workspace_id=last.workspace_id,
            seq=last.seq + more,
            run=last.run,
            n=last.n + more,
            bytes=encode({**body, "n": last.n + more, "rule": f"CAP-{more % 9:03}"}),
            hash=last.hash,
            kind=last.kind,
        )
        for more in range(1, 2_001)
    )
    Run.objects.filter(pk=run.id).update(length=last.n + 2_001)
    assert queries(run) == few
    found, html = drawn(run)
    assert len(found.marks) + len(found.columns) <= 60
    assert len(html) < 24_000
    assert f"{last.n + 2_001 - shown(found):,} older events not shown." in words(html)


def queries(run: RunHead) -> int:
    run = by_code(run.code)
    found = steps.of_run(record_of(run))
    with CaptureQueriesContext(connection) as seen:
        lanes_of(record_of(run), found)
    return len(seen)


@pytest.mark.parametrize("begin", range(len(BODIES)))
def test_damaged_events_break_no_drawing(paid: RunHead, begin: int) -> None:
    rows = list(Envelope.objects.filter(run=paid.id).order_by("n"))
    for place, row in enumerate(rows[2::3]):
        forge(row, BODIES[(begin + place) % len(BODIES)])
    found, _ = drawn(paid)
    assert shown(found) == paid.length
