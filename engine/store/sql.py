"""Plain SQL of the commit path, register, pages and audit: on Django's connection and transaction.

ADR 0005 says why. Statements are written with ``%s`` and hold for SQLite and PostgreSQL.
"""

import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cache, lru_cache, partial
from typing import Any, NamedTuple, TypeVar
from uuid import UUID

from django.db import DEFAULT_DB_ALIAS, Error, connection, connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import Model
from django.db.models.base import ModelState
from django.db.transaction import TransactionManagementError

from engine.store.sqlite.base import given, take

ROWS_MAX = 64  # that a server takes with one INSERT
OF_LOG = "WHERE workspace_id = %s ORDER BY id"  # the rows of a log
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
    """Run a SELECT whose rows are called for later: until then a server need not answer."""
    if _session.connection is None:
        rows = execute(statement, params)
        return lambda: rows
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
    """Run a statement once for each of these, and return how many rows it changed in all."""
    if SQLITE and _session.connection is not None:
        return counted(_session.connection.executemany(_for_sqlite(statement), params).rowcount)
    if len(params) < 2:
        return change(statement, params[0]) if params else 0
    with _named_errors():
        if not SQLITE:
            return sum(each.rowcount for each in _ask_each(statement, params))
        cursor = _connected().cursor()
        cursor.executemany(_for_sqlite(statement), params)
        return counted(cursor.rowcount)


def counted(rows: int) -> int:
    """Count rows that the commit path itself wrote, which it knows; their number."""
    _session.changed += rows
    return rows


def _ask_each(statement: str, rows: Sequence[Sequence[object]]) -> list[Any]:
    """Ask a server for each row, or insert each time as many as a power of two: few statements."""
    at, width, asked = 0, len(rows[0]) if rows else 0, []
    most = ROWS_MAX if statement.endswith(f" VALUES {_marks(width)}") else 1
    while at < len(rows):
        count = min(1 << (len(rows) - at).bit_length() - 1, most)
        values = [value for row in rows[at : at + count] for value in row]
        asked.append(_run(_with_rows(statement, width, count), values))
        at += count
    return asked


@lru_cache(maxsize=512)
def _with_rows(statement: str, width: int, count: int) -> str:
    return f"{statement}{f', {_marks(width)}' * (count - 1)}"


def later(statement: str, *rows: Sequence[object], fenced: bool = False) -> None:
    """Run a statement that writes, whose result is not read; a server gets it with the next one.

    ``fenced``: it must find its row as its WHERE says; on a server it sees to that itself.

    Raises:
        RuntimeError: on SQLite, where a fenced row changed.
    """
    if not SQLITE and _session.connection is not None:
        _ask_each(statement, rows)
    elif change_each(statement, rows) != len(rows) and fenced and SQLITE:
        raise RuntimeError("A row changed under its lock; nothing was written.")


def has(column: str) -> str:
    """The clause that some bytes are in those of a column."""
    return f"instr({column}, %s) > 0" if SQLITE else f"position(%s IN {column}) > 0"


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


@lru_cache(maxsize=4096)
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


def rows(model: type[M], clause: str, params: Sequence[object] = ()) -> list[M]:
    """The rows of a model's table that a clause finds, with their values as Django reads them."""
    return [*_made(model, execute(f"{_reading(model)[1]} {clause}", params))]


def rows_in_parts(
    model: type[M], params: Sequence[Any], clause: str = OF_LOG, most: int = 100
) -> Iterator[M]:
    """The same, in the caller's transaction, with at most so many in memory."""
    return _made(model, in_parts(f"{_reading(model)[1]} {clause}", params, most))


def _made(model: type[M], found: Iterable[Row]) -> Iterator[M]:
    compiler, _, names, converters = _reading(model)
    for values in compiler.apply_converters(found, converters):
        yield row_of(model, dict(zip(names, values, strict=True)))


def in_parts(statement: str, params: Sequence[Any], most: int) -> Iterator[Row]:
    """Run a SELECT in the caller's transaction, and hold at most so many of its rows."""
    with connection.chunked_cursor() as cursor:
        cursor.execute(statement, params)
        while part := cursor.fetchmany(most):
            yield from part


