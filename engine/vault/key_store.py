"""The key store: one random key a secret, in a small database of its own.

A secret's key is wrapped by its subject's key, that one by a key-encryption key in a file.
None is derived: what can be derived again cannot be destroyed.
"""

import os
import sqlite3
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, nullcontext, suppress
from functools import lru_cache, partial
from pathlib import Path

from django.conf import settings

from engine.entropy import random_bytes
from engine.errors import BrokenPartError
from engine.ops import timings
from engine.store import state_file
from nanovm_core.core.vault import KEY_BYTES, NONCE_BYTES, seal, unseal
from nanovm_core.errors import VerificationError

DRAFT = "draft-"  # begins the suffix of a key that is being made

SCHEMA = """
CREATE TABLE IF NOT EXISTS subject (id TEXT PRIMARY KEY, wrapped BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS secret (
    ref TEXT PRIMARY KEY, subject TEXT NOT NULL REFERENCES subject (id), wrapped BLOB NOT NULL
);
CREATE INDEX IF NOT EXISTS secret_subject ON secret (subject);
PRAGMA user_version = 1;
"""
LOCK_SECONDS_MAX = 20  # that a connection waits for another one
LOOK_SECONDS_MAX = 2  # of a look at the store that does nothing with it
VERSION = 1  # of these tables; a release that raises it raises that of the database's tables too
PRAGMAS = (
    "PRAGMA journal_mode=WAL",
    "PRAGMA secure_delete=ON",
    "PRAGMA synchronous=FULL",
    "PRAGMA foreign_keys=ON",
)


class _Kept(threading.local):
    """The connection of this thread, to the file that it was opened for."""

    connection: sqlite3.Connection | None = None
    to: tuple[object, ...] = ()

    def close(self) -> None:
        if self.connection is not None:
            self.connection.close()
        self.connection = None


_kept = _Kept()


