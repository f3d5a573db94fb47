"""Bundles, an export and a receipt that the first release made: they verify, byte for byte.

The commands of commit 139307a made them from the repository's own samples. They are never
made anew: a change of the verifier or of a format has to keep accepting them.
"""

import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from nanovm_core import verify
from tests.core.kit.builders import ROOT

FOLDER = ROOT / "tests/vectors/first_release"
KEY = (FOLDER / "log.vkey").read_text("ascii").strip()
WITNESS = (FOLDER / "witness.vkey").read_text("ascii").strip()
HOLDS, INVALID, UNREADABLE, UNPINNED, DIVERGED, STALE = 0, 1, 2, 3, 4, 5


def judged(file: Path, *more: str) -> int:
    """What the verifier says to whoever pinned the log's key."""
    return verify.main([str(file), "--key", KEY, *more])


@pytest.mark.parametrize(
    ("name", "status"),
    [
        ("early.zip", HOLDS),
        ("log.zip", HOLDS),
        ("run.zip", HOLDS),
        ("disclosed.zip", HOLDS),
        ("erased.zip", HOLDS),
        ("log.ndjson", HOLDS),
        ("receipt.json", HOLDS),
        ("fork.zip", HOLDS),  # by itself; it contradicts log.zip
        ("damaged.zip", INVALID),  # the run has an ``integrity`` envelope
    ],
)
def test_what_the_first_release_wrote_is_judged_as_it_was(name: str, status: int) -> None:
    assert judged(FOLDER / name) == status
    assert verify.main([str(FOLDER / name)]) == (status or UNPINNED)


@pytest.mark.parametrize(("name", "status"), [("log.zip", HOLDS), ("early.zip", UNPINNED)])
def test_the_witness_of_then_is_still_read(name: str, status: int) -> None:
    assert judged(FOLDER / name, "--witness", WITNESS) == status


@pytest.mark.parametrize(
    ("first", "then", "status"),
    [
        ("early.zip", "log.zip", HOLDS),
        ("early.zip", "fork.zip", HOLDS),
        ("log.zip", "early.zip", STALE),
        ("log.zip", "fork.zip", DIVERGED),
        ("fork.zip", "log.zip", DIVERGED),
    ],
)
def test_a_checkpoint_that_was_kept_is_compared(
    tmp_path: Path, first: str, then: str, status: int
) -> None:
    known = str(tmp_path / "known")
    assert judged(FOLDER / first, "--known", known) == HOLDS
    assert judged(FOLDER / then, "--known", known) == status


def member(name: str, old: bytes, new: bytes) -> Callable[[Path], None]:
    """Other bytes in one member of an archive."""

    def change(file: Path) -> None:
        with zipfile.ZipFile(file) as archive:
            kept = {each: archive.read(each) for each in archive.namelist()}
        assert kept[name].count(old) >= 1
        kept[name] = kept[name].replace(old, new, 1)
        with zipfile.ZipFile(file, "w") as archive:
            for each, data in kept.items():
                archive.writestr(each, data)

    return change


def text(old: bytes, new: bytes) -> Callable[[Path], None]:
    """Other bytes in a file that is no archive."""

    def change(file: Path) -> None:
        assert file.read_bytes().count(old) >= 1
        file.write_bytes(file.read_bytes().replace(old, new, 1))

    return change


@pytest.mark.parametrize(
    ("name", "change", "status"),
    [
        ("log.zip", member("envelopes.ndjson", b'"currency":"EUR"', b'"currency":"USD"'), INVALID),
        ("run.zip", member("envelopes.ndjson", b'"kind":"result"', b'"kind":"failed"'), INVALID),
        ("run.zip", member("proofs.json", b"A", b"B"), INVALID),
        ("run.zip", member("checkpoint", b"\n49\n", b"\n50\n"), INVALID),
        ("run.zip", member("manifest.json", b'"leaves":15', b'"leaves":14'), INVALID),
        ("run.zip", member("manifest.json", b"nanovm-bundle/1", b"nanovm-bundle/9"), UNREADABLE),
        ("disclosed.zip", member("disclosures.ndjson", b"Nordlicht", b"Suedlicht"), INVALID),
        ("erased.zip", member("envelopes.ndjson", b"art17-1-a", b"art17-1-b"), INVALID),
        ("log.ndjson", text(b'"currency":"EUR"', b'"currency":"USD"'), INVALID),
        ("receipt.json", text(b'"canonical_hash": "', b'"canonical_hash": "0'), INVALID),
        ("receipt.json", text(b'"seq": ', b'"seq": 1'), INVALID),
    ],
)
def test_a_tampered_copy_is_refused(
    tmp_path: Path, name: str, change: Callable[[Path], None], status: int
) -> None:
    file = tmp_path / name
    shutil.copy(FOLDER / name, file)
    assert judged(file) == HOLDS
    change(file)
    assert judged(file) == status
