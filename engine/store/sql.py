"""The commit path's SQL: on Django's connection, in its transaction or one of its own.

ADR 0005 says why. Statements are written with ``%s`` and hold for SQLite and PostgreSQL.
"""

import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from functools import lru_cache, partial
from typing import Any, NamedTuple, TypeVar
from uuid import UUID

from django.db import DEFAULT_DB_ALIAS, Error, connection, connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import Model
from django.db.models.base import ModelState
from django.db.transaction import TransactionManagementError

from engine.store.sqlite.base import given, take

AT_ONCE_MAX = 8  # statements that are sent to a server as one
ROWS_MAX = 64  # that a server takes with one INSERT
_AS_THEY_ARE = nullcontext()
M = TypeVar("M", bound=Model)
T = TypeVar("T")
Row = tuple[Any, ...]
SQLITE = connection.vendor == "sqlite"  # of the one database that the settings name


def execute(statement: str, params: Sequence[object] = ()) -> list[Row]:
    """Run a SELECT, and return its rows."""
    with _named_errors():
        return _run(statement, params).fetchall()  # type: ignore[no-any-return]


def ask(statement: str, params: Sequence[object] = ()) -> Callable[[], list[Row]]:
    """Run a SELECT whose rows are called for later: within ``together`` nobody waits for them."""
    with _named_errors():
        return _run(statement, params).fetchall  # type: ignore[no-any-return]


def change(statement: str, params: Sequence[object]) -> int:
    """Run a statement that writes, and return how many rows it changed."""
    if _session.connection is None:
        if SQLITE and not connection.in_atomic_block:  # else it would wait as SQLite does
            return in_transaction(partial(change, statement, params))
        with connection.wrap_database_errors:
            return int(_run(statement, params).rowcount)
    return counted(_run(statement, params).rowcount)


def change_each(statement: str, params: Sequence[Sequence[object]]) -> int:
    """Run a statement once for each of these, and return how many rows it changed in all.

    Of an INSERT on a server, which takes many rows at once, the answer is 0.
    """
    if len(params) < 2:
        return change(statement, params[0]) if params else 0
    with _named_errors():
        if not SQLITE and statement.endswith(f" VALUES {marks(params[0])}"):
            _insert(statement, params)
            return 0
        cursor = _cursor()
        cursor.executemany(_for_sqlite(statement) if SQLITE else statement, params)
        return counted(cursor.rowcount)


def counted(rows: int) -> int:
    """Count rows that the commit path itself wrote, which it knows; their number."""
    _session.changed += rows
    return rows


def _insert(statement: str, rows: Sequence[Sequence[object]]) -> None:
    """Insert rows, each time as many as a power of two, so that the statements are few."""
    at = 0
    while at < len(rows):
        count = min(1 << (len(rows) - at).bit_length() - 1, ROWS_MAX)
        values = [value for row in rows[at : at + count] for value in row]
        _run(_with_rows(statement, len(rows[0]), count), values)
        at += count


@lru_cache(maxsize=512)
def _with_rows(statement: str, width: int, count: int) -> str:
    return f"{statement}{f', {_marks(width)}' * (count - 1)}"


def later(statement: str, *rows: Sequence[object], fenced: bool = False) -> None:
    """Run a statement that writes; a server runs it with others like it, before ``flush`` ends.

    What is put off runs in the order in which each statement first came. A server runs few of
    them as one, so none may read or change what another one wrote.
    ``fenced``: it must find its row as its WHERE says; on a server it sees to that itself.

    Raises:
        RuntimeError: on SQLite, where a fenced row changed.
    """
    if _session.queue is not None:
        _session.queue.setdefault(statement, []).extend(rows)
    elif change_each(statement, rows) != len(rows) and fenced and SQLITE:
        raise RuntimeError("A row changed under its lock; nothing was written.")


def flush() -> None:
    """Run what was put off for a server, which raises DataError where a fenced row changed.

    At the latest it does so with the COMMIT.
    """
    queue = _session.queue
    if not queue:
        return
    _session.queue = {}
    if sum(map(len, queue.values())) > AT_ONCE_MAX:
        for statement, params in queue.items():
            change_each(statement, params)
        return
    terms = [(statement, row) for statement, rows in queue.items() for row in rows]
    values = [value for _, row in terms for value in row]
    _run(_at_once(tuple(statement for statement, _ in terms)), values)


