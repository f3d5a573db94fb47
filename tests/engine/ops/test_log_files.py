"""Log files are rotated by size while others write them, and no line of app.log is lost."""

import fcntl
import logging
import shutil
from logging.handlers import WatchedFileHandler
from pathlib import Path

import pytest

from engine.ops import log_files
from engine.ops.processes import Child


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files of a hundred bytes, and two older ones of each."""
    monkeypatch.setattr(log_files, "BYTES_MAX", 100)
    monkeypatch.setattr(log_files, "KEPT", 2)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.name != "rotate.lock")


@pytest.mark.parametrize("name", ["app.log", "web.log"])
def test_a_file_over_its_size_is_moved_and_the_oldest_goes(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_text("a" * 100)
    log_files.rotate(tmp_path)
    assert names(tmp_path) == [name]
    for text in "abcd":
        path.write_text(text * 101)
        log_files.rotate(tmp_path)
    kept = {f"{name}.1": "d" * 101, f"{name}.2": "c" * 101}
    assert {each.name: each.read_text() for each in tmp_path.glob(f"{name}.*")} == kept


def test_the_open_output_of_a_process_goes_on_from_the_beginning(tmp_path: Path) -> None:
    path = tmp_path / "web.log"
    with path.open("ab", buffering=0) as output:
        output.write(b"a" * 101)
        child = Child(title="it", popen=None, log=path, log_start=50)  # type: ignore[arg-type]
        log_files.rotate(tmp_path)
        output.write(b"new\n")
        assert child.last_words() == "new"
    assert path.read_bytes() == b"new\n"


def test_a_line_that_is_written_while_app_log_is_rotated_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    handler, copy, sent = WatchedFileHandler(tmp_path / "app.log"), shutil.copyfile, list[str]()

    def write(text: str) -> None:
        handler.emit(logging.makeLogRecord({"msg": text}))
        sent.append(text)

    def copyfile(from_: Path, to: Path) -> None:
        copy(from_, to)
        write("between")

    monkeypatch.setattr(log_files.shutil, "copyfile", copyfile)  # type: ignore[attr-defined]
    write("a" * 101)
    log_files.rotate(tmp_path)
    write("after")
    handler.close()
    found = [line for path in tmp_path.glob("app.log*") for line in path.read_text().splitlines()]
    assert sorted(found) == sorted(sent)


def test_what_another_process_rotates_is_left_to_it(tmp_path: Path) -> None:
    (tmp_path / "app.log").write_text("a" * 101)
    with (tmp_path / "rotate.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        log_files.rotate(tmp_path)
    assert names(tmp_path) == ["app.log"]
