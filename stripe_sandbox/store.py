"""The records, in SQLite: written once they are on disk, seen by their own account alone."""

import json
import sqlite3
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from stripe_sandbox.errors import ApiResult, JsonObject

_FIRST = """
CREATE TABLE object (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    account TEXT NOT NULL, kind TEXT NOT NULL, id TEXT NOT NULL,
    created INTEGER NOT NULL, link TEXT NOT NULL, body TEXT NOT NULL,
    UNIQUE (account, kind, id)
) STRICT;
CREATE INDEX object_by_age ON object (account, kind, seq);
CREATE TABLE idempotent_answer (
    account TEXT NOT NULL, key TEXT NOT NULL, created REAL NOT NULL,
    method TEXT NOT NULL, path TEXT NOT NULL, parameters TEXT NOT NULL,
    request_id TEXT NOT NULL, status INTEGER NOT NULL, body TEXT NOT NULL,
    PRIMARY KEY (account, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX idempotent_answer_by_age ON idempotent_answer (created);
"""
_SECOND = """
CREATE TABLE movement (
    account TEXT NOT NULL, currency TEXT NOT NULL, is_available INTEGER NOT NULL,
    amount INTEGER NOT NULL, source TEXT NOT NULL
) STRICT;
CREATE INDEX movement_by_balance ON movement (account, currency, is_available, amount);
CREATE INDEX movement_by_source ON movement (account, source);
CREATE TABLE delivery (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    account TEXT NOT NULL, event TEXT NOT NULL, owner TEXT NOT NULL, endpoint TEXT NOT NULL,
    attempts INTEGER NOT NULL, due REAL NOT NULL
) STRICT;
CREATE INDEX delivery_by_due ON delivery (due);
INSERT INTO movement SELECT account, json_extract(body, '$.currency'),
    json_extract(body, '$.payment_method_details.card.last4') = '0077',
    json_extract(body, '$.amount_captured'), id
FROM object WHERE kind = 'charge' AND json_extract(body, '$.captured');
INSERT INTO movement SELECT account, json_extract(body, '$.currency'), 1,
    -json_extract(body, '$.amount'), id
FROM object WHERE kind = 'payout' AND json_extract(body, '$.status') <> 'canceled';
"""
_SCHEMAS = (_FIRST, _SECOND)
"""What each version of the schema adds to the one before."""

Condition = tuple[str, tuple[object, ...]]
"""A condition in SQL, always a fixed text, and its values."""

_COMPARISONS = {"eq": "=", "gt": ">", "gte": ">=", "lt": "<", "lte": "<="}
_SEQ_OF = "SELECT seq FROM object WHERE account = ? AND kind = ? AND id = ?"


class StoreError(Exception):
    """The database cannot be used; the message says why in one sentence."""


def created(comparison: str, at: int) -> Condition:
    """Created at, before or after a moment: eq, gt, gte, lt or lte."""
    return f"created {_COMPARISONS[comparison]} ?", (at,)


def field_is(name: str, value: str) -> Condition:
    """A field of the object holds exactly this text."""
    return "json_extract(body, ?) = ?", (f"$.{name}", value)