@lru_cache(maxsize=512)
def _at_once(statements: Sequence[str]) -> str:
    """Several statements that write as one, for a server: each but the last in a WITH."""
    *first, last = statements
    named = ", ".join(f"w{place} AS ({each})" for place, each in enumerate(first))
    return f"WITH {named} {last}" if named else last


def together() -> AbstractContextManager[object]:
    """Send the statements within to a server in one exchange; what they changed is not counted."""
    return _AS_THEY_ARE if SQLITE else _connected().pipeline()


def marks(values: Collection[object]) -> str:
    """The placeholders of a list: ``(%s, %s, %s)``; nothing is in an empty one."""
    return _marks(len(values))


@lru_cache(maxsize=1024)
def listed(before: str, count: int, after: str = "") -> str:
    """A statement with the placeholders of a list in the middle, made once for each length."""
    return f"{before}{_marks(count)}{after}"


def _marks(count: int) -> str:
    return f"({', '.join(['%s'] * count) or 'NULL'})"


def key(value: UUID) -> str:
    """A UUID as the database's column holds it."""
    return value.hex if SQLITE else str(value)


def key_of(text: str) -> str:
    """A hyphenated id, in the form that ``key`` gives."""
    return text.replace("-", "") if SQLITE else text


def uuid(value: object) -> UUID:
    """The UUID of what a column holds."""
    return value if isinstance(value, UUID) else uuid_of(str(value))[0]


def name(value: object) -> str:
    """The id of what a column holds, written as envelopes bear it."""
    return str(value) if isinstance(value, UUID) else uuid_of(str(value))[1]


@lru_cache(maxsize=4096)
def uuid_of(text: str) -> tuple[UUID, str]:
    """The UUID that a text says, and its one way to be written."""
    found = UUID(text)
    return found, str(found)


def blob(value: object) -> bytes:
    """The bytes in a column of bytes, where SQLite keeps even text if it is put there."""
    if isinstance(value, bytes):
        return value
    return bytes(value) if isinstance(value, memoryview) else str(value).encode()


def row_of(model: type[M], values: Mapping[str, object]) -> M:
    """The instance that Django would make of a row, without asking every field of it."""
    made = model.__new__(model)
    made.__dict__.update(values)
    made._state = state = ModelState()
    state.adding, state.db, state.fields_cache = False, DEFAULT_DB_ALIAS, {}
    return made


def locked(statement: str, table: str) -> str:
    """A SELECT that locks the rows of a table; SQLite's transactions lock everything."""
    return statement if SQLITE else f"{statement} FOR UPDATE OF {table}"


class _Session(threading.local):
    """The thread's connection for the time of one commit, past Django's look-up of it."""

    connection: Any = None
    queue: dict[str, list[Sequence[object]]] | None = None  # for a server
    begins: bool = False  # a server is told to begin with the first statement
    exchange: ExitStack | None = None  # of a transaction of its own: what is sent with its end
    own: bool = False  # it is in a transaction of its own, on SQLite
    changed: int = 0  # rows that were counted since the last stamp


_session = _Session()


def in_transaction(work: Callable[[], T]) -> T:
    """Run ``work`` in a transaction, in few round trips; its result, once that is committed.

    Within a transaction of the caller's it is a part of that one. What Django's ORM does within
    takes part in it.
    """
    django = connections[DEFAULT_DB_ALIAS]
    with django.wrap_database_errors:
        if django.in_atomic_block:
            return _as_a_part(django, work)
        if django.connection is None:
            django.ensure_connection()
        if SQLITE:
            take(django.connection)
        _session.connection, _session.queue = django.connection, None if SQLITE else {}
        _session.begins, _session.own = not SQLITE, SQLITE
        django.in_atomic_block, django.autocommit = True, False
        try:
            if SQLITE:
                answer = work()
                _check(django)
                django.connection.execute("COMMIT")
                given()
            else:
                answer = _in_exchanges(django, work)
        except BaseException:
            _roll_back(django)
            raise
        finally:
            _session.connection = _session.queue = None
            _session.own = False
        _leave(django)
    if django.run_on_commit:
        django.run_and_clear_commit_hooks()
    return answer


