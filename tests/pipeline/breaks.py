"""Ways to break a file, a row, a table or a lock; each is mended where its block ends."""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path
from socket import create_server
from typing import Any

import psycopg
from django.db import connection, connections

from engine.runtime import warrants
from tests.kit.house import House, sql

WAIT_S = 0.05  # in place of the seconds that each part may take
Break = AbstractContextManager[None]
Put = Callable[[Path], object]


def nothing(_: Path) -> None:
    """Leave a place empty."""


@contextmanager
def moved(file: Path, put: Put = nothing) -> Iterator[None]:
    """Something else, or nothing, in the place of a file and of what lies beside it."""
    kept = {each: each.with_name(f"was.{each.name}") for each in file.parent.glob(f"{file.name}*")}
    for each, away in kept.items():
        each.rename(away)
    put(file)
    yield
    for each in file.parent.glob(f"{file.name}*"):
        each.rmdir() if each.is_dir() else each.unlink()
    for each, away in kept.items():
        away.rename(each)


@contextmanager
def renamed(table: str, column: str = "") -> Iterator[None]:
    """Another name for a table, or for one of its columns."""

    def rename(old: str, new: str) -> None:
        named = f"{table} RENAME COLUMN {old}" if column else f"{old} RENAME"
        with connection.cursor() as cursor:
            cursor.execute(f"ALTER TABLE {named} TO {new}")

    rename(column or table, "was")
    yield
    rename("was", column or table)


@contextmanager
def held(house: House, table: str) -> Iterator[None]:
    """A lock of somebody else on a table, or on the whole of a file; nobody waits for it long."""
    options: dict[str, Any] = connection.settings_dict["OPTIONS"]
    kept, short = dict(options), f"lock_timeout={int(WAIT_S * 1000)}ms"
    if house.database.url:
        options["options"] = options["options"].replace("lock_timeout=20s", short)
    else:
        options["timeout"] = WAIT_S
    connections.close_all()
    with closing(holder(house.database.name, house.database.url, table)):
        yield
    options.update(kept)
    connections.close_all()


def holder(name: str, url: str, table: str) -> Any:
    """The connection that holds it until it is closed."""
    opened: Any = psycopg.connect(url) if url else sqlite3.connect(name, isolation_level=None)
    opened.execute(f"LOCK TABLE {table} IN ACCESS EXCLUSIVE MODE" if url else "BEGIN IMMEDIATE")
    return opened


@contextmanager
def edited(table: str, where: str, statement: str) -> Iterator[None]:
    """A statement behind the application's back; the rows as they were are put back."""
    sql((f"CREATE TABLE kept AS SELECT * FROM {table} WHERE {where}", ()), (statement, ()))
    warrants._sealed.cache_clear()
    yield
    gone, back = f"DELETE FROM {table} WHERE {where}", f"INSERT INTO {table} SELECT * FROM kept"
    sql((gone, ()), (back, ()), ("DROP TABLE kept", ()))
    warrants._sealed.cache_clear()


@contextmanager
def for_good(statement: str) -> Iterator[None]:
    """A statement behind the application's back, which the product itself mends."""
    sql((statement, ()))
    yield


@contextmanager
def silent(at: Callable[[str], Break]) -> Iterator[None]:
    """A part that is asked at a server which takes connections and answers nothing."""
    with create_server(("127.0.0.1", 0)) as server, at(f"127.0.0.1:{server.getsockname()[1]}"):
        yield
