"""Destroy keys, ciphertext and files, and their remains in the write-ahead log."""

from collections.abc import Sequence
from itertools import repeat
from pathlib import Path

from django.db import connection
from django.db.backends.utils import CursorWrapper

from engine.application import installed
from engine.clock import sleep_ms
from engine.models import Secret
from engine.store import state_file
from engine.vault.key_store import keystore
from engine.vault.secret_store import FILE_NAME, media

WAL, BUSY = "write-ahead log", "busy: readers hold it; erase again to finish"
WAL_WAIT_MS = 50
WAL_TRIES = 60  # readers hold the write-ahead log for milliseconds


def destroy(run_id: str, refs: Sequence[str]) -> tuple[dict[str, int], dict[str, str]]:
    """Destroy keys, ciphertext and files; return the counts, and what could not be destroyed.

    The applications' files are removed with any of them: they repeat several in the clear.
    """
    store = keystore()
    keys = store.destroy(refs)
    if not Secret.objects.filter(run_id=run_id, erased_ms=None).exists():
        store.destroy_subject(run_id)
    rows = Secret.objects.filter(ref__in=refs)
    names = [str(name) for name in rows.exclude(file="").values_list("file", flat=True)]
    own = [name for name in names if FILE_NAME.fullmatch(name)]
    files, failed = unlinked([*(media() / name for name in own), *files_of(run_id)])
    if len(own) < len(names):  # it could lead out of the folder, and the true file is still there
        failed[place_of(media())] = "a row names no file of the vault; run fsck, put its name back"
    texts = rows.exclude(ciphertext=None).update(ciphertext=None)
    if not wal_truncated():
        failed[WAL] = BUSY
    return {"keys": keys, "ciphertexts": texts, **files}, failed


def files_of(run_id: str) -> list[Path]:
    """The files outside of the vault that may repeat a run's values."""
    return [file for each in installed() for file in each.files_of(run_id)]


def place_of(folder: Path) -> str:
    """A folder, as certificates name it."""
    return f"{folder.name} files"


def unlinked(paths: Sequence[Path]) -> tuple[dict[str, int], dict[str, str]]:
    """Remove files for good, and count them by place; one that was gone already counts nothing."""
    gone = {place_of(path.parent): 0 for path in paths}
    failed = {}
    for path in paths:
        there = path.exists()
        try:
            path.unlink(missing_ok=True)
            state_file.sync(path.parent)
        except OSError as error:
            failed[place_of(path.parent)] = f"still there: {error.strerror}"
        else:
            gone[place_of(path.parent)] += there
    return gone, failed


def wal_truncated() -> bool:
    """Empty SQLite's write-ahead log; False where readers keep it busy for a while."""
    if connection.vendor != "sqlite" or connection.in_atomic_block:
        return True  # another database has none, and a transaction's caller empties it later
    with connection.cursor() as cursor:
        cursor.execute("PRAGMA busy_timeout")
        patience_ms = int(cursor.fetchone()[0])
        cursor.execute("PRAGMA busy_timeout = 0")  # it would wait for readers, try after try
        try:
            return any(map(_truncated, repeat(cursor, WAL_TRIES)))
        finally:
            cursor.execute(f"PRAGMA busy_timeout = {patience_ms}")


def _truncated(cursor: CursorWrapper) -> bool:
    cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    if cursor.fetchone()[0] == 0:  # its first column: 1 is busy
        return True
    sleep_ms(WAL_WAIT_MS)
    return False
