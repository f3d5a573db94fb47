"""Runs the benches one after the other: ``make bench``, or ``python -m bench [--long] [NAME ...]``.

Each is a process of its own. A run of all writes ``bench/results.md``. The exit status is 1 where a
bench stopped with an error, else 3 where one missed a bar.
"""

import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from bench.kit import report

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "bench" / "results.md"
# The commands of the short run, which takes a quarter of an hour, and of the long one, whose sizes
# are those of the bars.
SHORT = (
    "conditions",
    "cedar",
    "durable",
    "gate 101",
    "gate load 1 40",
    "growth 10000 100000 11",
    "page 10000 500 11",
    "queue 41",
    "queue turns 3",
    "real_run 11",
    "strangers 3",
    "verification 100000",
    "windows",
)
LONG = (
    "conditions",
    "cedar",
    "durable 11",
    "gate",
    "gate load 5 40",
    "growth",
    "page",
    "queue",
    "queue turns",
    "real_run 41",
    "strangers",
    "verification 1000000",
    "windows",
)
MODULES = {"durable": "paired"}  # bench/durable.py is a plugin of this one
VERDICTS = {0: "", report.SHORT: "; a bar is missed"}


def measured(command: str) -> tuple[int, str]:
    """Run one bench; its exit status and its section of the results."""
    name, *arguments = command.split()
    sys.stderr.write(f"bench.{command} ...\n")
    began = time.monotonic()
    module = f"bench.{MODULES.get(name, name)}"
    ran = subprocess.run(  # noqa: S603 - the project's own module
        [sys.executable, "-m", module, *arguments],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
    )
    verdict = VERDICTS.get(ran.returncode, f"; **it stopped, with exit status {ran.returncode}**")
    took = f"{time.monotonic() - began:.0f} s{verdict}."
    written = " ".join([f"python -m {module}", *arguments])
    return ran.returncode, f"## bench.{name}\n\n`{written}`: {took}\n\n{ran.stdout}\n"


def main(arguments: Sequence[str]) -> int:
    """Measure and print; write the results of a run of all."""
    names = {each for each in arguments if each != "--long"}
    commands = LONG if "--long" in arguments else SHORT
    if unknown := names - {command.split()[0] for command in commands}:
        sys.exit(f"There is no bench {', '.join(sorted(unknown))}.")
    statuses, sections = list[int](), list[str]()
    for command in commands:
        if not names or command.split()[0] in names:
            status, section = measured(command)
            sys.stdout.write(section)
            sys.stdout.flush()
            statuses.append(status)
            sections.append(section)
    if not names:
        RESULTS.write_text(report.document(sections), encoding="utf-8")
    stopped = any(each not in VERDICTS for each in statuses)
    return 1 if stopped else max(statuses)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
