"""Key files that are gone or damaged: said in one sentence, and never replaced by fresh ones."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.pipeline.databases import on_sqlite_alone
from tests.pipeline.house import House
from tests.pipeline.privacy.test_erasure import paid

pytestmark = on_sqlite_alone  # the files are the same on every database


def test_a_key_file_that_is_gone_is_named_and_not_made_anew(house: House) -> None:
    paid(house)
    kek = house.folder / "kek"
    kek.unlink()
    assert house.command("fsck", stripe=False).returncode == 1
    assert not kek.exists()
    more = house.command("run_invoice", "samples/plain.pdf")
    assert (more.returncode, more.stderr.count("\n")) == (2, 1)
    assert f"The key file {kek} is gone" in more.stderr
    assert not kek.exists()


def emptied(file: Path) -> None:
    file.write_bytes(b"")


def garbled(file: Path) -> None:
    file.write_bytes(b"no database, and no key either" * 100)


@pytest.mark.parametrize(
    ("name", "spoil", "said"),
    [
        ("kek", emptied, "has 0 bytes in place of 32"),
        ("signer/key", garbled, "has 3000 bytes in place of 32"),
        ("keys.sqlite3", garbled, "is damaged"),
    ],
)
def test_a_damaged_key_file_is_one_sentence(
    house: House, name: str, spoil: Callable[[Path], None], said: str
) -> None:
    paid(house)
    assert house.command("keys", "vkey", stripe=False).returncode == 0
    spoil(house.folder / name)
    done = house.command("run_invoice", "samples/plain.pdf")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert said in done.stderr
    assert str(house.folder / name) in done.stderr
