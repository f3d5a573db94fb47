"""Every check and every test: ``make test``. The exit status of each part counts.

The parts run side by side: the browser tests wait for pages and PostgreSQL for its disk, and
SQLite has what they leave of the processor. First one process compiles the tests, while lint
runs, so that no other part has to.
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

PYTEST = (sys.executable, "-m", "pytest", "--dist", "loadfile", "--no-loadscope-reorder")


class Part(NamedTuple):
    """A program, what it gets into its environment, and the part that has to have ended before."""

    name: str
    command: Sequence[str]
    env: dict[str, str]
    after: str = ""


class Ended(NamedTuple):
    """How a part ended."""

    name: str
    status: int
    wall_seconds: float
    cpu_seconds: float

    def __str__(self) -> str:
        said = "passed" if self.status == 0 else f"FAILED with status {self.status}"
        return f"{self.name:<12}{self.wall_seconds:7.0f} s {self.cpu_seconds:7.0f} CPU s  {said}"


LINT = Part("lint", ("make", "--no-print-directory", "lint"), {})
COMPILED = Part("compiling", (sys.executable, "-m", "pytest", "--collect-only", "-qq"), {})
SQLITE = Part(
    "SQLite", (*PYTEST, "-n", "2", "-m", "not browser and not soak"), {}, after=COMPILED.name
)
BROWSER = Part(
    "browser",
    (*PYTEST, "-n", "1", "-m", "browser and not soak", "tests/browser"),
    {},
    after=COMPILED.name,
)
POSTGRES = Part(
    "PostgreSQL",
    (
        *(*PYTEST, "-n", "0", "-m", "postgres and not soak and not corpus"),
        *("tests/house/test_postgres.py", "tests/pipeline"),
    ),
    {"NANOVM_TEST_DATABASE": "postgres"},
    after=COMPILED.name,
)


def run(parts: Sequence[Part], folder: Path) -> Iterator[Ended]:
    """Run parts side by side. The first writes to the terminal, the others once they ended."""
    began, running = time.monotonic(), dict[int, tuple[Part, subprocess.Popen[bytes]]]()
    ended, left = {each.after for each in parts} - {each.name for each in parts}, [*parts]
    try:
        while left or running:
            for part in [each for each in left if each.after in ended]:
                left.remove(part)
                popen = _started(part, folder, None if part is parts[0] else folder / part.name)
                running[popen.pid] = part, popen
            pid, status, used = os.wait4(-1, 0)
            part, popen = running.pop(pid)
            popen.returncode = os.waitstatus_to_exitcode(status)
            ended.add(part.name)
            cpu = used.ru_utime + used.ru_stime
            yield Ended(part.name, popen.returncode, time.monotonic() - began, cpu)
    finally:
        for _, popen in running.values():
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
    ended, seconds, failed = list[Ended](), dict[str, float](), list[str]()
    with tempfile.TemporaryDirectory(prefix="nanovm-parts-") as name:
        for each in run(parts, Path(name)):
            said = Path(name) / each.name
            sys.stdout.write(said.read_text(encoding="utf-8") if said.exists() else "")
            sys.stdout.write(f"{each}\n")
            sys.stdout.flush()
            ended.append(each)
        for path in Path(name).glob("*.json"):
            found = json.loads(path.read_text(encoding="utf-8"))
            report.add(seconds, found["seconds"])
            failed += found["failed"]
    print("\nCPU seconds of the tests:", *report.table(seconds), sep="\n")
    print("", *ended, *failed, sep="\n")
    return int(any(each.status for each in ended))


if __name__ == "__main__":
    sys.exit(main([SQLITE, BROWSER, POSTGRES, LINT, COMPILED]))
