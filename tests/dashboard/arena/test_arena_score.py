"""Levels, scores and names of the red team: computed from rows, and told where they end."""

import pytest

from dashboard.arena import box
from dashboard.arena import score as arena_score
from dashboard.arena.score import NicknameError
from dashboard.models import Player
from engine.clock import now_ms
from engine.models import Workspace
from engine.queries.runs import RunHead
from sabotage.models import Attack
from tests.dashboard.arena.test_arena import propose
from tests.dashboard.visitor import TRANSFER, Visitor, by_code, words

pytestmark = pytest.mark.usefixtures("db")


def mine() -> Workspace:
    return Workspace.objects.get()


def states() -> dict[int, str]:
    return {one.level.number: one.state for one in arena_score.levels_of(mine().pk)}


def test_without_an_attack_every_level_is_open_and_every_count_nought(owner: Visitor) -> None:
    for code in {code for level in box.levels() for code in level.rules}:
        owner.read(f"/docs/rules/{code}/")  # each is a rule
    page = owner.read("/attack/")
    assert page.count('data-state="open"') == 7
    assert "0 attempts · 0 distinct rules reached · 0 breaches" in words(page)
    assert arena_score.board().total == arena_score.Score(attempts=0, rules=0, breaches=0)


def test_a_level_is_answered_by_its_rules_and_a_rule_counts_once(
    owner: Visitor, ready: RunHead
) -> None:
    for _ in range(2):
        assert propose(owner, ready, TRANSFER).rule == "CAP-001"
    assert states() == {1: "answered", **dict.fromkeys(range(2, 8), "open")}
    assert propose(owner, ready, "{").rule == "CAP-010"
    assert (states()[4], states()[7]) == ("answered", "open")
    score = arena_score.score_of(mine().pk)
    assert (score.attempts, score.rules, score.breaches) == (3, 2, 0)


def test_the_consoles_attacks_count_too(owner: Visitor, ready: RunHead) -> None:
    owner.fire(ready, "corrupt_hash")
    assert states()[5] == "answered"
    board = arena_score.board()
    rule = Attack.objects.get().rule
    assert [(one.code, one.count) for one in board.by_rule] == [(rule, 1)]
    assert [(one.attempts, one.breaches) for one in board.by_hour] == [(1, 0)]
    assert board.by_hour[0].at_ms == now_ms() // 3_600_000 * 3_600_000


def test_the_level_of_the_erased_needs_an_erasure_before(owner: Visitor) -> None:
    run = owner.make(hold=True)
    propose(owner, run, TRANSFER)
    assert states()[6] == "open"
    owner.erase(by_code(run.code))
    propose(owner, by_code(run.code), TRANSFER)
    assert states()[6] == "answered"


def test_a_name_is_shown_as_text_kept_short_and_forgotten(owner: Visitor, ready: RunHead) -> None:
    propose(owner, ready, TRANSFER)
    name = "<img src=x onerror=1>"
    assert owner.post("/attack/name/", {"name": f"  {name} "}).status_code == 303
    page = owner.read("/attack/")
    assert "<img" not in page
    assert f"{name} 1 1 0" in words(page)
    assert "up to 24 characters" in words(owner.refused("/attack/name/", {"name": "x" * 25}))
    owner.post("/attack/name/", {"name": ""})
    assert not Player.objects.exists()


@pytest.mark.usefixtures("ready")
def test_a_name_of_the_house_or_an_insult_is_refused_and_others_are_taken(owner: Visitor) -> None:
    for name in ("Admin", "n4n0vm", "s.t.r.i.p.e", "F U C K", "ｓｈｉｔ", "a\u202eb", "x\0"):
        with pytest.raises(NicknameError):
            arena_score.rename(mine().pk, name)
        assert owner.post("/attack/name/", {"name": name}).status_code == 422
    for name in ("Zoë", "red-team 7", "x" * 24, "山田"):
        arena_score.rename(mine().pk, name)
        assert arena_score.name_of(mine().pk) == name
