"""The walls of the reader's process: what foreign code in it can do, and what its work needs."""

import errno
import json
import os
import shutil
import socket
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from config import walled, walls
from engine.vault import key_store
from engine.vault.key_store import KeyStore
from reader import confinement
from tests.house.demo import ROOT, environment
from tests.house.walls.attacks import ATTACKS, SECRET, WORK

MODES = ("behind", "without")
VICTIM = """
import ctypes, os, sys
ctypes.CDLL(None).prctl(0x59616d61, ctypes.c_ulong(-1), 0, 0, 0)  # Yama lets anyone trace it
secret = ctypes.create_string_buffer(os.environ["STRIPE_SECRET_KEY"].encode())
print(ctypes.addressof(secret), flush=True)
sys.stdin.read()
"""


class Tried(NamedTuple):
    """What a process said, whether its victims live, and what became of the data folder."""

    said: dict[str, Any]
    alive: bool
    changed: set[str]
    status: int
    last_words: str


def tried(mode: str, data: Path) -> Tried:
    """All work and all attacks in one process, which then finds another database in its place."""
    with ExitStack() as stack:
        victims = [stack.enter_context(waiting()) for _ in range(2)]
        aims = {"data": str(data), "payer": victims[0].pid, "victim": victims[1].pid}
        aims["address"] = int(victims[0].stdout.readline())  # type: ignore[union-attr]
        for name in ("queue", "stripe", "outside"):
            door = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
            aims[name] = door.getsockname()[1]
        before = contents(data)
        program = [sys.executable, "-m", "tests.house.walls.attacks", mode]
        queue = f"redis://127.0.0.1:{aims['queue']}/0"
        env = environment(data, AIMS=json.dumps(aims), REDIS_URL=queue)
        process = stack.enter_context(piped(program, env))
        assert process.stdout is not None
        line = process.stdout.readline()
        after = contents(data)
        if mode == "without":
            victims[1].wait(60)
        alive = all(each.poll() is None for each in victims)
        shutil.copyfile(data / "kek", data / "restored").replace(data / "app.sqlite3")
        words = process.communicate("\n", timeout=60)[1]
    assert line, words
    changed = {name for name in before | after if before.get(name) != after.get(name)}
    return Tried(json.loads(line), alive, changed, process.returncode, words)


def piped(program: list[str], env: dict[str, str]) -> "subprocess.Popen[str]":
    pipe = subprocess.PIPE
    return subprocess.Popen(
        program, cwd=ROOT, env=env, stdin=pipe, stdout=pipe, stderr=pipe, text=True
    )


@contextmanager
def waiting() -> Iterator["subprocess.Popen[str]"]:
    """A process with a secret, which stands for the payer's."""
    with piped([sys.executable, "-c", VICTIM], {"STRIPE_SECRET_KEY": SECRET.decode()}) as process:
        yield process
        process.kill()


def made(data: Path) -> Path:
    """A data folder with something to steal."""
    for name in ("media", "mail", "logs", "signer/logs"):
        (data / name).mkdir(parents=True)
    for name in ("warrant_key", "secret_key", "signer/key"):
        (data / name).write_bytes(SECRET)
    for name in ("first", "second", "third"):
        (data / "media" / f"{name}.sealed").write_bytes(SECRET)
    KeyStore(data).prepare()
    key_store._kept.close()
    with closing(sqlite3.connect(data / "app.sqlite3")) as opened:
        opened.execute("PRAGMA journal_mode=WAL")
        opened.execute("CREATE TABLE made (thread, what)")
    return data


def contents(data: Path) -> dict[str, bytes]:
    """Every file but the databases, by name."""
    files = [path for path in data.rglob("*") if path.is_file() and ".sqlite3" not in path.name]
    return {str(path.relative_to(data)): path.read_bytes() for path in files}


@pytest.fixture(scope="module")
def modes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Tried]:
    return {mode: tried(mode, made(tmp_path_factory.mktemp(mode))) for mode in MODES}


@pytest.mark.parametrize("attack", ATTACKS)
def test_attack_fails_behind_the_walls_and_succeeds_without_them(
    modes: dict[str, Tried], attack: str
) -> None:
    behind, without = (modes[mode].said for mode in MODES)
    assert without["found"][attack] is True
    if ATTACKS[attack][0] not in behind["confined"]:
        pytest.skip(f"this kernel lacks a wall: {behind['missing']}")
    assert behind["found"][attack] in {"EACCES", "EPERM"}


def test_foreign_code_behind_the_walls_changes_nothing(modes: dict[str, Tried]) -> None:
    if modes["behind"].said["missing"]:
        pytest.skip(f"this kernel lacks a wall: {modes['behind'].said['missing']}")
    assert (modes["behind"].alive, modes["behind"].changed) == (True, set())
    taken = {"media/first.sealed", "media/second.sealed", "mail/forged.eml"}
    assert (modes["without"].alive, modes["without"].changed) == (False, taken)


