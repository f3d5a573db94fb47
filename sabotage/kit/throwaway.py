"""Throw-away data folders, and programs of ours that are run on one, each to its end."""

import fcntl
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

from engine.ops.processes import CHILD_GUARD, ROOT

# What names the product's own servers, keys and settings has no business in such a folder.
OWN = ("NANOVM_", "STRIPE_", "DATABASE_URL", "REDIS_URL", "PORT")
# What modules of ours are started through; in a copy that lacks guards, so that they lack them too.
THROUGH: tuple[str, ...] = ()


class NoOutcomeError(Exception):
    """There is no outcome; the text says why and what to do."""


class BusyError(NoOutcomeError):
    """Another one is at work."""


def command(module: str, *arguments: str) -> list[str]:
    """The command line that runs one of our modules."""
    return [sys.executable, "-m", *THROUGH, module, *arguments]


def environment(folder: Path) -> dict[str, str]:
    """Nothing of the product's own servers, keys and data; and never real Stripe."""
    kept = {name: text for name, text in os.environ.items() if not name.startswith(OWN)}
    return {**kept, "NANOVM_DATA": str(folder), "DJANGO_SETTINGS_MODULE": "config.settings"}


@contextmanager
def folder_in(home: Path, what: str) -> Iterator[Path]:
    """A fresh data folder, gone afterwards; what a killed process left is removed first.

    Raises:
        BusyError: there is one at a time in each home.
    """
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    with (home / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise BusyError(f"Another {what} is running. Try again in a minute.") from None
        for left in home.iterdir():
            if left.is_dir():
                shutil.rmtree(left)
        folder = home / uuid4().hex
        folder.mkdir(mode=0o700)
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)
            fcntl.flock(lock, fcntl.LOCK_UN)  # at once, whatever child was forked with the file


def outcome_of(
    program: Sequence[str], folder: Path, asked: Mapping[str, Any], seconds_max: float, what: str
) -> dict[str, Any]:
    """Run a program that reads a line of JSON and writes one; it ends when this process does.

    Raises:
        NoOutcomeError: it did not come to an end in time, or broke.
    """
    popen = subprocess.Popen(  # noqa: S603 - our own program, and no shell
        [sys.executable, "-I", "-S", str(CHILD_GUARD), str(os.getpid()), *program],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=ROOT,
        env=environment(folder),
        start_new_session=True,
        text=True,
    )
    try:
        said, complained = popen.communicate(json.dumps(asked) + "\n", timeout=seconds_max)
    except subprocess.TimeoutExpired:
        popen.kill()
        popen.communicate()
        text = f"The {what} did not finish in {seconds_max:g} s and was stopped. Try again later."
        raise NoOutcomeError(text) from None
    finally:
        popen.kill()  # and with it whatever it started: each is tied to it
    if popen.returncode != 0:
        last = next((line for line in reversed(complained.splitlines()) if line.strip()), "")
        raise NoOutcomeError(f"The {what} ended with status {popen.returncode}: {last}")
    outcome: dict[str, Any] = json.loads(said.splitlines()[-1])
    return outcome
