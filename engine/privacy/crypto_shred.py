"""Destroy keys, ciphertext and files for good, and what a crash left of them without an owner."""

import re
from collections.abc import Sequence
from pathlib import Path
from uuid import UUID

from django.db import connection
from django.db.models import Model

from engine.application import installed
from engine.clock import now_ms, sleep_ms
from engine.models import Run, Secret
from engine.privacy import journal
from engine.store import state_file
from engine.vault.key_store import keystore
from engine.vault.secret_store import FILE_NAME, media

WAL, BUSY = "write-ahead log", "busy: readers hold it; erase again to finish"
WAL_WAIT_MS = 50
WAL_TRIES = 60  # readers hold the write-ahead log for milliseconds
RUN = re.compile(journal.UUID)
AGE_MS_MIN = 10 * 60_000  # a run that is being made is younger


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
            for _ in range(WAL_TRIES):
                cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)")
                if cursor.fetchone()[0] == 0:  # its first column: 1 is busy
                    return True
                sleep_ms(WAL_WAIT_MS)
            return False
        finally:
            cursor.execute(f"PRAGMA busy_timeout = {patience_ms}")


# --- what a crash between vault and database left without an owner ----------------------------


def destroy_orphans() -> tuple[int, int]:
    """Destroy keys without a run or another owner, and documents without a run.

    Says how many of each there were.
    """
    store, keys = keystore(), 0
    for subject in _forgotten(store.subjects()):
        keys += store.destroy_subject(subject)
    kept = set(Secret.objects.exclude(file="").values_list("file", flat=True))
    before_s = (now_ms() - AGE_MS_MIN) / 1000
    files = [each for each in media().glob("*.sealed") if each.name not in kept]
    old = [each for each in files if each.stat().st_mtime < before_s]
    for each in old:
        each.unlink(missing_ok=True)
    return keys, len(old)


def _forgotten(subjects: list[str]) -> list[str]:
    """Subjects whose owner is not there, and that are old enough to have been stored."""
    before_ms = now_ms() - AGE_MS_MIN
    found = {each: owner for each in subjects if (owner := _owner(each)) is not None}
    dated = {each: owner for each, owner in found.items() if owner[1].version == 7}
    old = {each: owner for each, owner in dated.items() if owner[1].int >> 80 < before_ms}
    there: set[UUID] = set()
    for model in {kind for kind, _ in old.values()}:
        ids = [owner for kind, owner in old.values() if kind is model]
        there.update(model._default_manager.filter(id__in=ids).values_list("id", flat=True))
    return [each for each, (_, owner) in old.items() if owner not in there]


def _owner(subject: str) -> tuple[type[Model], UUID] | None:
    """Whose keys these are; an id begins with its time of birth. None: no application knows."""
    for application in installed():
        for prefix, model in application.key_owners.items():
            if subject.startswith(prefix):
                return model, UUID(subject.removeprefix(prefix))
    return (Run, UUID(subject)) if RUN.fullmatch(subject) else None
