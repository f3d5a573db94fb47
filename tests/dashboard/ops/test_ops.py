"""Operations and reconciliation: the figures of one's own log, and differences that one checks."""

import re
from uuid import UUID

import pytest
from pytest_django.fixtures import Settings

from engine.models import Envelope, Workspace
from engine.ops import process_file, said
from engine.ops.process_file import Process, Processes
from engine.queries.runs import RunHead
from engine.runtime import agents, chains
from nanovm_core.agents import BY_RULE, RUNNING
from pipeline.reconcile import differences
from pipeline.reconcile.differences import Difference
from tests.dashboard.visitor import TRANSFER, Visitor, words

pytestmark = pytest.mark.usefixtures("own_folder", "db")

PAID: dict[str, str | int] = {"amount_minor": 128450, "currency": "EUR", "status": "succeeded"}
EDITED: dict[str, str | int] = {**PAID, "amount_minor": 998450}


def part(page: str, name: str) -> str:
    """What a section of a page says."""
    return words(page.partition(f'"{name}"')[2].partition("</section>")[0])


def differ(run: RunHead, code: str = "REC-003") -> str:
    """Seal what the controller does of a payment that was edited; the difference's id."""
    found = Difference(code=code, payment="ab" * 32, run=run.id, log=PAID, stripe=EDITED)
    assert differences.seal(UUID(run.workspace), found)
    return found.id


def waits(visitor: Visitor) -> int:
    """What the menu says of the inbox."""
    found = re.search(r"Inbox \((\d+)\)", visitor.read("/docs/"))
    return int(found[1]) if found else 0


def sealed(run: RunHead) -> int:
    return Envelope.objects.filter(workspace_id=run.workspace).count()


def test_figures_are_those_of_ones_own_log(visitor: Visitor) -> None:
    empty, count = visitor.read("/ops/"), Workspace.objects.count()
    assert "Your workspace has no audit log yet." in words(empty)
    assert Workspace.objects.count() == count
    visitor.make()
    approved, declined, _ = (visitor.make("over_limit") for _ in range(3))
    visitor.command(declined, "decline")
    visitor.command(approved, "approve")
    visitor.driven(approved.code)
    visitor.fire(visitor.make(hold=True), "tool_injection", proposal=TRANSFER)
    page = visitor.read("/ops/")
    now = part(page, "now-title")
    assert re.search(
        r"1 on hold now, the oldest for [\d.]+ m?s 50 % approved: 1 of 2 decisions", now
    )
    assert re.search(r" [\d.]+ m?s median time to decide 0 differences from Stripe$", now)
    assert re.search(r"CAP-\d\d\d [A-Z].* 1 1$", part(page, "refusals-title"))
    assert re.search(r" 2 EUR [\d,.]+$", part(page, "payments-title"))
    stranger = Visitor()
    stranger.make(hold=True)
    theirs = words(stranger.read("/ops/"))
    assert "0 on hold now – approved: no decision yet" in theirs
    assert "No rule refused anything in these days." in theirs
    assert "No payment in the last 7 days." in theirs


def test_installation_says_what_a_person_has_to_look_at(
    visitor: Visitor, settings: Settings
) -> None:
    assert "no supervisor runs here" in part(visitor.read("/ops/"), "here-title")
    settings.REDIS_URL = "redis://127.0.0.1:9/0"
    ended = Process(agent="payer", restarts=2, restarted_ms=3_600_000)
    process_file.write(Processes(processes={"payer-1": ended}))
    said.say("follow", "The collector answers 500: see its log.", behind=3)
    here = part(visitor.read("/ops/"), "here-title")
    for says in ("payer-1 2, last at 01:00:00", "does not answer (ConnectionError)",
                 "The collector answers 500", "not in use: manage.py controller"):  # fmt: skip
        assert says in here, here
    process_file.remove()


def test_page_says_when_all_was_compared_and_shows_everybody_what_is_nobodys(
    visitor: Visitor,
) -> None:
    assert "Not compared now. Controller: not in use" in words(visitor.read("/reconcile/"))
    said.say("controller", compared=12)
    nobodys = Difference("REC-001", "cd" * 32, "", {}, EDITED)
    assert differences.seal(chains.house(), nobodys)
    page = visitor.read("/reconcile/")
    assert "s ago : 12 payments of all workspaces" in words(page)
    assert "no call of a run was allowed for it EUR 9,984.50" in part(page, "everyones-title")
    assert "I checked this" not in words(page)
    assert visitor.post("/reconcile/check/", {"difference": nobodys.id}).status_code == 404
    said.say("controller", "Stripe's list did not end: nothing was concluded.")
    assert "Not compared now. Controller: Stripe's list" in words(visitor.read("/reconcile/"))


def test_difference_is_seen_checked_once_and_its_payer_resumed(visitor: Visitor) -> None:
    run = visitor.make()
    assert "No open difference" in words(visitor.read("/reconcile/"))
    before, name = waits(visitor), differ(run)
    assert waits(visitor) == before + 2  # the difference, and the agent that it stopped
    assert agents.read(UUID(run.workspace)).agents["payer"].state == BY_RULE
    assert "Compare both" in words(visitor.read(f"/runs/{run.code}/"))
    for path in ("/reconcile/", "/inbox/?tab=differences"):
        row = part(visitor.read(path), "open-title")
        for says in ("EUR 1,284.50 succeeded", "EUR 9,984.50 succeeded", "REC-003", run.code):
            assert says in row, row
    assert "1 difference from Stripe" in words(visitor.read("/ops/"))
    assert '<a href="/reconcile/">differences from' in visitor.read("/agents/payer/")
    event = re.search(r'href="(/audit/[^"]*kind=observation)"', visitor.read("/reconcile/"))
    assert event is not None
    assert "1 event," in words(visitor.read(event[1].replace("&amp;", "&")))
    form, size = {"difference": name}, sealed(run)
    answers = [visitor.post("/reconcile/check/", form) for _ in range(2)]
    assert [each["Location"] for each in answers] == [f"/reconcile/?checked={name}"] * 2
    assert sealed(run) == size + 1
    page = visitor.read(answers[0]["Location"])
    assert "Recorded: visitor checked this difference" in words(page)
    assert "Checked by visitor" in part(page, "closed-title")
    assert "it may go on. Resume payer" in words(page)
    visitor.post("/agents/payer/resume/")
    assert agents.read(UUID(run.workspace)).agents["payer"].state == RUNNING
    assert waits(visitor) == before


def test_a_stranger_neither_sees_nor_closes_a_difference(visitor: Visitor) -> None:
    run, stranger = visitor.make(), Visitor()
    name = differ(run)
    size = sealed(run)
    for other in (Visitor(), stranger):
        for path in ("/reconcile/", "/inbox/?tab=differences", f"/reconcile/?checked={name}"):
            page = other.read(path)
            assert name not in page
            assert "9,984.50" not in page
            assert run.code not in page
        assert other.post("/reconcile/check/", {"difference": name}).status_code == 404
        stranger.make(hold=True)
    assert sealed(run) == size