def metadata_is(key: str, value: str) -> Condition:
    """The metadata hold this text under a key, in any case of its letters."""
    return (
        "EXISTS (SELECT 1 FROM json_each(body, '$.metadata') AS pair "
        "WHERE pair.key = ? AND lower(pair.value) = lower(?))"
    ), (key, value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """One page of a list: ``limit`` objects older than ``after`` or newer than ``before``."""

    limit: int
    after: str | None = None
    before: str | None = None
    conditions: tuple[Condition, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptAnswer:
    """What a key was first used for, and the answer that went out."""

    method: str
    path: str
    parameters: str
    request_id: str
    answer: ApiResult


class Store:
    """One SQLite file and one connection, which a lock hands from thread to thread.

    SQLite has one writer at a time anyway; every change is on disk
    (``synchronous=FULL``) before its transaction returns, so a process killed at
    any moment leaves either all of a request's records or none.
    """

    def __init__(self, path: str) -> None:
        self._lock = threading.RLock()
        try:
            self._connection = sqlite3.connect(
                path, timeout=20, isolation_level=None, check_same_thread=False
            )
            self._prepare()
        except sqlite3.Error as error:
            raise StoreError(f"the database {path} cannot be used: {error}") from error

    def _prepare(self) -> None:
        execute = self._connection.execute
        execute("PRAGMA journal_mode = WAL")
        execute("PRAGMA synchronous = FULL")
        execute("BEGIN IMMEDIATE")
        (version,) = execute("PRAGMA user_version").fetchone()
        for addition in _SCHEMAS[version:]:
            for statement in addition.split(";\n"):
                execute(statement)
        if version < len(_SCHEMAS):
            execute(f"PRAGMA user_version = {len(_SCHEMAS)}")
        execute("COMMIT")
        if version > len(_SCHEMAS):
            raise sqlite3.DatabaseError(f"it has schema version {version}, not {len(_SCHEMAS)}")

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Run a block as one transaction; an exception undoes all of it."""
        with self._lock:
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield
                self._connection.execute("COMMIT")
            except BaseException:
                if self._connection.in_transaction:  # a full disk has undone it already
                    self._connection.execute("ROLLBACK")
                raise

    @contextmanager
    def attempt(self) -> Iterator[None]:
        """Within a transaction: an exception undoes this block alone, and goes on up."""
        self._connection.execute("SAVEPOINT attempt")
        try:
            yield
        except BaseException:
            self._connection.execute("ROLLBACK TO attempt")
            raise
        finally:
            self._connection.execute("RELEASE attempt")

    def rows(self, query: str, values: Sequence[object]) -> list[tuple[object, ...]]:
        with self._lock:
            return self._connection.execute(query, tuple(values)).fetchall()

    def close(self) -> None:
        """Close the database, after the transaction that may be under way."""
        with self._lock:
            self._connection.close()


@dataclass(frozen=True, slots=True)
class Account:
    """The records of one account: there is no way from here to another's."""

    store: Store
    name: str

    def find(self, kind: str, object_id: str) -> JsonObject | None:
        query = "SELECT body FROM object WHERE account = ? AND kind = ? AND id = ?"
        rows = self.store.rows(query, (self.name, kind, object_id))
        return _decoded(rows[0][0]) if rows else None

    def link(self, kind: str, object_id: str) -> str | None:
        """Return what the object was stored with as its link."""
        query = "SELECT link FROM object WHERE account = ? AND kind = ? AND id = ?"
        rows = self.store.rows(query, (self.name, kind, object_id))
        return str(rows[0][0]) if rows else None

    def add(self, body: JsonObject, link: str = "") -> None:
        self.store.rows(
            "INSERT INTO object (account, kind, id, created, link, body) VALUES (?,?,?,?,?,?)",
            (self.name, body["object"], body["id"], body["created"], link, json.dumps(body)),
        )

    def replace(self, body: JsonObject) -> None:
        self.store.rows(
            "UPDATE object SET body = ? WHERE account = ? AND kind = ? AND id = ?",
            (json.dumps(body), self.name, body["object"], body["id"]),
        )

    def remove(self, kind: str, object_id: str) -> None:
        query = "DELETE FROM object WHERE account = ? AND kind = ? AND id = ?"
        self.store.rows(query, (self.name, kind, object_id))

    def move(self, amount_minor: int, currency: str, *, is_available: bool, source: str) -> None:
        """Book a movement on the account's balance; ``source`` is the id of its cause."""
        self.store.rows(
            "INSERT INTO movement (account, currency, is_available, amount, source) "
            "VALUES (?,?,?,?,?)",
            (self.name, currency, is_available, amount_minor, source),
        )

    def is_available(self, source: str) -> bool:
        """Whether the money that an object brought in can be paid out."""
        query = "SELECT is_available FROM movement WHERE account = ? AND source = ?"
        return any(at_once for (at_once,) in self.store.rows(query, (self.name, source)))

    def page(self, kind: str, window: Window) -> tuple[list[JsonObject], bool]:
        """Return a page, newest first, and whether there is more in the direction of travel.

        A cursor that names no object of this account selects nothing; whoever
        takes cursors from outside looks them up first.
        """
        where = ["account = ?", "kind = ?"]
        values: list[object] = [self.name, kind]
        for condition, operands in window.conditions:
            where.append(condition)
            values += operands
        order = "ASC" if window.before else "DESC"
        for sign, cursor in ((">", window.before), ("<", window.after)):
            if cursor:
                where.append(f"seq {sign} ({_SEQ_OF})")
                values += [self.name, kind, cursor]
        query = (
            f"SELECT body FROM object WHERE {' AND '.join(where)} "  # noqa: S608 - fixed texts
            f"ORDER BY seq {order} LIMIT ?"
        )
        rows = self.store.rows(query, [*values, window.limit + 1])
        found = [_decoded(body) for (body,) in rows[: window.limit]]
        return (found[::-1] if window.before else found), len(rows) > window.limit

    def kept(self, key: str, since: float) -> KeptAnswer | None:
        """Return the answer kept under a key, unless it is older than ``since``."""
        rows = self.store.rows(
            "SELECT method, path, parameters, request_id, status, body FROM idempotent_answer "
            "WHERE account = ? AND key = ? AND created > ?",
            (self.name, key, since),
        )
        if not rows:
            return None
        method, path, parameters, request_id, status, body = rows[0]
        return KeptAnswer(
            method=str(method),
            path=str(path),
            parameters=str(parameters),
            request_id=str(request_id),
            answer=ApiResult(status=int(str(status)), body=_decoded(body)),
        )

    def keep(self, key: str, kept: KeptAnswer, now: float, since: float) -> None:
        """Keep an answer under a key, and forget what is older than ``since``."""
        self.store.rows("DELETE FROM idempotent_answer WHERE created <= ?", (since,))
        self.store.rows(
            "INSERT INTO idempotent_answer "
            "(account, key, created, method, path, parameters, request_id, status, body) "
            "VALUES (?,?,?,?,?,?,?,?,?)",
            (
                *(self.name, key, now, kept.method, kept.path, kept.parameters, kept.request_id),
                *(kept.answer.status, json.dumps(kept.answer.body)),
            ),
        )


def _decoded(text: object) -> JsonObject:
    decoded = json.loads(str(text))
    if not isinstance(decoded, dict):
        raise TypeError(f"a stored body is {type(decoded).__name__}, not an object")
    return decoded
