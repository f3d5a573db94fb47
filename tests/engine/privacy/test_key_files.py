"""Key files that are gone or damaged: said in one sentence, and never replaced by fresh ones."""

import os
import sqlite3
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from engine.store import state_file
from engine.vault import key_store
from engine.vault.key_store import KeyStore
from tests.engine.privacy.test_erasure import paid
from tests.kit.databases import on_sqlite_alone
from tests.kit.house import House

pytestmark = on_sqlite_alone  # the files are the same on every database


def test_store_is_made_by_one_connection_at_a_time(tmp_path: Path) -> None:
    """SQLite lets a change to WAL fail at once where another connection reads."""
    file, made = tmp_path / "keys.sqlite3", "SELECT name FROM sqlite_schema"
    with ThreadPoolExecutor(1) as threads:
        with state_file.locked(file):
            keys = threads.submit(KeyStore(tmp_path).new_keys, "subject", ["a"])
            assert wait([keys], timeout=0.5).done == set()
            with closing(sqlite3.connect(file)) as connection:
                assert connection.execute(made).fetchall() == []
        assert keys.result().keys() == {"a"}


def test_destroyed_key_is_overwritten_where_sqlite_keeps_deleted_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Keeping(sqlite3.Connection):
        """A connection of an SQLite that was built without SECURE_DELETE."""

        def __init__(self, *args: Any, **options: Any) -> None:
            super().__init__(*args, **options)
            self.execute("PRAGMA secure_delete=OFF")

    monkeypatch.setattr(sqlite3, "connect", partial(sqlite3.connect, factory=Keeping))
    store, refs = KeyStore(tmp_path), [f"vault://secret/{number:032x}" for number in range(3)]
    first, second, third = refs
    store.new_keys("subject", refs)
    assert whose_bytes(tmp_path, refs) == refs
    store.drop([third])
    assert list(store.keys(refs)) == [first, second]
    assert whose_bytes(tmp_path, refs) == refs
    assert store.destroy([second]) == 1
    assert whose_bytes(tmp_path, refs) == [first]  # what was dropped is gone with it
    store.new_keys("subject", [third])
    assert store.destroy_subject("subject") == 2
    assert whose_bytes(tmp_path, refs) == []


def test_the_connection_that_is_kept_belongs_to_its_file_its_process_and_no_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (first := KeyStore(tmp_path)).new_keys("subject", ["a"])
    with pytest.raises(sqlite3.IntegrityError):
        first.new_keys("subject", ["b", "a"])
    assert list(first.keys(["a", "b"])) == ["a"]
    (copied := tmp_path / "copied").write_bytes((tmp_path / "keys.sqlite3").read_bytes())
    first.destroy(["a"])
    copied.replace(tmp_path / "keys.sqlite3")  # a backup is put back
    assert list(first.keys(["a"])) == ["a"]
    monkeypatch.setattr(sqlite3, "connect", None)
    assert list(first.keys(["a"])) == ["a"]  # by the connection that is open
    monkeypatch.setattr(os, "getpid", lambda: -1)  # as in a forked child
    with pytest.raises(TypeError):
        first.keys(["a"])


def test_a_key_file_that_is_gone_is_named_and_not_made_anew(house: House) -> None:
    paid(house)
    kek = house.folder / "kek"
    kek.unlink()
    assert house.command("fsck").returncode == 1
    assert not kek.exists()
    more = house.command("run_invoice", "samples/plain.pdf")
    assert (more.returncode, more.stderr.count("\n")) == (2, 1)
    assert f"The key file {kek} is gone" in more.stderr
    assert not kek.exists()


def test_key_is_synced_before_it_is_used_and_its_destruction_before_that_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (store := KeyStore(tmp_path)).new_keys("subject", ["a", "b"])
    store.drop(["a"])
    store.new_keys("subject", ["c"])
    kept = key_store._kept.connection
    assert kept is not None
    assert kept.execute("PRAGMA synchronous").fetchone() == (2,)  # FULL: each commit is synced
    synced = []
    monkeypatch.setattr(os, "fsync", lambda handle: synced.append(os.fstat(handle)))
    store.destroy(["b"])
    log = (tmp_path / "keys.sqlite3-wal").stat()
    assert [(each.st_ino, each.st_size) for each in synced] == [(log.st_ino, 0)]


def test_log_that_a_reader_holds_is_said_and_emptied_the_next_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    connect = sqlite3.connect
    monkeypatch.setattr(sqlite3, "connect", lambda *a, **k: connect(*a, **{**k, "timeout": 0}))
    (store := KeyStore(tmp_path)).new_keys("subject", refs := ["vault://secret/the-only-one"])
    with closing(connect(tmp_path / "keys.sqlite3", isolation_level=None)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT ref FROM secret").fetchall()
        with pytest.raises(sqlite3.OperationalError, match="erase again"):
            store.destroy(refs)
        assert store.keys(refs) == {}
        assert whose_bytes(tmp_path, refs) == refs
        reader.execute("COMMIT")
        assert store.destroy(refs) == 0
        assert whose_bytes(tmp_path, refs) == []


def whose_bytes(folder: Path, refs: list[str]) -> list[str]:
    """Those of these refs that any file of the key store contains."""
    data = b"".join(file.read_bytes() for file in folder.glob("keys.sqlite3*"))
    return [ref for ref in refs if ref.encode() in data]


GARBLED = b"no database, and no key either" * 100


@pytest.mark.parametrize(("name", "data", "said"), [
    ("kek", b"", "has 0 bytes in place of 32"),
    ("signer/key", GARBLED, "has 3000 bytes in place of 32"),
    ("keys.sqlite3", GARBLED, "is damaged"),
])  # fmt: skip
def test_a_damaged_key_file_is_one_sentence(
    house: House, name: str, data: bytes, said: str
) -> None:
    paid(house)
    assert house.command("keys", "vkey").returncode == 0
    key_store._kept.close()  # its log would be read in the file's place
    (house.folder / name).write_bytes(data)
    done = house.command("run_invoice", "samples/plain.pdf")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert said in done.stderr
    assert str(house.folder / name) in done.stderr


def test_a_key_store_of_a_later_release_is_refused_as_it_is(tmp_path: Path) -> None:
    KeyStore(tmp_path).new_keys("subject", ["a"])
    file = tmp_path / "keys.sqlite3"
    with closing(sqlite3.connect(file)) as database:
        assert database.execute("PRAGMA user_version").fetchone() == (key_store.VERSION,)
        database.execute(f"PRAGMA user_version = {key_store.VERSION + 1}")
    key_store._kept.close()
    before = file.read_bytes()
    with pytest.raises(OSError, match=r"of a later release of nanovm.*nothing was changed"):
        KeyStore(tmp_path).keys(["a"])
    assert file.read_bytes() == before