@pytest.mark.parametrize("mode", MODES)
def test_reader_does_its_work(modes: dict[str, Tried], mode: str) -> None:
    assert {name: modes[mode].said["found"][name] for name in WORK} == dict.fromkeys(WORK, True)


def test_process_ends_where_another_database_came_in_the_place_of_its_own(
    modes: dict[str, Tried],
) -> None:
    assert (modes["without"].status, modes["without"].last_words) == (0, "")
    if "files" in modes["behind"].said["confined"]:
        assert modes["behind"].status == os.EX_TEMPFAIL
        assert "app.sqlite3 is another file than at the start" in modes["behind"].last_words


@pytest.mark.parametrize(
    ("abi", "missing", "files", "ports"),
    [
        (7, "", False, ["queue 6379"]),
        (5, "signals (this kernel's Landlock is of ABI 5)", False, ["queue 6379"]),
        (3, "ports (this kernel's Landlock is of ABI 3), signals", False, [walls.FREE]),
        (None, "files (Function not implemented), ports", True, [walls.FREE]),
    ],
)
def test_walls_that_the_kernel_lacks_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, abi: int | None, missing: str, files: bool,
    ports: list[str],
) -> None:  # fmt: skip
    def landlock(*_: object) -> int:
        if abi is None:
            raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
        return abi

    monkeypatch.setattr(confinement, "landlock", landlock)
    monkeypatch.setattr(confinement, "seccomp", lambda **_: None)
    monkeypatch.setattr(walls, "said", {})
    monkeypatch.setattr(walls, "_seen", {})
    said = walls.close(tmp_path, {"queue": 6379})
    assert str(said["missing"]).startswith(missing)
    assert bool(missing) == bool(said["missing"])
    assert (said["files"] == [walls.FREE], said["ports"]) == (files, ports)


def test_no_rule_opens_the_data_folder_wherever_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the project, as by default, and below a folder of the system."""
    for name in ("code/pipeline", "code/.git", "code/var", "usr/lib", "usr/share/nanovm/media"):
        (tmp_path / name).mkdir(parents=True)
    monkeypatch.setattr(walls, "PROJECT", tmp_path / "code")
    monkeypatch.setattr(walls, "SYSTEM", (str(tmp_path / "usr"),))
    for data in (tmp_path / "code/var", tmp_path / "usr/share/nanovm", tmp_path / "code/pipeline"):
        rules = walls._rules(data)
        opened = [path for path, rights in rules.items() if rights & confinement.READ_FILE]
        assert not [path for path in opened if data.is_relative_to(path)]
        assert (tmp_path / "usr/lib" in opened) == data.is_relative_to(tmp_path / "usr")
        assert not {tmp_path / each for each in ("code", "code/.git", "code/var")} & {*opened}


@pytest.mark.parametrize(
    ("name", "address", "port"),
    [
        ("REDIS_URL", "redis://:secret@127.0.0.1:4711/0", {"queue": 4711}),
        ("REDIS_URL", "rediss://queue.example/0", {"queue": 6379}),
        ("REDIS_URL", "unix:///run/redis.sock", {}),
        ("DATABASE_URL", "postgresql://u:p@db.example/name", {"PostgreSQL": 5432}),
        ("DATABASE_URL", "postgresql://u@%2Frun%2Fpostgres/name", {}),
        ("NANOVM_MODEL_URL", "http://127.0.0.1:11434/v1", {"model": 11434}),
        ("NANOVM_MODEL_URL", "https://model.example/v1", {"model": 443}),
        ("NANOVM_ADVISOR_URL", "http://127.0.0.1:11435/v1", {"advisor": 11435}),
        ("NANOVM_MODEL_URL", "https://model.example:0x/v1", {}),
        ("STRIPE_API_BASE", "http://127.0.0.1:12111", {}),
    ],
)
def test_ports_are_those_of_its_own_servers(name: str, address: str, port: dict[str, int]) -> None:
    assert walled.ports({name: address}) == port


def test_its_environment_has_no_upstreams_token_also_where_the_list_is_broken(
    tmp_path: Path,
) -> None:
    entry = "[upstreams.a]\nkind = 'http'\nurl = 'https://a'\ntoken_env = {}\n"
    (tmp_path / "upstreams.toml").write_text(
        entry.format("'BANK'") + entry.replace(".a]", ".b]").format('"SHOP_2"') + "[["
    )
    environ = {"NANOVM_GATE": str(tmp_path), "BANK": "open", "SHOP_2": "open", "PATH": "/bin"}
    assert {**environ, **walled.without(environ)} == {
        **environ,
        **walled.WITHOUT,
        **dict.fromkeys(("BANK", "SHOP_2"), ""),
    }
    assert walled.without({}) == walled.without({"NANOVM_GATE": ""}) == walled.WITHOUT