class KeyStore:
    """Creates, reads and destroys keys. A destroyed key is overwritten and synced."""

    def __init__(self, folder: Path) -> None:
        self._database = folder / "keys.sqlite3"
        self._kek_file = folder / "kek"

    def prepare(self) -> None:
        """Make the files of the store, for processes that may open them and make none.

        A key-encryption key that was lost is not made anew: who reads under it is told.
        """
        with self._open() as connection, suppress(BrokenPartError):
            self._kek(connection)

    def require_whole(self) -> None:
        """Return if the store opens and the key that wraps its keys is there; nothing is made.

        Raises:
            BrokenPartError: one of both is gone or damaged.
            sqlite3.OperationalError: another process held it for LOOK_SECONDS_MAX.
        """
        self._require_found()
        if not self._database.exists():
            return  # nothing was ever sealed here
        try:
            with closing(sqlite3.connect(self._database, timeout=LOOK_SECONDS_MAX)) as opened:
                self._kek(opened, make=False)
        except sqlite3.OperationalError:
            raise
        except sqlite3.DatabaseError as error:
            raise self._damaged(error) from error

    def new_keys(self, subject: str, refs: Sequence[str]) -> dict[str, bytes]:
        """A fresh random key for each ref, stored wrapped before this returns."""
        return self.new_keys_of(dict.fromkeys(refs, subject))

    def new_keys_of(self, subjects: Mapping[str, str]) -> dict[str, bytes]:
        """A fresh random key for each ref of these subjects, by ref, all in one commit."""
        keys = {ref: random_bytes(KEY_BYTES) for ref in subjects}
        with self._open() as connection:
            unique = dict.fromkeys(subjects.values())
            of = {each: self._subject_key(connection, each) for each in unique}
            connection.executemany(
                "INSERT INTO secret (ref, subject, wrapped) VALUES (?, ?, ?)",
                [(ref, whose, _wrap(of[whose], keys[ref], ref)) for ref, whose in subjects.items()],
            )
        return keys

    def keys(self, refs: Sequence[str]) -> dict[str, bytes]:
        """The keys that still exist, by ref; a destroyed one is simply absent."""
        marks = ",".join("?" * len(refs))
        query = (
            "SELECT secret.ref, subject.id, subject.wrapped, secret.wrapped FROM secret "  # noqa: S608
            f"JOIN subject ON subject.id = secret.subject WHERE secret.ref IN ({marks})"
        )
        with self._open("BEGIN") as connection:
            rows = connection.execute(query, list(refs)).fetchall()
            kek = self._kek(connection) if rows else b""
        return {
            ref: _unwrap(_unwrap(kek, wrapped_subject, subject), wrapped, ref)
            for ref, subject, wrapped_subject, wrapped in rows
        }

    @timings.spent(timings.VAULT)
    def destroy(self, refs: Sequence[str]) -> int:
        """Destroy these keys; says how many there still were.

        When it returns, no file of the store has a byte of any key that was deleted.
        """
        with self._open() as connection:
            gone = _delete(connection, refs)
        self._empty_log()
        return gone

    def drop(self, refs: Sequence[str]) -> None:
        """Delete the keys of values that live on under others.

        A loss of power may undo it until the next write; the next ``destroy`` overwrites them.
        """
        with self._open(synchronous="NORMAL") as connection:
            _delete(connection, refs)

    def destroy_subject(self, subject: str) -> int:
        """Destroy a subject's key and every key wrapped by it; says how many secrets' keys."""
        with self._open() as connection:
            gone = connection.execute("DELETE FROM secret WHERE subject = ?", [subject]).rowcount
            connection.execute("DELETE FROM subject WHERE id = ?", [subject])
        self._empty_log()
        return gone

    def refs(self) -> Mapping[str, str]:
        """Every ref that has a key, with its subject: for fsck."""
        with self._open("BEGIN") as connection:
            return dict(connection.execute("SELECT ref, subject FROM secret").fetchall())

    def refs_of(self, subject: str) -> list[str]:
        """Every ref of a subject that has a key."""
        query = "SELECT ref FROM secret WHERE subject = ? ORDER BY ref"
        with self._open("BEGIN") as connection:
            return [row[0] for row in connection.execute(query, [subject])]

    def subjects(self) -> list[str]:
        """Every subject that has a key."""
        with self._open("BEGIN") as connection:
            return [row[0] for row in connection.execute("SELECT id FROM subject ORDER BY id")]

    def _subject_key(self, connection: sqlite3.Connection, subject: str) -> bytes:
        row = connection.execute("SELECT wrapped FROM subject WHERE id = ?", [subject]).fetchone()
        if row is not None:
            return _unwrap(self._kek(connection), row[0], subject)
        key = random_bytes(KEY_BYTES)
        wrapped = _wrap(self._kek(connection), key, subject)
        connection.execute("INSERT INTO subject (id, wrapped) VALUES (?, ?)", [subject, wrapped])
        return key

    def _empty_log(self) -> None:
        """Write the log's pages over those of the database, and cut it to nothing, on the disk too.

        Raises:
            sqlite3.OperationalError: readers held it for longer than a connection waits.
        """
        busy, _, _ = self._connection().execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        if busy:
            raise sqlite3.OperationalError("readers hold the key store's log: erase again")
        state_file.sync(Path(f"{self._database}-wal"))

    @contextmanager
    def _open(
        self, begin: str = "BEGIN IMMEDIATE", synchronous: str = "FULL"
    ) -> Iterator[sqlite3.Connection]:
        """A connection in one transaction, committed if nothing was raised."""
        opened = self._connection()
        try:
            opened.execute(f"PRAGMA synchronous={synchronous}")
            opened.execute(begin)
            yield opened
            opened.execute("COMMIT")
            opened.execute("PRAGMA shrink_memory")  # no page with a key stays in its cache
        except BaseException as error:
            _kept.close()  # what was begun is rolled back
            if type(error) is sqlite3.DatabaseError:
                raise self._damaged(error) from error
            if isinstance(error, sqlite3.OperationalError):
                error.args = (f"the key store: {error}",)
            raise

    def _connection(self) -> sqlite3.Connection:
        """This thread's connection; a new one in a forked process, or to another file."""
        if _kept.connection is None or _kept.to != self._identity():
            _kept.close()
            _kept.connection = self._connected()
            _kept.to = self._identity()
        return _kept.connection

    def _identity(self) -> tuple[object, ...]:
        try:
            found = self._database.stat()
        except FileNotFoundError:
            return ()
        return os.getpid(), self._database, found.st_dev, found.st_ino

    def _connected(self) -> sqlite3.Connection:
        self._require_found()
        opened = sqlite3.connect(
            self._database, timeout=LOCK_SECONDS_MAX, isolation_level=None, check_same_thread=False
        )
        opened.text_factory = partial(str, errors="replace")  # a name of no UTF-8 breaks no reader
        try:
            [(version,)] = opened.execute("PRAGMA user_version").fetchall()
            if version > VERSION:
                raise OSError(
                    f"The key store {self._database} has schema {version} of a later release of"
                    f" nanovm, and this one reads schema {VERSION}, so nothing was changed."
                    " Start that release."
                )
            # Who makes it does so alone: a change to WAL waits for nobody, and fails at once.
            with state_file.locked(self._database) if version < VERSION else nullcontext():
                for pragma in PRAGMAS:
                    opened.execute(pragma)
                if version < VERSION:
                    opened.executescript(SCHEMA)
        except (sqlite3.DatabaseError, OSError) as error:
            opened.close()
            if isinstance(error, sqlite3.OperationalError | OSError):
                raise
            raise self._damaged(error) from error
        return opened

    def _require_found(self) -> None:
        """Return unless the store is lost: its key file, which is made after it, is still there."""
        if self._kek_file.exists() and not self._database.exists():
            raise BrokenPartError(
                f"The key store {self._database} is gone; put it back from a backup, and restore."
            )

    def _damaged(self, error: Exception) -> OSError:
        text = f"The key store {self._database} is damaged ({error}); put it back from a backup"
        return BrokenPartError(f"{text}, and restore.")

    def _kek(self, connection: sqlite3.Connection, *, make: bool = True) -> bytes:
        """The key-encryption key; made once, readable by the owner alone.

        Raises:
            BrokenPartError: it is gone and keys are wrapped by it, or it cannot be read.
        """
        is_used = connection.execute("SELECT 1 FROM subject LIMIT 1").fetchone()
        if is_used and not self._kek_file.exists():
            text = f"The key file {self._kek_file} is gone, and values were sealed under it. "
            raise BrokenPartError(f"{text}Put it back from a backup.")
        return load_or_create_key(self._kek_file) if make or is_used else b""


