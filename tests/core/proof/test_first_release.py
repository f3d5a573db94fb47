"""Bundles, an export and a receipt that the first release made: they verify, byte for byte.

The commands of commit 139307a made them from the repository's own samples. They are never
made anew: a change of the verifier or of a format has to keep accepting them.
"""

from pathlib import Path

import pytest

from nanovm_core import verify
from tests.core.kit.builders import ROOT

FOLDER = ROOT / "tests/vectors/first_release"
KEY = (FOLDER / "log.vkey").read_text("ascii").strip()
WITNESS = (FOLDER / "witness.vkey").read_text("ascii").strip()
HOLDS, INVALID, UNPINNED, DIVERGED, STALE = 0, 1, 3, 4, 5


def judged(file: Path, *more: str) -> int:
    return verify.main([str(file), "--key", KEY, *more])


@pytest.mark.parametrize(
    ("name", "status"),
    [
        *((f"{name}.zip", HOLDS) for name in ("early", "log", "run", "disclosed", "erased")),
        *((name, HOLDS) for name in ("log.ndjson", "receipt.json")),
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
