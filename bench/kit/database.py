"""The databases of contestants on PostgreSQL."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from unittest import mock

import psycopg


@contextmanager
def server() -> Iterator[str]:
    """The address of a server of our own, without a database's name: durable, as it comes.

    Raises:
        FileNotFoundError: where PostgreSQL is not installed.
    """
    from tests import postgres

    durable = ("fsync=on", "listen_addresses=", "max_connections=200")
    with mock.patch.object(postgres, "SETTINGS", durable), postgres.server():
        yield postgres.url("")


def made(name: str) -> str:
    """The address of a new database of this process's own, on the bench's server.

    Raises:
        RuntimeError: where the server is not durable, so that its rates are of something else.
    """
    at = str(sys.modules["__main__"].PGURL)
    name = f"{name}_{os.getpid()}"
    with psycopg.connect(f"{at}postgres", autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}".encode())
        row = connection.execute("SHOW fsync").fetchone()
    if row != ("on",):
        raise RuntimeError("The server has fsync off, so nothing is durable; set it on.")
    return f"{at}{name}"
