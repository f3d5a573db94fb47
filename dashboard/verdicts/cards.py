"""Attacks as the pages show them: the cards to fire from, and verdicts with their evidence."""

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import or_
from typing import Any
from uuid import UUID

from django.db.models import QuerySet

from engine.clock import now_ms
from engine.queries import secrets
from engine.queries.record import RunRecord
from engine.queries.runs import RunHead
from engine.runtime.api import MODEL
from engine.store import sql
from engine.vault import secret_store
from nanovm_core.errors import VerificationError
from sabotage import fire as injection
from sabotage.ablation import copies
from sabotage.injectors import INJECTORS as INJECTORS
from sabotage.kit.injector import InjectionError as InjectionError
from sabotage.kit.injector import Injector
from sabotage.models import Attack

NO_WORDS = (
    "The text of this attack is not stored (its run had ended, or was erased), so the request "
    "cannot be repeated."
)
ALL = "all"  # in place of an injector's name: each of them once
LAST = "corrupt_hash"  # it ends the run, so the others come before it
SHOWN_MAX = 50
JUDGED_MS_MAX = 60_000  # an attack without a verdict after that was cut off
BREACHED, ACCEPTED = "BREACHED", "ACCEPTED"
_JUDGED = "WHERE run_id = %s AND verdict <> ''"
_NEWEST = f"{_JUDGED} ORDER BY created_ms DESC LIMIT {SHOWN_MAX}"
_KEYED = f"{_JUDGED} AND idempotency_key = %s ORDER BY created_ms DESC LIMIT 1"


class GoneError(Exception):
    """The request can no longer be shown; the text says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shot:
    """One attack that was fired, its verdict and what the verdict was computed from."""

    id: str
    injector: str
    params: Mapping[str, Any]
    verdict: str
    rule: str
    where: str
    integrity: str
    headline: str
    evidence: Mapping[str, Any]
    created_ms: int
    when: str
    control: Mapping[str, Any] = field(default_factory=dict)  # what the ordinary agent did
    careful: Mapping[str, Any] = field(default_factory=dict)  # what the careful agent did
    unguarded: Mapping[str, Any] = field(default_factory=dict)  # of its copy without the guard
    invoice: Mapping[str, Any] = field(default_factory=dict)  # of its run, where that is known

    @property
    def breached(self) -> bool:
        return self.integrity == BREACHED

    @property
    def expected(self) -> str:
        return str(self.evidence.get("expected", ""))

    @property
    def found(self) -> str:
        return str(self.evidence.get("found", ""))

    @property
    def whole(self) -> bool:
        """Whether everything that was fired is still known, the words too."""
        names = {param.name for param in INJECTORS[self.injector].params}
        return names <= self.params.keys() and secret_store.TOMBSTONE not in self.params.values()


@dataclass(frozen=True, slots=True, kw_only=True)
class Attacks:
    """All attacks on a run: the newest, newest first, and each injector's last; all are counted.

    ``reports`` say what the other agents did under each.
    """

    shots: tuple[Shot, ...]
    last: Mapping[str, Shot]
    fired: Mapping[str, int]
    stopped: int
    through: tuple[Shot, ...]  # the newest of those that got through, however long ago
    breached: int
    reports: tuple[Mapping[str, Any], ...]

    @property
    def total(self) -> int:
        return sum(self.fired.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class InjectorCard:
    """One injector in the console: what it is, and how often it was fired at this run."""

    injector: Injector = field(repr=False)
    fired: int
    shown: Any = None  # the verdict of its last attack, as its row shows it
    expects: str = ""  # what firing it now would put at stake, where that depends on the moment
    like: Shot | None = None  # its form is filled in as this one's was

    @property
    def goal(self) -> str:
        """What the attack is after, in four words."""
        return GOALS[self.injector.name]

    @property
    def plan_step(self) -> str:
        """The step that its form for planning begins with: where it does the most harm."""
        return "charge" if self.injector.name == "double_exec" else "propose"


GOALS = {
    "tool_injection": "Call a forbidden tool",
    "double_exec": "Pay the invoice twice",
    "corrupt_hash": "Rewrite the record",
    "skip_step": "Skip authorization",
    "reorder_steps": "Change the order",
}


def fire(run_id: str, name: str, params: Mapping[str, str], key: str) -> Attack:
    """Fire an injector at a visitor's run, and have its copy without the guard made ahead."""
    attack = injection.fire(run_id, name, params, key)
    copies.prepare(attack)
    return attack


def in_order() -> list[str]:
    """The injectors as they are listed and fired; the one that ends the run comes last."""
    return sorted(INJECTORS, key=LAST.__eq__)


def fire_all(run_id: str, key: str) -> list[str]:
    """Fire each injector once at a run, with its first values; what could not be made, and why.

    The same key does nothing again, as with one of them; an empty one is always new.
    """
    complaints = []
    for name in in_order():
        own = hashlib.sha256(f"{key} {name}".encode()).hexdigest() if key else ""
        params = {param.name: str(param.default) for param in INJECTORS[name].params}
        try:
            fire(run_id, name, params, own)
        except InjectionError as error:
            complaints.append(f"{name}: {error}")
    return complaints


