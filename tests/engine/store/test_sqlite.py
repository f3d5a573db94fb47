"""The wait for SQLite's write lock: at short intervals, with a pause while another wants it."""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from functools import partial
from pathlib import Path

import pytest
from django.db import OperationalError, connection, transaction

from engine.runtime import chains
from engine.store import sql
from engine.store.sqlite import base
from engine.store.sqlite.base import LATELY_MS, MS, PAUSE_MS, RETRY_MAX_MS, RETRY_MS, take
from tests.kit.databases import on_sqlite_alone
from tests.kit.house import House

PATIENCE_MS = 2000


class Clock:
    """A clock that sleeping moves, and each sleep; ``during`` is called in each."""

    def __init__(self) -> None:
        self.ns, self.slept = 10**12, list[float]()
        self.during: Callable[[], object] = lambda: None

    def sleep(self, ms: float) -> None:
        self.slept.append(ms)
        self.ns += int(ms * MS)
        self.during()


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(base, "monotonic_ns", lambda: made.ns)
    monkeypatch.setattr(base, "sleep_ms", made.sleep)
    monkeypatch.setattr(base, "_ns", {"held": 0, "given": 0})
    return made


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[tuple[sqlite3.Connection, sqlite3.Connection]]:
    """Whoever holds the lock, and another process's connection with PATIENCE_MS."""
    opened = (
        sqlite3.connect(tmp_path / "db", timeout=seconds, isolation_level=None)
        for seconds in (0, PATIENCE_MS / 1000)
    )
    with closing(next(opened)) as holder, closing(next(opened)) as other:
        holder.execute("PRAGMA journal_mode=WAL")
        holder.execute("BEGIN IMMEDIATE")
        yield holder, other


def patience(of: sqlite3.Connection) -> int:
    return int(of.execute("PRAGMA busy_timeout").fetchone()[0])


def test_a_held_lock_is_tried_ever_less_often_until_sqlites_own_error(
    clock: Clock, pair: tuple[sqlite3.Connection, sqlite3.Connection]
) -> None:
    with pytest.raises(sqlite3.OperationalError, match=r"^database is locked$") as raised:
        take(pair[1])
    assert raised.value.sqlite_errorcode == sqlite3.SQLITE_BUSY
    assert clock.slept[:200] == [RETRY_MS] * 200
    assert (clock.slept, clock.slept[-1]) == (sorted(clock.slept), RETRY_MAX_MS)
    assert PATIENCE_MS <= sum(clock.slept) < PATIENCE_MS + RETRY_MAX_MS
    assert (pair[1].in_transaction, patience(pair[1])) == (False, PATIENCE_MS)


def test_it_is_taken_with_the_first_try_after_it_was_given_back(
    clock: Clock, pair: tuple[sqlite3.Connection, sqlite3.Connection]
) -> None:
    clock.during = lambda: len(clock.slept) == 3 and pair[0].execute("COMMIT")
    take(pair[1])
    assert clock.slept == [RETRY_MS] * 3
    assert (pair[1].in_transaction, patience(pair[1])) == (True, PATIENCE_MS)
    with pytest.raises(sqlite3.OperationalError, match="within a transaction"):
        take(pair[1])  # another error is not waited for
    assert (len(clock.slept), patience(pair[1])) == (3, PATIENCE_MS)


@pytest.mark.parametrize(
    ("held_ms", "given_ms", "pauses"),
    [
        (LATELY_MS - 1, 0, True),
        (LATELY_MS - 1, PAUSE_MS - 0.1, True),
        (LATELY_MS - 1, PAUSE_MS, False),
        (LATELY_MS, 0, False),
    ],
)
def test_a_pause_where_it_was_found_held_lately_and_was_given_back_just_now(
    clock: Clock, held_ms: float, given_ms: float, pauses: bool, tmp_path: Path
) -> None:
    ago = {"held": held_ms, "given": given_ms}
    base._ns.update({name: clock.ns - int(ms * MS) for name, ms in ago.items()})
    with closing(sqlite3.connect(tmp_path / "db", isolation_level=None)) as own:
        take(own)
    assert clock.slept == [PAUSE_MS] * pauses


@on_sqlite_alone
@pytest.mark.parametrize(
    "begun",
    [
        partial(sql.in_transaction, int),
        transaction.atomic(int),
        partial(sql.change, "DELETE FROM pipeline_served", ()),
    ],
)
def test_the_waits_of_commits_of_single_changes_and_of_djangos_transactions_are_these(
    house: House, clock: Clock, begun: Callable[[], object]
) -> None:
    with closing(sqlite3.connect(connection.settings_dict["NAME"], timeout=0)) as holder:
        holder.execute("BEGIN IMMEDIATE")
        clock.during = holder.rollback
        begun()
    assert clock.slept == [RETRY_MS]


@on_sqlite_alone
def test_a_commit_that_did_not_get_the_lock_leaves_nothing_behind(
    house: House, clock: Clock
) -> None:
    with closing(sqlite3.connect(connection.settings_dict["NAME"], timeout=0)) as holder:
        holder.execute("BEGIN IMMEDIATE")
        with pytest.raises(OperationalError, match="locked"):
            sql.in_transaction(int)
    log = chains.create()
    sql.later("UPDATE pipeline_workspace SET weight = 3 WHERE id = %s", (sql.key(log.id),))
    log.refresh_from_db()
    assert log.weight == 3  # it is in no queue


@on_sqlite_alone
@pytest.mark.parametrize("begun", [sql.in_transaction, lambda work: transaction.atomic()(work)()])
@pytest.mark.parametrize("work", [int, partial(int, "no number")])
def test_that_the_lock_was_given_back_is_noted_whoever_had_it_and_however_it_ended(
    house: House, clock: Clock, begun: Callable[[Callable[[], int]], int], work: Callable[[], int]
) -> None:
    with suppress(ValueError):
        begun(work)
    assert base._ns["given"] == clock.ns


@pytest.mark.postgres
def test_another_database_knows_nothing_of_it(house: House, clock: Clock) -> None:
    sql.in_transaction(int)
    assert bool(base._ns["given"]) is sql.SQLITE
