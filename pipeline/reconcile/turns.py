"""Turns of the controller: what differs in two of them is sealed, and waits for a person."""

from collections import Counter
from collections.abc import Callable, Mapping
from typing import NamedTuple

from django.db.models import Min

from engine.models import Workspace
from engine.runtime import chains
from pipeline.reconcile import differences
from pipeline.reconcile.compare import Look
from pipeline.reconcile.differences import ACTOR, AGREES, Difference
from pipeline.reconcile.sealed import Logs, hash_of
from pipeline.reconcile.stripe_lists import Lists
from pipeline.steps.charge.gateway import LOOK_BACK_S

FULL_MS = 600_000  # how often all of Stripe's lists are read
NEAR_MS = (LOOK_BACK_S - 30) * 1_000  # by Stripe's own clock 30 seconds before suffice
SAID_MS = 3_600_000  # how often the house log says that all was compared


class Compared(NamedTuple):
    """What a turn did. ``compared``: payments; ``others``: those of other systems, not judged.

    ``open``: all differences that wait for a person, by code; ``found``: those that it sealed.
    ``why``: what could not be read; else empty.
    """

    open: Mapping[str, int]
    compared: int = 0
    found: int = 0
    others: int = 0
    full: bool = False
    why: str = ""


class Turns:
    """The turns of one process, of which the first reads all; ``alive`` is called in a long one."""

    def __init__(self, alive: Callable[[], None] = lambda: None) -> None:
        self._alive, self._logs = alive, Logs()
        self._pending: set[str] = set()  # what was seen once
        self._again = False  # whether all is to be read again, to see it twice
        self._news: dict[str, set[tuple[str, str]]] = {}  # the refunds and disputes that agreed
        self._since_ms = self._full_ms = self._said_ms = 0

    def turn(self, at_ms: int) -> Compared:
        """Compare once. What differs for the second time is sealed, and stops the log's payer.

        Raises:
            OperationalError: the database is away; the next turn repeats this one.
        """
        full = self._again or not self._full_ms <= at_ms < self._full_ms + FULL_MS
        house = chains.house()
        genesis_ms = Workspace.objects.aggregate(at=Min("created_ms"))["at"] // 1_000 * 1_000
        far = Lists(genesis_ms if full else self._since_ms + NEAR_MS, self._alive)
        self._logs.read()  # after Stripe: an intent is sealed before its payment is made
        look = Look(self._logs, far, at_ms, house, genesis_ms)
        look.compare([name for name, of in far.news.items() if of != self._news.get(name)])
        found = self._sealed(look)
        settled = (name for name in far.news if hash_of(name) not in look.unsettled)
        self._news = {name: {*far.news[name]} for name in settled}
        self._again = full and bool(self._pending)
        if not far.why:
            self._move_on(far, at_ms, full=full)
            if found or not self._said_ms <= at_ms < self._said_ms + SAID_MS:
                given = {"since_ms": far.since_ms - LOOK_BACK_S * 1_000, "until_ms": self._since_ms}
                out = {"compared": len(look.compared), "differ": len(look.differ)}
                chains.observe(house, {"in": given, "out": out}, actor=ACTOR)
                self._said_ms = at_ms
        still = Counter(each.code for _, each in self._logs.known() if not each.closed)
        return Compared(dict(still), len(look.compared), found, look.others, full, look.why)

    def _sealed(self, look: Look) -> int:
        """Seal what is seen twice, and what agrees again; how many differences were new."""
        fresh = {each.id: (log, each) for log, each in look.differ.values() if self._is_new(each)}
        twice = fresh.keys() & self._pending
        found = 0
        for log, each in (fresh[name] for name in sorted(twice)):
            found += differences.seal(self._logs.home(log), each)
        self._pending = fresh.keys() - twice
        agreed = [
            differences.check(log, each.id, ACTOR, AGREES)
            for log, each in self._logs.known()
            if each.payment in look.compared and each.payment not in look.differ
        ]
        if found or any(agreed):
            self._logs.read()
        return found

    def _is_new(self, found: Difference) -> bool:
        """Whether it is open in no open log, and nobody checked it since both sides agreed."""
        logs = self._logs
        before = ((log, all_.get(found.payment)) for log, all_ in logs.found.items())
        return not any(
            each.id == found.id and not each.is_over and (each.closed or logs.home(log) == log)
            for log, each in before
            if each
        )

    def _move_on(self, far: Lists, at_ms: int, *, full: bool) -> None:
        """Begin the next turn where this one ended, by Stripe's clock where that is behind."""
        if full:
            self._full_ms = at_ms
        if not self._pending:
            made = (each.created_ms for each in far.payments.values())
            self._since_ms = min(at_ms, max(made, default=self._since_ms or far.since_ms))
