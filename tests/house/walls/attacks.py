"""What foreign code in the reader's process tries, and the work that it is there for.

A program of its own: it becomes what ``config.walled`` would run, in place of Celery.
"""

import ctypes
import errno
import json
import os
import resource
import signal
import socket
import sqlite3
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from config import walled, walls
from reader import confinement, sandbox

SECRET: Final = b"sk_test_the_secret_of_this_test"
THREADS: Final = 4
COMMITS: Final = 50  # of each thread
_PTRACE_SEIZE: Final = 0x4206


def reads(*names: str) -> Callable[[Any], bool]:
    return lambda aims: SECRET in Path(aims["data"], *names).read_bytes()


def environment(aims: Any) -> bool:
    return SECRET in Path(f"/proc/{aims['payer']}/environ").read_bytes()


def memory(aims: Any) -> bool:
    with Path(f"/proc/{aims['payer']}/mem").open("rb", buffering=0) as file:
        file.seek(aims["address"])
        return file.read(len(SECRET)) == SECRET


def connects(to: str) -> Callable[[Any], bool]:
    def connect(aims: Any) -> bool:
        with socket.create_connection(("127.0.0.1", aims[to]), timeout=5):
            return True

    return connect


def bind(_: Any) -> bool:
    with socket.socket() as door:
        door.bind(("127.0.0.1", 0))
        return True


def listen(_: Any) -> bool:
    with socket.socket() as door:
        door.listen()  # at a port that the kernel chooses
        return True


def limit(aims: Any) -> bool:
    resource.prlimit(aims["payer"], resource.RLIMIT_CPU, (100_000, 100_000))
    return True


def open_to_others(aims: Any) -> bool:
    Path(aims["data"], "secret_key").chmod(0o644)
    return True


def kill(aims: Any) -> bool:
    os.kill(aims["victim"], signal.SIGKILL)
    return True


def trace(aims: Any) -> bool:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.ptrace(_PTRACE_SEIZE, aims["payer"], None, None) != 0:
        raise OSError(ctypes.get_errno(), "ptrace")
    return True


def overwrite_code(_: Any) -> bool:
    Path(walls.__file__).open("r+b").close()  # it is everybody's: that it can be opened is enough
    return True


def delete_document(aims: Any) -> bool:
    Path(aims["data"], "media", "first.sealed").unlink()
    return True


def replace_document(aims: Any) -> bool:
    Path(aims["data"], "media", "second.sealed").write_bytes(b"another document")
    return True


def write_mail(aims: Any) -> bool:
    Path(aims["data"], "mail", "forged.eml").write_bytes(b"paid")
    return True


# Each with the wall that refuses it alone.
ATTACKS: Final[dict[str, tuple[str, Callable[[Any], bool]]]] = {
    "read the key that signs warrants": ("files", reads("warrant_key")),
    "read the signer's key": ("files", reads("signer", "key")),
    "read the key of cookies": ("files", reads("secret_key")),
    "read the payer's environment": ("files", environment),
    "read the payer's memory": ("files", memory),
    "connect to Stripe's counterpart": ("ports", connects("stripe")),
    "connect to another port": ("ports", connects("outside")),
    "bind a port": ("ports", bind),
    "listen": ("calls", listen),
    "limit the payer's processor time": ("calls", limit),
    "open the key of cookies to others": ("calls", open_to_others),
    "kill the payer": ("signals", kill),
    "trace the payer": ("files", trace),
    "overwrite a module": ("files", overwrite_code),
    "delete a document": ("files", delete_document),
    "replace a document": ("files", replace_document),
    "write into another folder": ("files", write_mail),
}


def commits(aims: Any) -> bool:
    """Four threads, each of whose connections may be the last that somebody else has open."""

    def some(thread: int) -> None:
        for number in range(COMMITS):
            with closing(sqlite3.connect(Path(aims["data"], "app.sqlite3"), timeout=60)) as opened:
                opened.executescript("PRAGMA temp_store=MEMORY; PRAGMA wal_autocheckpoint=5")
                with opened:
                    opened.execute("INSERT INTO made VALUES (?, randomblob(5000))", (thread,))
                if number % 10 == 0:
                    opened.execute("PRAGMA wal_checkpoint(TRUNCATE)")
                opened.execute("SELECT * FROM made ORDER BY what").fetchall()

    with ThreadPoolExecutor(THREADS) as threads:
        list(threads.map(some, range(THREADS)))
    with closing(sqlite3.connect(Path(aims["data"], "app.sqlite3"))) as opened:
        return bool(opened.execute("SELECT COUNT(*) FROM made").fetchone()[0] == THREADS * COMMITS)


def keys(aims: Any) -> bool:
    import django

    django.setup()  # with settings that may not read the key of cookies
    from engine.vault.key_store import KeyStore

    store = KeyStore(Path(aims["data"]))
    made = store.new_keys("run", ["a", "b"])
    return store.destroy(["a"]) == 1 and store.keys(["a", "b"]) == {"b": made["b"]}


WORK: Final[dict[str, Callable[[Any], bool]]] = {
    "connect to the queue": connects("queue"),
    "commit to the database": commits,
    "make and destroy keys": keys,
    "read a document": reads("media", "third.sealed"),
    "confine a reading child": lambda _: sandbox.confinement(60)["confined"] == "landlock, seccomp",
}


def main() -> None:
    """Say what succeeds, and how the rest was refused; then wait for another database."""
    aims = json.loads(os.environ["AIMS"])
    found: dict[str, bool | str] = {}
    for name, attempt in [*WORK.items(), *((name, do) for name, (_, do) in ATTACKS.items())]:
        try:
            found[name] = attempt(aims)
        except OSError as error:
            found[name] = errno.errorcode.get(error.errno or 0, repr(error))
        except Exception as error:  # noqa: BLE001 - told to the test
            found[name] = repr(error)
    print(json.dumps({**walls.said, "found": found}), flush=True)
    sys.stdin.readline()
    from config.celery import replace_broken

    replace_broken()


if __name__ == "__main__":
    if "without" in sys.argv:
        confinement.landlock = lambda *_: 0
        confinement.seccomp = lambda **_: None
    celery = ModuleType("celery.__main__")
    celery.main = main  # type: ignore[attr-defined]
    sys.modules["celery.__main__"] = celery
    walled.main()
