"""Runs of named tests, each in a process of its own, some of them at once."""

import json
import multiprocessing
import os
import signal
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from multiprocessing.connection import wait
from pathlib import Path
from typing import NamedTuple

import pytest

from mutations.patching import ROOT, Mutation, install

AT_ONCE = 2
SECONDS_MAX = 900.0  # the slowest room takes a tenth of it; longer is a loop without an end

# A mutation that is not even Python any more fails every test, and proves nothing.
BROKEN = {"NameError", "UnboundLocalError", "SyntaxError", "IndentationError", "ImportError"}
BROKEN |= {"ModuleNotFoundError", "MutationError"}

# Each trial is forked from a server that has imported what is slow to import, and nothing of
# ours: a guard is removed before the first of our modules is read.
_SERVER = multiprocessing.get_context("forkserver")
_SERVER.set_forkserver_preload(
    [
        *("pytest", "pytest_asyncio.plugin", "pytest_django.plugin", "pytest_playwright"),
        *("_hypothesis_pytestplugin", "hypothesis.stateful", "xdist.plugin", "django.test"),
        "cryptography.hazmat.primitives.asymmetric.ed25519",
        "cryptography.hazmat.primitives.ciphers.aead",
        "orjson",
        *("celery.app.base", "celery.app.amqp", "kombu.serialization", "redis", "stripe"),
        *("django.db.models", "django.db.backends.sqlite3.base", "django.core.management"),
        *("django.template.defaulttags", "django.test.client", "channels.layers", "sqlite3"),
    ]
)


class PytestOutcome(NamedTuple):
    """How a run of tests ended: passed, test, collection, timeout, broken or crashed."""

    end: str
    test: str = ""
    text: str = ""
    seconds: float = 0


class PytestRun(NamedTuple):
    """Tests to run, up to the first failure, without the guard of ``mutation`` if there is one."""

    tests: tuple[str, ...]
    mutation: Mutation | None = None
    seconds_max: float = SECONDS_MAX


def run_all(trials: Iterable[PytestRun]) -> Iterator[tuple[PytestRun, PytestOutcome]]:
    """Run trials, AT_ONCE of them at a time; each comes when it has ended."""
    todo, running = iter(trials), list[_Running]()
    while True:
        while len(running) < AT_ONCE and (trial := next(todo, None)) is not None:
            running.append(_Running(trial))
        if not running:
            return
        left = min(each.left() for each in running)
        wait([each.process.sentinel for each in running], timeout=max(0.0, left))
        for each in [each for each in running if not each.process.is_alive() or each.left() <= 0]:
            running.remove(each)
            yield each.trial, each.end()


class _Running:
    """A run whose process was started; the caller ends it."""

    def __init__(self, trial: PytestRun) -> None:
        self.trial, self.began = trial, time.monotonic()
        self.folder = tempfile.TemporaryDirectory(prefix="nanovm-trial-")
        self.process = _SERVER.Process(target=_try, args=(trial, self.folder.name))
        self.process.start()

    def left(self) -> float:
        """The seconds that it may still take."""
        return self.began + self.trial.seconds_max - time.monotonic()

    def end(self) -> PytestOutcome:
        """The outcome; a run whose time is out is killed, with every process that it started."""
        late = self.process.is_alive()
        if late and self.process.pid is not None:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.join()
        with self.folder as name:
            ran = PytestOutcome("timeout", text="it did not end in time")
            if not late:
                ran = _ended(self.process.exitcode, Path(name))
        self.process.close()
        return ran._replace(seconds=time.monotonic() - self.began)


def _try(trial: PytestRun, folder: str) -> None:
    """The whole life of a trial's process."""
    os.setsid()
    os.chdir(ROOT)
    for name in [name for name in os.environ if name.startswith(("PYTEST_", "NANOVM_"))]:
        del os.environ[name]
    tempfile.tempdir = os.environ["TMPDIR"] = folder
    with open(Path(folder, "output"), "wb") as output:
        os.dup2(output.fileno(), 1)
        os.dup2(output.fileno(), 2)
    if trial.mutation is not None:
        install(trial.mutation)
    options = ["-x", "-q", "-m", "not soak or left", "-p", "no:cacheprovider"]
    options += ["-p", "mutations.first_failure"]
    options += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]  # the server imported plugins
    sys.exit(pytest.main([*options, f"--verdict={folder}/verdict", *trial.tests]))


def _ended(status: int | None, folder: Path) -> PytestOutcome:
    """What the exit status and the plugin's file say together."""
    if status == 0:
        return PytestOutcome("passed", text="every named test passes")
    verdict = folder / "verdict"
    if not verdict.exists():
        lines = (folder / "output").read_text(encoding="utf-8", errors="replace").splitlines()
        last = next((line for line in reversed(lines) if line.strip()), "")
        return PytestOutcome("crashed", text=f"exit status {status}: {last}")
    fault = json.loads(verdict.read_text(encoding="utf-8"))
    end = {"call": "test", "collect": "collection"}.get(fault["when"], "broken")
    if {*fault["kinds"]} <= BROKEN:
        end = "broken"
    return PytestOutcome(end, fault["test"], f"{'/'.join(fault['kinds'])}: {fault['text']}")
