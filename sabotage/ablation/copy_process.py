"""Runs an attack on a temporary copy of the product that lacks a guard, in a process of its own.

Nothing of this process is changed, and no switch is turned: another process compiles its own
modules without the guard before it starts (``python -m mutations``), on a data folder, a
database and a Stripe counterpart of its own.
"""

import fcntl
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any
from uuid import uuid4

from django.conf import settings

from engine.ops.processes import CHILD_GUARD, ROOT
from sabotage.ablation.guards import Claim
from sabotage.kit.injector import Value

COMPARING_SECONDS_MAX = 20.0  # a quarter of a second on an idle machine
SECONDS_MAX = 180.0  # the slowest starts ten processes, on a machine that may be busy
FOLDER = "copies"
# What names the product's own servers, keys and settings has no business in a copy.
OWN = ("NANOVM_", "STRIPE_", "DATABASE_URL", "REDIS_URL", "PORT")


class CopyError(Exception):
    """There is no outcome; the text says why and what to do."""


class BusyError(CopyError):
    """Another copy is at work."""


def run_copy(
    claim: Claim,
    params: Mapping[str, Value],
    *,
    without: Sequence[str] | None = None,
    seconds_max: float = SECONDS_MAX,
    home: Path | None = None,
    begun: Callable[[], None] = lambda: None,
) -> dict[str, Any]:
    """Attack a copy without the claim's guards, or without others in their place.

    It is made in ``home``, which is the data folder's own where none is named; ``begun`` is
    called once no other copy is made there.

    Raises:
        BusyError: one copy at a time is made in each home.
        CopyError: it did not come to an end in time, or broke.
    """
    asked = {
        "injector": claim.injector,
        "params": dict(params),
        "moment": claim.moment,
        "far_side_ms": claim.far_side_ms,
        "without": claim.without if without is None else without,
    }
    with _folder(home or settings.NANOVM_DATA / FOLDER) as folder:
        begun()
        return _run_child(folder, asked, seconds_max)


@lru_cache(maxsize=64)
def changes_of(without: tuple[str, ...]) -> Mapping[str, Any]:
    """The changed lines that a copy without these guards is compiled from, and what it adds.

    Another process computes them, for nothing that runs imports the lists of guards.

    Raises:
        CopyError: it could not; the text says why.
    """
    kept = {name: text for name, text in os.environ.items() if not name.startswith(OWN)}
    try:
        ran = subprocess.run(  # noqa: S603 - our own program, and no shell
            [sys.executable, "-m", "mutations.changes", *without],
            cwd=ROOT,
            env=kept,
            capture_output=True,
            text=True,
            timeout=COMPARING_SECONDS_MAX,
        )
    except subprocess.TimeoutExpired:
        raise CopyError(
            f"They were not computed in {COMPARING_SECONDS_MAX:g} s. Reload the page."
        ) from None
    if ran.returncode != 0:
        last = ran.stderr.strip().splitlines()[-1:] or [f"status {ran.returncode}"]
        raise CopyError(last[0])
    found: Mapping[str, Any] = json.loads(ran.stdout)
    return found


def _run_child(folder: Path, asked: Mapping[str, Any], seconds_max: float) -> dict[str, Any]:
    mutated = ["-m", "mutations", *asked["without"], "--"] if asked["without"] else ["-m"]
    popen = subprocess.Popen(  # noqa: S603 - our own program, and no shell
        [
            *(sys.executable, "-I", "-S", str(CHILD_GUARD), str(os.getpid())),
            *(sys.executable, *mutated, "mutations.copy"),
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=ROOT,
        env=_environment(folder),
        start_new_session=True,
        text=True,
    )
    try:
        said, complained = popen.communicate(json.dumps(asked) + "\n", timeout=seconds_max)
    except subprocess.TimeoutExpired:
        popen.kill()
        popen.communicate()
        text = f"The copy did not finish in {seconds_max:g} s and was stopped. Try again later."
        raise CopyError(text) from None
    finally:
        popen.kill()  # and with it whatever it started: each is tied to it
    if popen.returncode != 0:
        last = next((line for line in reversed(complained.splitlines()) if line.strip()), "")
        raise CopyError(f"The copy ended with status {popen.returncode}: {last}")
    outcome: dict[str, Any] = json.loads(said.splitlines()[-1])
    return outcome


def _environment(folder: Path) -> dict[str, str]:
    """Nothing of the product's own servers, keys and data; and never real Stripe."""
    kept = {name: text for name, text in os.environ.items() if not name.startswith(OWN)}
    return {**kept, "NANOVM_DATA": str(folder), "DJANGO_SETTINGS_MODULE": "config.settings"}


@contextmanager
def _folder(home: Path) -> Iterator[Path]:
    """A fresh data folder, gone afterwards; what a killed process left is removed first."""
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    with (home / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise BusyError("Another copy is running. Try again in a minute.") from None
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