@cache
def _reading(model: type[Model]) -> tuple[Any, str, Sequence[str], Any]:
    """Django's SELECT of a table, made once, the names of its columns, and how it reads them."""
    own = connections.create_connection(DEFAULT_DB_ALIAS)  # never opened: no thread's is kept
    compiler = model._base_manager.all().query.get_compiler(connection=own)
    statement, columns = compiler.as_sql()[0], [each for each, _, _ in compiler.select]
    names = [each.target.attname for each in columns]
    return compiler, statement, names, compiler.get_converters(columns)


def locked(statement: str, table: str) -> str:
    """A SELECT that locks the rows of a table; SQLite's transactions lock everything."""
    return statement if SQLITE else f"{statement} FOR UPDATE OF {table}"


class _Session(threading.local):
    """The thread's connection for the time of one commit, past Django's look-up of it."""

    connection: Any = None
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
        own = _connected(django)
        if SQLITE:
            take(own)
        _session.connection, _session.own = own, SQLITE
        django.in_atomic_block, django.autocommit = True, False
        try:
            if not SQLITE:
                own.execute("BEGIN")  # with what is waited for first
            with _in_order(django):
                answer = work()
            if django.needs_rollback:
                raise TransactionManagementError("A part of this transaction failed.")
            if SQLITE:
                own.execute("COMMIT")
                given()
            else:
                own.commit()
        except BaseException:
            _roll_back(django)
            raise
        finally:
            _session.connection, _session.own = None, False
        _leave(django)
    if django.run_on_commit:
        django.run_and_clear_commit_hooks()
    return answer


def _as_a_part(django: BaseDatabaseWrapper, work: Callable[[], T]) -> T:
    before = (_session.connection, _session.own)
    _session.connection, _session.own = _connected(), False
    try:
        _sent()  # what the caller asked, which stands whatever becomes of the part
        with _in_order(django):
            answer = work()
        _sent()
        return answer
    finally:
        if not SQLITE:
            _session.connection.asked.clear()
        _session.connection, _session.own = before


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


def _in_order(django: BaseDatabaseWrapper) -> AbstractContextManager[object]:
    """What Django's ORM asks within comes behind what was asked before it."""
    return _AS_THEY_ARE if SQLITE else django.execute_wrapper(_sent)


def _sent(execute: Callable[..., Any] = lambda: None, *call: Any) -> Any:
    """Send a server what it was asked, and wait; then call this."""
    if not SQLITE:
        with connection.wrap_database_errors:
            _connected().wait()
    return execute(*call)


def _roll_back(django: BaseDatabaseWrapper) -> None:
    """Roll back; a connection that cannot is closed, which does the same."""
    if not SQLITE:
        _session.connection.asked.clear()
    _leave(django)
    django.run_on_commit.clear()
    try:
        django._rollback()  # type: ignore[attr-defined]
    except Error:
        django.close()


def _leave(django: BaseDatabaseWrapper) -> None:
    django.in_atomic_block = django.needs_rollback = False
    django.autocommit = True


def _named_errors() -> AbstractContextManager[object]:
    """Outside of a session, which does it once for all: the driver's errors as Django's."""
    return _AS_THEY_ARE if _session.connection is not None else connection.wrap_database_errors


def _connected(django: BaseDatabaseWrapper | None = None) -> Any:
    """The driver's connection of this thread; of a server, what that is asked."""
    if _session.connection is not None:
        return _session.connection
    django = django or connections[DEFAULT_DB_ALIAS]
    if django.connection is None:
        django.ensure_connection()
    own = django.connection
    if SQLITE:
        return own
    from engine.store.exchange import Exchange  # a process on SQLite does without the driver

    return own.__dict__.get("exchange") or Exchange(own)


def _run(statement: str, params: Sequence[object]) -> Any:
    own = _session.connection or _connected()
    return own.execute(_for_sqlite(statement) if SQLITE else statement, params)


@lru_cache(maxsize=512)
def _for_sqlite(statement: str) -> str:
    return statement.replace("%s", "?")
