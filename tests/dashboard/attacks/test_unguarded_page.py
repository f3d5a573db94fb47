"""The card that sets the product's verdict beside that of a copy without the guard."""

import html
import re
from typing import Any

import pytest
from django.conf import settings

from mutations.patching import ROOT, apply, line_of, named
from sabotage.ablation import copies, copy_queue
from sabotage.ablation.guards import claim_of
from sabotage.kit.injector import Value
from sabotage.models import Attack
from tests.dashboard.visitor import Visitor, words

pytestmark = pytest.mark.usefixtures("db")

CLAIMED = {"skip": "charge without authorize"}  # a single guard stops it
PAYMENT = {"amount_minor": 128450, "currency": "EUR", "status": "succeeded", "key": ""}
OUTCOME: dict[str, Any] = {
    "verdict": "ACCEPTED",
    "rule": "",
    "integrity": "BREACHED",
    "got_through": True,
    "without": [],
    "changes": {
        "guards": [
            {"id": "a", "guard": "While one worker drives, no other does.", "where": "a.py:1"},
            {"id": "b", "guard": "A <payment> has one key.", "where": "b.py:2"},
        ],
        "files": [],
    },
    "evidence": {
        "headline": "it was taken",
        "after": "SUCCESS",
        "end": "paid",
        "breaches": ["Stripe has 2 succeeded payments for one run."],
        "payments": "2 succeeded",
        "far_side": {
            "reachable": True,
            "succeeded": 2,
            "payments": [PAYMENT, PAYMENT, {**PAYMENT, "amount_minor": 999, "status": "canceled"}],
        },
    },
}


def attacked(visitor: Visitor, name: str = "skip_step", **form: Any) -> str:
    """The page of an attack that was fired just now."""
    run = visitor.make(hold=True)
    visitor.fire(run, name, **form)
    attack = Attack.objects.filter(run_id=run.id).latest("created_ms")
    return f"/runs/{run.code}/attacks/{attack.id}/"


@pytest.fixture(scope="module")
def path(owner: Visitor) -> str:
    """The page of an attack."""
    return attacked(owner)


def card(page: str) -> str:
    """The card's own part of a page."""
    found = re.search(r'<section id="unguarded".*?</section>', page, re.DOTALL)
    return found[0] if found else ""


def kept(path: str, **said: object) -> None:
    """Have this be what is kept of the copy."""
    Attack.objects.filter(id=path.split("/")[-2]).update(unguarded=said)


def test_the_button_asks_for_a_copy_and_the_page_looks_again_by_itself(
    owner: Visitor, path: str, queued: dict[str, list[str]]
) -> None:
    before = owner.get(path)
    assert "Refresh" not in before.headers
    assert f'<form method="post" action="{path}unguarded/">' in card(before.content.decode())
    response = owner.post(f"{path}unguarded/")
    assert (response.status_code, response["Location"]) == (303, f"{path}#unguarded")
    assert queued[copies.TASK] == [path.split("/")[-2]]
    response = owner.get(path)
    again = response["Refresh"].partition("url=")[2]
    assert re.fullmatch(re.escape(path) + r"\?at=\d+#unguarded", again)
    shown = card(response.content.decode())
    assert f'href="{again}"' in shown
    assert re.search(r"It is being made; about \d+ s", shown)
    assert "<form" not in shown
    assert owner.get(again.partition("#")[0]).status_code == 200


def test_breached_stands_beside_held_with_the_money_that_moved(owner: Visitor, path: str) -> None:
    kept(path, state=copy_queue.DONE, at_ms=1, outcome=OUTCOME)
    shown = card(owner.read(path))
    for said in (
        "Here: <strong>intact</strong>",
        "Without this check: <strong>BREACHED</strong>",
        "2 × EUR 1,284.50",
        "Stripe has 2 succeeded payments for one run.",
        "<code>a.py:1</code>",
        "A &lt;payment&gt; has one key.",
        "Defenses are layered",
    ):
        assert said in shown
    assert "9.99" not in shown