def of_answer(record: RunRecord) -> Shot | None:
    """The attack that the run's own model made, where its answer was refused; judged at sight."""
    last = record.last(("refused",))
    if last is None or last.actor != MODEL:  # but it may have been judged before
        return of_key(record.run, injection.KEY.format(record.run.id))
    try:
        attack = injection.judge_answer(record.run.id, last.number - 1)
    except VerificationError:
        return None
    return _shot(attack) if attack and attack.verdict else None


def params_of(name: str, form: Mapping[str, str]) -> dict[str, str]:
    """An injector's parameters as a form has them; one that it does not name is as at first."""
    params = INJECTORS[name].params
    return {param.name: form.get(param.name, str(param.default)) for param in params}


def of_run(run: RunHead) -> Attacks:
    """Read the attacks on the run: some are shown, however many there are, and all are counted."""
    newest = sql.rows(Attack, _NEWEST, (sql.key_of(run.id),))
    shots = tuple(map(_shot, newest))
    last = {shot.injector: shot for shot in reversed(shots)}
    rows = [(each.injector, each.verdict, each.integrity, each.control) for each in newest]
    if len(rows) == SHOWN_MAX:  # there may be more
        rows = [*_judged(run).values_list("injector", "verdict", "integrity", "control")]
    got = [integrity == BREACHED for _, _, integrity, _ in rows]
    through = [verdict == ACCEPTED for _, verdict, _, _ in rows]
    fired = Counter(injector for injector, *_ in rows)
    open_ = _judged(run).filter(integrity=BREACHED)[:SHOWN_MAX] if any(got) else ()
    older = {name: _judged(run).filter(injector=name)[0] for name in fired if name not in last}
    return Attacks(
        shots=shots,
        last=last | {name: _shot(row) for name, row in older.items()},
        fired=fired,
        stopped=sum(not each for each in map(or_, got, through)),
        through=tuple(map(_shot, open_)),
        breached=sum(got),
        reports=tuple(control for *_, control in rows),
    )


def fired(run: RunHead) -> Mapping[str, int]:
    """How often each injector was fired at the run, by its name: all of them are counted."""
    return Counter(_judged(run).values_list("injector", flat=True))


def find(run: RunHead, attack_id: UUID) -> Shot | None:
    row = row_of(run, attack_id)
    return _shot(row) if row else None


def is_under_way(run: RunHead, at_ms: int) -> bool:
    """Whether an attack that has no verdict yet had begun then: what came since is its evidence."""
    begun = Attack.objects.filter(run_id=run.id, verdict="", created_ms__lte=at_ms)
    return begun.filter(created_ms__gt=now_ms() - JUDGED_MS_MAX).exists()


def of_key(run: RunHead, key: str) -> Shot | None:
    """The judged attack on a run that was fired under this idempotency key."""
    found = sql.rows(Attack, _KEYED, (sql.key_of(run.id), key))
    return _shot(found[0]) if found else None


def row_of(run: RunHead, attack_id: UUID) -> Attack | None:
    """The stored attack, where it is one on this run."""
    return Attack.objects.filter(run_id=run.id, pk=attack_id).first()


def words_of(attack: Attack) -> bytes:
    """The typed text, byte for byte.

    Raises:
        GoneError: it is kept no more, or was never kept.
    """
    ref = attack.proposal_ref
    try:
        words = secret_store.read_bytes([ref])[ref] if ref else None
    except VerificationError:
        words = None  # the stored bytes were changed: they are not what was sent
    if words is None:
        raise GoneError(NO_WORDS)
    return words


def attacked(**of: Any) -> dict[str, int]:
    """The number of attacks with these fields, by run."""
    return Counter(map(str, Attack.objects.filter(**of).values_list("run_id", flat=True)))


def varied(cards: Sequence[InjectorCard], shot: Shot) -> tuple[InjectorCard, ...]:
    """The cards, with the form of the shot's injector filled in as the shot was.

    What is kept of it no more stays as the form has it at first.
    """
    return tuple(
        replace(card, injector=_as_in(card.injector, shot), like=shot)
        if card.injector.name == shot.injector
        else card
        for card in cards
    )


def _as_in(injector: Injector, shot: Shot) -> Injector:
    known = {name: value for name, value in shot.params.items() if value != secret_store.TOMBSTONE}
    params = (
        replace(param, default=known.get(param.name, param.default)) for param in injector.params
    )
    return replace(injector, params=tuple(params))


def _judged(run: RunHead) -> "QuerySet[Attack]":
    return Attack.objects.filter(run_id=run.id).exclude(verdict="").order_by("-created_ms")


def _shot(row: Attack) -> Shot:
    return Shot(
        id=str(row.pk),
        injector=row.injector,
        params={k: _read(v) for k, v in row.params.items()},
        verdict=row.verdict,
        rule=row.rule,
        where=row.where,
        integrity=row.integrity,
        headline=row.headline,
        evidence={k: _read(v) for k, v in row.evidence.items()},
        created_ms=row.created_ms,
        when=row.when,
        control=row.ordinary,
        careful=row.careful,
        unguarded=row.unguarded,
    )


def _read(value: Any) -> Any:
    """Free text of an attack lies in the vault: its ref is read here, or is a tombstone."""
    is_ref = isinstance(value, str) and value.startswith("vault://secret/")
    return secrets.open_secret(value) if is_ref else value