def _delete(connection: sqlite3.Connection, refs: Sequence[str]) -> int:
    gone = [(ref,) for ref in refs]
    return connection.executemany("DELETE FROM secret WHERE ref = ?", gone).rowcount


def load_or_create_key(file: Path) -> bytes:
    """The random key in a file of its own (0600), created at first use by one process.

    Drafts that a crash left are removed: a copy would outlive the key.

    Raises:
        BrokenPartError: it cannot be read, or holds no key.
    """
    try:
        found = state_file.read_plain(file)
    except FileNotFoundError:
        found = _create_key(file)
    except OSError as error:
        text = f"The key file {file} cannot be read ({error.strerror})"
        raise BrokenPartError(f"{text}; put it back from a backup.") from error
    if len(found) != KEY_BYTES:
        text = f"The key file {file} has {len(found)} bytes in place of {KEY_BYTES}"
        raise BrokenPartError(f"{text}; put it back from a backup.")
    _sweep(file)
    return found


@lru_cache(maxsize=64)
def _sweep(file: Path) -> None:
    """Remove the drafts of a key that is there, once a process."""
    for draft in file.parent.glob(f"{file.stem}.{DRAFT}*"):
        draft.unlink(missing_ok=True)


def _create_key(file: Path) -> bytes:
    draft = file.with_suffix(f".{DRAFT}{os.getpid()}-{random_bytes(4).hex()}")
    handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "wb") as opened:
        opened.write(random_bytes(KEY_BYTES))
        opened.flush()
        os.fsync(opened.fileno())
    # Atomic, and never in the place of a key that is there; then the draft may be gone too.
    with suppress(FileExistsError, FileNotFoundError):
        os.link(draft, file)
    draft.unlink(missing_ok=True)
    return file.read_bytes()


def _wrap(outer: bytes, key: bytes, name: str) -> bytes:
    return seal(outer, random_bytes(NONCE_BYTES), key, bound_to=name)


def _unwrap(outer: bytes, wrapped: object, name: object) -> bytes:
    if not isinstance(wrapped, bytes) or not isinstance(name, str):  # SQLite keeps anything
        raise VerificationError("PII-002", "A wrapped key or its name is malformed.", at=-1)
    return unseal(outer, wrapped, bound_to=name)


def keystore() -> KeyStore:
    """The key store of this data folder."""
    return KeyStore(settings.NANOVM_DATA)
