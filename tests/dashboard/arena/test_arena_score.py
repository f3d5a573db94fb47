"""Levels, scores, quotas and names of the red team: computed from rows, and told where they end."""

from uuid import UUID

import pytest

from dashboard.arena import box, quota
from dashboard.arena import score as arena_score
from dashboard.arena.score import NicknameError
from dashboard.models import Player
from pipeline.clock import now_ms
from pipeline.models import Workspace
from sabotage.models import Attack
from tests.dashboard.arena.test_arena import check, propose
from tests.dashboard.visitor import TRANSFER, Visitor, by_code, words

EMPTY = '{"tool": "stripe.create_payment_intent", "args": {}}'


def mine() -> Workspace:
    return Workspace.objects.get()


def states() -> dict[int, str]:
    return {one.level.number: one.state for one in arena_score.levels_of(mine().pk)}


def test_without_an_attack_every_level_is_open_and_every_count_nought(visitor: Visitor) -> None:
    page = visitor.read("/attack/")
    assert page.count('data-state="open"') == 7
    assert "0 attempts · 0 distinct rules reached · 0 breaches" in words(page)
    assert arena_score.board().total == arena_score.Score(attempts=0, rules=0, breaches=0)


def test_a_level_is_answered_by_its_rules_and_a_rule_counts_once(visitor: Visitor) -> None:
    run = visitor.make(hold=True)
    for _ in range(2):
        assert propose(visitor, run, TRANSFER).rule == "CAP-001"
    assert states() == {
        1: "answered",
        2: "open",
        3: "open",
        4: "open",
        5: "open",
        6: "open",
        7: "open",
    }
    assert propose(visitor, run, "{").rule == "CAP-010"
    assert (states()[4], states()[7]) == ("answered", "open")
    score = arena_score.score_of(mine().pk)
    assert (score.attempts, score.rules, score.breaches) == (3, 2, 0)


def test_the_consoles_attacks_count_too(visitor: Visitor) -> None:
    run = visitor.make(hold=True)
    visitor.fire(run, "corrupt_hash")
    assert states()[5] == "answered"
    board = arena_score.board()
    rule = Attack.objects.get().rule
    assert [(one.code, one.count) for one in board.by_rule] == [(rule, 1)]
    assert [(one.attempts, one.breaches) for one in board.by_hour] == [(1, 0)]
    assert board.by_hour[0].at_ms == now_ms() // 3_600_000 * 3_600_000


def test_the_level_of_the_erased_needs_an_erasure_before(visitor: Visitor) -> None:
    run = visitor.make(hold=True)
    propose(visitor, run, TRANSFER)
    assert states()[6] == "open"
    visitor.erase(by_code(run.code))
    propose(visitor, by_code(run.code), TRANSFER)
    assert states()[6] == "answered"


def test_a_breach_is_counted_from_its_row(visitor: Visitor) -> None:
    run = visitor.make(hold=True)
    propose(visitor, run, TRANSFER)
    assert "0 breaches" in words(visitor.read("/attack/"))
    Attack.objects.update(integrity="BREACHED")
    page = visitor.read("/attack/")
    assert "1 breach" in words(page)
    assert (states()[1], states()[7]) == ("breached", "breached")
    assert arena_score.board().total.breaches == 1
    assert arena_score.board().by_hour[0].breaches == 1


def test_every_rule_of_a_level_is_a_rule(visitor: Visitor) -> None:
    for level in box.levels():
        for code in level.rules:
            visitor.read(f"/docs/rules/{code}/")


def test_a_name_is_shown_as_text_kept_short_and_forgotten(visitor: Visitor) -> None:
    run = visitor.make(hold=True)
    propose(visitor, run, TRANSFER)
    name = "<img src=x onerror=1>"
    assert visitor.post("/attack/name/", {"name": f"  {name} "}).status_code == 303
    page = visitor.read("/attack/")
    assert "<img" not in page
    assert f"{name} 1 1 0" in words(page)
    response = visitor.post("/attack/name/", {"name": "x" * 25})
    assert response.status_code == 422
    assert "24 characters at most" in words(response.content.decode())
    visitor.post("/attack/name/", {"name": ""})
    assert not Player.objects.exists()


@pytest.mark.parametrize(
    "name", ["Admin", "n4n0vm", "s.t.r.i.p.e", "F U C K", "ｓｈｉｔ", "a\u202eb", "x\0"]
)
def test_a_name_of_the_house_or_an_insult_is_refused(visitor: Visitor, name: str) -> None:
    visitor.make(hold=True)
    with pytest.raises(NicknameError):
        arena_score.rename(mine().pk, name)
    assert visitor.post("/attack/name/", {"name": name}).status_code == 422


@pytest.mark.parametrize("name", ["Zoë", "red-team 7", "x" * 24, "山田"])
def test_other_names_are_taken(visitor: Visitor, name: str) -> None:
    visitor.make(hold=True)
    arena_score.rename(mine().pk, name)
    assert arena_score.name_of(mine().pk) == name


def test_the_last_proposal_of_a_minute_is_taken_and_the_next_is_told(
    visitor: Visitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(quota, "PROPOSALS_MAX", 2)
    run = visitor.make(hold=True)
    for left in (2, 1):
        assert f"{left} of 2 proposals" in words(visitor.read("/attack/"))
        propose(visitor, run, TRANSFER)
    form = {"proposal": EMPTY, "mode": "text", "run": run.code}
    response = visitor.post("/attack/propose/", form)
    assert response.status_code == 429
    assert 1 <= int(response["Retry-After"]) <= 60
    page = response.content.decode()
    assert "2 proposals a minute are used up; nothing was done" in words(page)
    assert "&quot;args&quot;: {}" in page
    assert Attack.objects.count() == 2
    later = now_ms() + quota.WINDOW_MS
    monkeypatch.setattr(quota, "now_ms", lambda: later)
    assert quota.proposals(mine().pk).left == 2
    propose(visitor, run, TRANSFER)


def test_checks_have_a_quota_of_their_own(
    visitor: Visitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(quota, "CHECKS_MAX", 2)
    at_ms = now_ms()
    monkeypatch.setattr(quota, "now_ms", lambda: at_ms)
    run = visitor.make(hold=True)
    for _ in range(2):
        check(visitor, run, TRANSFER)
    form = {"proposal": TRANSFER, "mode": "text", "run": run.code}
    for headers in ({}, {"X-Arena-Line": "1"}):
        response = visitor.post("/attack/check/", form, headers=headers)
        assert response.status_code == 429
        assert 1 <= int(response["Retry-After"]) <= 60
        assert "2 checks a minute are used up" in words(response.content.decode())
    at_ms += quota.WINDOW_MS
    check(visitor, run, TRANSFER)


def test_fresh_runs_are_limited_and_others_are_not_counted(
    visitor: Visitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(quota, "STARTS_MAX", 1)
    other = Visitor()
    other.make(hold=True)
    run = visitor.make(hold=True)
    assert quota.starts(UUID(run.workspace)).used == 1
    response = visitor.post("/attack/start/")
    assert response.status_code == 429
    assert "1 fresh runs a minute" in words(response.content.decode())
    assert quota.proposals(None).left == quota.PROPOSALS_MAX
    assert propose(visitor, run, TRANSFER).verdict == "BLOCKED"
