"""SQLite's write lock, which processes that both want it all the time have in turn.

SQLite backs off to 100 ms between tries, while the process that gave the lock back takes it again
within microseconds: the other one waited for seconds. Django looks for a backend in this module.
"""

import sqlite3

from django.db.backends.sqlite3 import base

from engine.clock import monotonic_ns, sleep_ms

RETRY_MS, RETRY_MAX_MS = 0.5, 5.0  # from try to try: a part of the wait so far
PART = 200  # so that a wait of seconds, which is for one long transaction, takes little processor
PAUSE_MS = 1.5  # from giving it back to taking it again: three tries of another process
LATELY_MS = 100  # so long after this process found it held there are pauses
MS = 1_000_000  # in nanoseconds

_ns = {"held": 0, "given": 0}  # when this process last found it held, and last gave it back


class DatabaseWrapper(base.DatabaseWrapper):
    """Django's own, but for the wait for the write lock."""

    def _start_transaction_under_autocommit(self) -> None:
        with self.wrap_database_errors:
            take(self.connection)

    def _commit(self) -> None:
        super()._commit()  # type: ignore[misc]
        given()

    def _rollback(self) -> None:
        super()._rollback()  # type: ignore[misc]
        given()


def take(connection: sqlite3.Connection) -> None:
    """Begin a transaction with the write lock; waits as long as the connection's busy_timeout.

    Raises:
        sqlite3.OperationalError: as SQLite does, where the lock was held all that time.
    """
    began = monotonic_ns()
    if began - _ns["held"] < LATELY_MS * MS and began - _ns["given"] < PAUSE_MS * MS:
        sleep_ms(PAUSE_MS)
    [(patience_ms,)] = connection.execute("PRAGMA busy_timeout").fetchall()
    try:
        connection.execute("PRAGMA busy_timeout = 0")
        while True:
            try:
                connection.execute("BEGIN IMMEDIATE")
                return
            except sqlite3.OperationalError as error:
                is_held = error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY
                _ns["held"] = monotonic_ns() if is_held else _ns["held"]
                waited_ms = (monotonic_ns() - began) / MS
                if not is_held or waited_ms >= patience_ms:
                    raise
            _ns["held"] = monotonic_ns()
            sleep_ms(min(max(RETRY_MS, waited_ms / PART), RETRY_MAX_MS))
    finally:
        connection.execute(f"PRAGMA busy_timeout = {patience_ms}")


def given() -> None:
    """Note that this process has given the lock back."""
    _ns["given"] = monotonic_ns()