def _as_a_part(django: BaseDatabaseWrapper, work: Callable[[], T]) -> T:
    before = (_session.connection, _session.queue, _session.own)
    _session.connection, _session.own = django.connection, False
    _session.queue = None if SQLITE else {}
    try:
        answer = work()
        flush()
        return answer
    finally:
        _session.connection, _session.queue, _session.own = before


class Stamp(NamedTuple):
    """What SQLite says of all that was written: it is another one after each write.

    ``version`` counts the commits of other connections, ``changes`` the rows that this one wrote.
    """

    connection: Any
    version: int
    changes: int

    def after(self) -> "Stamp | None":
        """The same with what was counted since; None where more was written, past the count."""
        changes = self.connection.total_changes
        is_counted = changes - self.changes == _session.changed
        return Stamp(self.connection, self.version, changes) if is_counted else None


def stamp() -> Stamp | None:
    """What the present transaction found; None on a server and in a transaction of the caller's."""
    if not _session.own:
        return None
    own, _session.changed = _session.connection, 0
    [(version,)] = own.execute("PRAGMA data_version").fetchall()
    return Stamp(own, version, own.total_changes)


def _in_exchanges(django: BaseDatabaseWrapper, work: Callable[[], T]) -> T:
    """What a server does in one transaction; from ``finish`` on it is told all at once."""
    try:
        with ExitStack() as _session.exchange:
            with django.execute_wrapper(_begin_then):
                answer = work()
            flush()
            _check(django)
            if not _session.begins:  # else nothing was asked of it
                _cursor().execute("COMMIT")
        return answer
    finally:
        _session.exchange = None


def _begin_then(execute: Callable[..., Any], *call: Any) -> Any:
    """Have a statement of Django's ORM begin the transaction, where it is the first."""
    _begin()
    return execute(*call)


def finish() -> None:
    """Send a server what follows together with the end of the transaction: nothing waits for it."""
    if _session.exchange is not None and not SQLITE:
        _session.exchange.enter_context(_connected().pipeline())


def _check(django: BaseDatabaseWrapper) -> None:
    if django.needs_rollback:
        raise TransactionManagementError("A part of this transaction failed.")


def _roll_back(django: BaseDatabaseWrapper) -> None:
    """Roll back; a connection that cannot is closed, which does the same."""
    begun = SQLITE or not _session.begins
    _leave(django)
    django.run_on_commit.clear()
    try:
        if begun:
            django._rollback()  # type: ignore[attr-defined]
    except Error:
        django.close()


def _leave(django: BaseDatabaseWrapper) -> None:
    _session.begins = django.in_atomic_block = django.needs_rollback = False
    django.autocommit = True


def _named_errors() -> AbstractContextManager[object]:
    """Outside of a session, which does it once for all: the driver's errors as Django's."""
    return _AS_THEY_ARE if _session.connection is not None else connection.wrap_database_errors


def _connected() -> Any:
    if _session.connection is not None:
        return _session.connection
    if connection.connection is None:
        connection.ensure_connection()
    return connection.connection


def _run(statement: str, params: Sequence[object]) -> Any:
    if SQLITE:
        return (_session.connection or _connected()).execute(_for_sqlite(statement), params)
    return _cursor().execute(statement, params)


def _cursor() -> Any:
    """The driver's own cursor: on PostgreSQL one whose statements the server plans once."""
    if SQLITE:
        return _connected().cursor()
    from psycopg import Cursor  # a process on SQLite does without the driver

    _begin()
    return Cursor(_connected())


def _begin() -> None:
    """Tell a server to begin, where nothing was asked of it yet."""
    from psycopg import Cursor

    if _session.begins:
        _session.begins = False
        Cursor(_connected()).execute("BEGIN")


@lru_cache(maxsize=512)
def _for_sqlite(statement: str) -> str:
    return statement.replace("%s", "?")