def test_a_copy_made_ahead_is_told_on_the_runs_page_with_when_it_was_made(
    owner: Visitor, queued: dict[str, list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(settings, "NANOVM_COPIES_AHEAD", True)
    path = attacked(owner)
    assert queued[copies.TASK] == [path.split("/")[-2]]
    run_page = path.partition("attacks")[0]
    assert f'href="{path}#unguarded">Without this check</a>' in owner.read(run_page)
    kept(path, state=copy_queue.DONE, at_ms=2, made_ms=1, outcome=OUTCOME)
    assert f'href="{path}#unguarded">Without this check: BREACHED</a>' in owner.read(run_page)
    assert "Made at 1970-01-01 00:00:00 UTC for an equal attack." in words(card(owner.read(path)))


def test_a_copy_that_was_held_is_not_called_breached(owner: Visitor, path: str) -> None:
    kept(path, state=copy_queue.DONE, at_ms=1, outcome={**OUTCOME, "got_through": False})
    shown = card(owner.read(path))
    assert "Without this check: <strong>intact</strong>" in shown
    assert "Another check stopped it." in shown
    assert "BREACHED" not in shown


def diff(page: str, sign: str) -> list[str]:
    """The lines of a page's diffs with this sign, without their numbers."""
    tag = {"-": "del", "+": "ins"}[sign]
    found = re.findall(rf"<{tag}><i>\d+ \{sign}</i>(.*?)</{tag}>", page)
    return [html.unescape(text) for text in found]


def test_before_the_copy_is_made_the_lines_are_shown_that_it_lacks(owner: Visitor) -> None:
    shown = card(owner.read(attacked(owner, **CLAIMED)))
    assert "What will be removed from the copy" in shown
    assert "a sample invoice of ours, not yours, and pays into its own Stripe test server" in shown
    [guard] = [named(each) for each in without("skip_step", **CLAIMED)]
    assert f"<code>{guard.file}:{line_of(guard)}</code> 1 line removed, 1 added" in shown
    removed, added = diff(shown, "-"), diff(shown, "+")
    source = (ROOT / guard.file).read_text()
    assert "\n".join(removed) in source
    assert source.replace("\n".join(removed), "\n".join(added), 1) == apply(source, guard)


def test_what_the_copy_slows_is_listed_and_it_adds_nothing(owner: Visitor, path: str) -> None:
    assert "Slowed down" not in card(owner.read(path))
    Attack.objects.filter(id=path.split("/")[-2]).update(injector="double_exec")
    shown = card(owner.read(path))
    assert "server waits 1.5 s before it answers a payment" in shown
    assert "Added to the copy" not in shown
    assert len(re.findall("<details", shown)) == len(
        {named(each).file for each in without("double_exec")}
    )


def without(injector: str, **params: Value) -> tuple[str, ...]:
    """The guards that a copy of this attack lacks."""
    claim = claim_of(injector, params)
    assert claim is not None
    return claim.without


def test_why_there_is_no_outcome_is_said(owner: Visitor, path: str) -> None:
    kept(path, state=copy_queue.FAILED, at_ms=1, why="Another copy is running.")
    assert "Another copy is running." in card(owner.read(path))
    kept(path, state=copy_queue.ASKED, at_ms=1)
    shown = card(owner.read(path))
    assert "has stopped. Run it again" in shown
    assert "<form" in shown


def test_a_form_that_no_guard_carries_says_why_and_offers_no_copy(owner: Visitor) -> None:
    path = attacked(owner, "corrupt_hash", what="rewritten record in flight")
    shown = card(owner.read(path))
    assert "There is no check to remove." in shown
    assert "A hash chain alone cannot detect that all of it was rewritten" in shown
    assert "<form" not in shown
    assert "No single check stops this form" in owner.refused(f"{path}unguarded/")


def test_a_kind_of_attack_that_nothing_is_laid_down_for_has_no_card(
    owner: Visitor, path: str
) -> None:
    Attack.objects.filter(id=path.split("/")[-2]).update(injector="of an older release")
    page = owner.read(path)
    assert card(page) == ""
    assert "This release no longer has this attack" in page
