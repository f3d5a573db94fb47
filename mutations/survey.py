"""Remove every guard once, each in a process of its own, and tell which ones nobody misses."""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import NamedTuple, TypeVar

from mutations.patching import LISTS, ROOT, Mutation, MutationError, load

AT_ONCE = 2
SECONDS_MAX = 180  # a run of named tests; the slowest takes a quarter of it
STATUS_MAX = 100  # an exit status is one byte, and 256 survivors are not success

# A mutation that is not even Python any more fails every test, and proves nothing.
BROKEN = {"NameError", "UnboundLocalError", "SyntaxError", "IndentationError", "ImportError"}
BROKEN |= {"ModuleNotFoundError", "MutationError"}

T = TypeVar("T")
R = TypeVar("R")


class Ran(NamedTuple):
    """How a pytest process ended: passed, test, collection, timeout, broken or crashed."""

    end: str
    test: str = ""
    text: str = ""
    seconds: float = 0


class Verdict(NamedTuple):
    """What removing a guard came to. ``killed`` is how it should be."""

    mutation: Mutation
    killed: bool
    ran: Ran


def run(tests: Sequence[str], prefix: Sequence[str] = (), seconds_max: float = SECONDS_MAX) -> Ran:
    """Run these tests in a fresh process, up to the first failure; ``prefix`` runs pytest."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="nanovm-mutation-") as folder:
        path = Path(folder, "verdict.json")
        command = [sys.executable, "-m", *prefix, "pytest", "-x", "-q", "-p", "no:cacheprovider"]
        command += ["-p", "mutations.verdict", f"--verdict={path}", *tests]
        status, output = _waited_for(command, seconds_max)
        return _ended(status, output, path)._replace(seconds=time.monotonic() - began)


def judge(mutation: Mutation, lists: Path = LISTS, seconds_max: float = SECONDS_MAX) -> Verdict:
    """Run a mutation's tests without its guard. It is killed if it dies as its entry says."""
    prefix = ("mutations", f"--lists={lists}", mutation.id, "--")
    ran = run(mutation.tests, prefix, seconds_max)
    return Verdict(mutation, ran.end == mutation.dies, ran)


def survey(
    mutations: Iterable[Mutation], lists: Path = LISTS, told: Callable[[Verdict], None] = print
) -> tuple[Verdict, ...]:
    """Judge them all. Where a test already fails with every guard in place, nothing is judged."""
    mutations = tuple(mutations)
    tests = sorted({test for mutation in mutations for test in mutation.tests})
    whole = dict(zip(tests, _at_once(lambda test: run((test,)), tests), strict=True))
    verdicts = []
    for verdict in _at_once(partial(_judged, whole=whole, lists=lists), mutations):
        told(verdict)
        verdicts.append(verdict)
    return tuple(verdicts)


def line(verdict: Verdict) -> str:
    """A verdict as a line of the table."""
    mutation, ran = verdict.mutation, verdict.ran
    mark = "killed" if verdict.killed else "SURVIVED"
    by = ran.test.removeprefix("tests/") or ran.end
    said = "" if verdict.killed else f"  [{ran.end}] {ran.text}"
    return f"{mark:<9} {ran.seconds:5.1f} s  {mutation.id:<44} {by}{said}"


def main(arguments: list[str]) -> int:
    """Survey the list, or the entries whose ids or files are named; the number of survivors."""
    parser = argparse.ArgumentParser(prog="python -m mutations.survey", description=__doc__)
    parser.add_argument("--lists", type=Path, default=LISTS, help="the folder of the lists")
    parser.add_argument("only", nargs="*", help="ids or files; all without")
    given = parser.parse_args(arguments)
    chosen = [m for m in load(given.lists) if not given.only or {m.id, m.file} & {*given.only}]
    if not chosen:
        raise MutationError(f"No mutation is called {' or '.join(given.only)}.")
    verdicts = survey(chosen, given.lists, lambda verdict: print(line(verdict), flush=True))
    survivors = [verdict.mutation.id for verdict in verdicts if not verdict.killed]
    print(f"{len(verdicts)} guards removed, one at a time; {len(survivors)} not missed.")
    return min(len(survivors), STATUS_MAX)


def _judged(mutation: Mutation, *, whole: dict[str, Ran], lists: Path) -> Verdict:
    for test in mutation.tests:
        if whole[test].end != "passed":
            text = f"with every guard in place it ends as {whole[test].end}: {whole[test].text}"
            return Verdict(mutation, False, Ran("unjudged", test, text))
    return judge(mutation, lists)


def _at_once(act: Callable[[T], R], things: Sequence[T]) -> Iterator[R]:
    with ThreadPoolExecutor(AT_ONCE) as pool:
        yield from pool.map(act, things)


def _waited_for(command: Sequence[str], seconds_max: float) -> tuple[int | None, str]:
    """The exit status of a process (None: its time ran out, and it was ended) and its output."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("PYTEST_", "NANOVM_"))}
    with subprocess.Popen(  # noqa: S603 - our own interpreter and the tests that a list names
        command,
        cwd=ROOT,
        env=kept,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
    ) as process:
        try:
            output, _ = process.communicate(timeout=seconds_max)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)  # its own children with it
            return None, ""
        return process.returncode, output


def _ended(status: int | None, output: str, path: Path) -> Ran:
    """What the exit status and the plugin's file say together."""
    if status is None:
        return Ran("timeout", text="it did not end in time")
    if status == 0:
        return Ran("passed", text="every named test passes without the guard")
    last = next((text for text in reversed(output.splitlines()) if text.strip()), "")
    if not path.exists():
        return Ran("crashed", text=f"exit status {status}: {last}")
    fault = json.loads(path.read_text(encoding="utf-8"))
    text = f"{'/'.join(fault['kinds'])}: {fault['text']}"
    end = "test" if fault["when"] == "call" else "broken"
    if fault["when"] == "collect":
        end = "collection"
    if {*fault["kinds"]} <= BROKEN:
        end = "broken"
    return Ran(end, fault["test"], text)


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except MutationError as error:
        sys.exit(f"mutations: {error}")
