"""The erasure journal: the refs that were erased, in a file that no database takes back.

It is stored beside the signer's state files, outside of the database, and is append-only. After
a backup was put back it names what has to be erased again. It holds refs and the ids of
what else was erased, and nothing more.
"""

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from django.conf import settings

from engine.models import Secret
from engine.store import state_file

UUID = r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
REF = re.compile(rf"vault://secret/{UUID}")
ROWS = 500  # refs that one query asks for


def record(refs: Sequence[str]) -> None:
    """Append the refs of an erasure: when this returns, they are on the disk.

    A crash leaves some of them, and perhaps half of one, which says nothing.
    """
    file = _file()
    with state_file.locked(file):
        is_new = not file.exists()
        handle = os.open(file, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600)
        with os.fdopen(handle, "r+b") as opened:
            lines = "".join(f"{each}\n" for each in refs).encode()
            size = os.fstat(handle).st_size
            was_cut_off = size and os.pread(handle, 1, size - 1) != b"\n"  # by a crash
            opened.write((b"\n" if was_cut_off else b"") + lines)
            opened.flush()
            os.fsync(opened.fileno())
        if is_new:
            state_file.sync(file.parent)


def refs() -> frozenset[str]:
    """Every ref that was ever erased; none where there is no journal."""
    return frozenset(each for each in _lines() if REF.fullmatch(each))


def line_of(kind: str, subject: str) -> str:
    """The line of the journal that names something erased: every version, whichever is put back."""
    return f"{kind}://{subject}"


def subjects(kind: str) -> frozenset[str]:
    """The id of everything of this kind that was ever erased."""
    form = re.compile(rf"{kind}://({UUID})")
    return frozenset(each[1] for each in map(form.fullmatch, _lines()) if each)


def readable_again() -> Iterator[Secret]:
    """The erased secrets that read as if they were not: a backup was put back."""
    for secret in rows():
        if secret.erased_ms is None:
            yield secret


def rows() -> Iterator[Secret]:
    """The rows that the database has of erased secrets, by ref."""
    known = sorted(refs())
    for start in range(0, len(known), ROWS):
        some = Secret.objects.filter(ref__in=known[start : start + ROWS])
        yield from some.select_related("run__workspace").order_by("ref")


def _lines() -> list[str]:
    try:
        return _file().read_text("ascii", "replace").split("\n")
    except FileNotFoundError:
        return []


def _file() -> Path:
    return state_file.private(settings.NANOVM_DATA / "signer") / "erased"
