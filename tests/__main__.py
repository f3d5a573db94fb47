"""Every check and every test: ``make test``. The exit status of each part counts.

Four parts run at a time, the long ones first and in the end the short ones, so that two cores
are busy until then: the browser's waits for its pages half of the time, and of the others each
waits for processes that it starts. A part is one process: each takes some three CPU seconds to
import the application and to make its tables. It collects what it runs and no more.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from tests import report

AT_ONCE = 4
PYTEST = (sys.executable, "-m", "pytest", "-q")
FOR_BROWSERS = ("playwright", "base_url", "xdist", "anyio")  # half a millisecond a test
NO_BROWSER = tuple(word for each in FOR_BROWSERS for word in ("-p", f"no:{each}"))


class Part(NamedTuple):
    """A program, and what is added to its environment."""

    name: str
    command: Sequence[str]
    env: dict[str, str]


class Ended(NamedTuple):
    """How a part ended."""

    name: str
    status: int
    wall_seconds: float
    cpu_seconds: float

    def __str__(self) -> str:
        result = "passed" if self.status == 0 else f"FAILED with status {self.status}"
        return f"{self.name:<23}{self.wall_seconds:7.0f} s {self.cpu_seconds:7.0f} CPU s  {result}"


def tests_in(*folders: str) -> Part:
    """The tests of some folders."""
    options = () if "browser" in folders else NO_BROWSER
    return Part(" ".join(folders), (*PYTEST, *options, *(f"tests/{each}" for each in folders)), {})


def others(parts: Sequence[Part]) -> Part:
    """The tests of the folders that no part names."""
    named = [word for part in parts for word in part.command if word.startswith("tests/")]
    return Part("others", (*PYTEST, *NO_BROWSER, *(f"--ignore={each}" for each in named)), {})


def on_postgres() -> Part:
    """The tests that PostgreSQL can fail where SQLite does not, in the files that mark one."""
    files = [
        os.path.relpath(path, report.TESTS.parent)
        for path in sorted(report.TESTS.rglob("test_*.py"))
        if any(
            mark in path.read_text(encoding="utf-8") for mark in ("mark.postgres", "on_postgres")
        )
    ]
    command = (*PYTEST, *NO_BROWSER, "-m", "postgres and not soak", *files)
    return Part("PostgreSQL", command, {"NANOVM_TEST_DATABASE": "postgres"})


def every_part() -> list[Part]:
    """All parts, in the order in which they begin."""
    named = ("browser", "engine pipeline reader", "dashboard sabotage crash")
    folders = [tests_in(*each.split()) for each in named]
    lint = Part("lint", ("make", "--no-print-directory", "lint"), {})
    return [*folders, others(folders), on_postgres(), lint]


def run(parts: Sequence[Part], folder: Path) -> Iterator[Ended]:
    """Run parts, some at a time. The first writes to the terminal, the others to files."""
    left, running = [*parts], dict[int, tuple[Part, float, subprocess.Popen[bytes]]]()
    try:
        while left or running:
            while left and len(running) < AT_ONCE:
                part = left.pop(0)
                popen = _started(part, folder, None if part is parts[0] else folder / part.name)
                running[popen.pid] = part, time.monotonic(), popen
            pid, status, used = os.wait4(-1, 0)
            part, began, popen = running.pop(pid)
            popen.returncode = os.waitstatus_to_exitcode(status)
            cpu = used.ru_utime + used.ru_stime
            yield Ended(part.name, popen.returncode, time.monotonic() - began, cpu)
    finally:
        for _, _, popen in running.values():
            popen.terminate()
            popen.wait()


def _started(part: Part, folder: Path, output: Path | None) -> subprocess.Popen[bytes]:
    env = {**os.environ, **part.env, report.TO: f"{folder / part.name}.json"}
    if output is None:
        return subprocess.Popen(part.command, env=env)
    with output.open("wb") as file:
        return subprocess.Popen(part.command, env=env, stdout=file, stderr=file)


def main(parts: Sequence[Part]) -> int:
    """Run the parts; 1 where one failed."""
    began, ended, seconds, failed = time.monotonic(), list[Ended](), dict[str, float](), list[str]()
    with tempfile.TemporaryDirectory(prefix="nanovm-parts-") as name:
        for each in run(parts, Path(name)):
            output = Path(name) / each.name
            sys.stdout.write(output.read_text(encoding="utf-8") if output.exists() else "")
            print(each, flush=True)
            ended.append(each)
        for path in Path(name).glob("*.json"):
            found = json.loads(path.read_text(encoding="utf-8"))
            report.add(seconds, found["seconds"])
            failed += found["failed"]
    status = int(any(each.status for each in ended))
    cpu = sum(each.cpu_seconds for each in ended)
    print("\nCPU seconds of the tests:", *report.table(seconds), sep="\n")
    print("", *ended, Ended("all", status, time.monotonic() - began, cpu), *failed, sep="\n")
    return status


if __name__ == "__main__":
    sys.exit(main(every_part()))
