"""The red team's score: levels, rules and breaches, all counted from the attacks' own rows."""

import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db.models import Count, F, Q, QuerySet

from dashboard.arena import box
from dashboard.models import Player
from dashboard.verdicts.verdict_card import rule_of
from engine.clock import now_ms
from sabotage.models import Attack

NAME_CHARS_MAX = 24
HOURS = 24
HOUR_MS = 3_600_000
PLAYERS_MAX = 10
BREACHED = "BREACHED"
_DRAWN_AS = str.maketrans("013457@$!|", "oieastasil")


class NicknameError(Exception):
    """The nickname cannot be taken; the text says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LevelState:
    """A level as one visitor has it. ``state``: open, answered or breached."""

    level: box.Level
    state: str
    rules: tuple[str, ...]  # by which the guard answered
    breaches: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleCount:
    """How often a rule answered."""

    code: str
    title: str
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """Attempts, distinct rules that answered, and breaches."""

    attempts: int
    rules: int
    breaches: int
    name: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Board:
    """The scoreboard of everybody who attacks here.

    An hour has its begin ``at_ms``; it and a player have the counts of a score.
    """

    total: Score
    by_rule: tuple[RuleCount, ...]
    by_hour: tuple[Any, ...]
    players: tuple[Player, ...]


def levels_of(workspace: UUID | None) -> tuple[LevelState, ...]:
    """Each level's state, from the answers to the visitor's attacks.

    Answered is a level one of whose rules refused an attack of theirs: it was really tried.
    Breached is one with an attack that got through; the last level takes any breach.
    """
    rows = list(_judged(workspace).values_list("rule", "integrity", "created_ms", "run__erased_ms"))
    return tuple(_state(level, rows) for level in box.levels())


def score_of(workspace: UUID | None) -> Score:
    """A visitor's own score."""
    rows = _judged(workspace)
    return _score(rows, name_of(workspace))


def board() -> Board:
    """Everybody's attacks, from whatever part of the pages, counted now."""
    rows = Attack.objects.exclude(verdict="")
    counted = rows.exclude(rule="").values("rule").annotate(count=Count("pk"))
    return Board(
        total=_score(rows, ""),
        by_rule=tuple(
            RuleCount(code=row["rule"], title=rule_of(row["rule"]).title, count=row["count"])
            for row in counted.order_by("-count", "rule")
        ),
        by_hour=_hours(rows),
        players=_players(),
    )


def name_of(workspace: UUID | None) -> str:
    """The visitor's nickname; empty where they have none."""
    found = Player.objects.filter(workspace_id=workspace) if workspace else Player.objects.none()
    return found.values_list("name", flat=True).first() or ""


def rename(workspace: UUID, given: str) -> None:
    """Take a nickname, or none: then the old one is forgotten.

    Raises:
        NicknameError: it is too long, not plain, or holds a refused word.
    """
    name = " ".join(unicodedata.normalize("NFKC", given).split())
    if not name:
        Player.objects.filter(workspace_id=workspace).delete()
        return
    if len(name) > NAME_CHARS_MAX:
        raise NicknameError(f"A nickname can have up to {NAME_CHARS_MAX} characters.")
    if not all(each.isprintable() for each in name):
        raise NicknameError("A nickname can contain visible characters only.")
    if is_refused(name):
        raise NicknameError(
            "This nickname contains a reserved or offensive word. Choose another one."
        )
    Player.objects.update_or_create(workspace_id=workspace, defaults={"name": name})


def is_refused(name: str) -> bool:
    """Whether a name holds a refused word, also in digits for letters or with marks between."""
    flat = unicodedata.normalize("NFKD", name).casefold().translate(_DRAWN_AS)
    letters = "".join(each for each in flat if each.isalpha())
    return any(word in letters for word in box.refused_names())


def _judged(workspace: UUID | None) -> "QuerySet[Attack]":
    if workspace is None:
        return Attack.objects.none()
    return Attack.objects.filter(workspace_id=workspace).exclude(verdict="")


def _state(level: box.Level, rows: Iterable[tuple[str, str, int, int | None]]) -> LevelState:
    mine = [row for row in rows if _belongs(level, row)]
    breaches = sum(integrity == BREACHED for _, integrity, *_ in mine)
    answered = tuple(sorted({rule for rule, integrity, *_ in mine if rule}))
    hunt = not level.rules and not level.erased
    state = "breached" if breaches else "answered" if mine and not hunt else "open"
    return LevelState(level=level, state=state, rules=() if hunt else answered, breaches=breaches)


def _belongs(level: box.Level, row: tuple[str, str, int, int | None]) -> bool:
    """Whether an attack counts for a level: by its rule, by the erasure before it, or any."""
    rule, _, created_ms, erased_ms = row
    if level.erased:
        return erased_ms is not None and created_ms >= erased_ms
    return not level.rules or rule in level.rules


def _score(rows: "QuerySet[Attack]", name: str) -> Score:
    counted = rows.aggregate(
        attempts=Count("pk"),
        rules=Count("rule", distinct=True, filter=~Q(rule="")),
        breaches=Count("pk", filter=Q(integrity=BREACHED)),
    )
    return Score(**counted, name=name)


def _hours(rows: "QuerySet[Attack]") -> tuple[Any, ...]:
    """The last day's hours in which anybody attacked, newest first."""
    since = (now_ms() // HOUR_MS - HOURS + 1) * HOUR_MS
    hours = rows.filter(created_ms__gte=since).values(at_ms=F("created_ms") / HOUR_MS * HOUR_MS)
    counted = hours.annotate(
        attempts=Count("pk"), breaches=Count("pk", filter=Q(integrity=BREACHED))
    )
    named = counted.values_list("at_ms", "attempts", "breaches", named=True)
    return tuple(named.order_by("-at_ms"))


def _players() -> tuple[Player, ...]:
    """The visitors who gave a name, by the distinct rules that answered them."""
    counted = Player.objects.annotate(
        attempts=Count("workspace__attacks", filter=~Q(workspace__attacks__verdict="")),
        rules=Count(
            "workspace__attacks__rule", distinct=True, filter=~Q(workspace__attacks__rule="")
        ),
        breaches=Count("workspace__attacks", filter=Q(workspace__attacks__integrity=BREACHED)),
    )
    return tuple(counted.order_by("-breaches", "-rules", "attempts", "name")[:PLAYERS_MAX])
