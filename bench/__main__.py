"""Runs benches: ``make bench``, or ``python -m bench [--long | --readme | NAME ...]``.

Without a name the one table is measured and written to ``bench/results.md``; ``--long`` measures
every other bench, too. Each is a process of its own. The exit status is 1 where a bench stopped
with an error, else 3 where one missed a bar. ``--readme`` prints the last results in short.
"""

import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from bench.kit import report

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "bench" / "results.md"
TABLE = "paired"  # the one table; its contestants are plugins
COMMANDS = (
    TABLE,
    "conditions",
    "gate",
    "growth",
    "page",
    "queue",
    "queue turns",
    "strangers",
    "verification 1000000",
)
VERDICTS = {0: "", report.SHORT: "; bars are missed"}


def measured(command: str) -> tuple[int, str]:
    """Run one bench; its exit status and its section of the results."""
    name, *arguments = command.split()
    sys.stderr.write(f"bench.{command} ...\n")
    began = time.monotonic()
    ran = subprocess.run(  # noqa: S603 - the project's own module
        [sys.executable, "-m", f"bench.{name}", *arguments],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
    )
    verdict = VERDICTS.get(ran.returncode, f"; **it stopped, with exit status {ran.returncode}**")
    took = f"{time.monotonic() - began:.0f} s{verdict}."
    written = " ".join([f"python -m bench.{name}", *arguments])
    return ran.returncode, f"## bench.{name}\n\n`{written}`: {took}\n\n{ran.stdout}\n"


def main(arguments: Sequence[str]) -> int:
    """Measure and print; write the results unless single benches are named."""
    if arguments == ["--readme"]:
        sys.stdout.write(report.short(RESULTS.read_text(encoding="utf-8")))
        return 0
    names = {each for each in arguments if each != "--long"}
    commands = COMMANDS if names or "--long" in arguments else (TABLE,)
    if unknown := names - {command.split()[0] for command in commands}:
        sys.exit(f"There is no bench {', '.join(sorted(unknown))}; see COMMANDS in {__file__}.")
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
