"""What a bench found, as the terminal shows it and as results.md keeps it."""

import operator
import os
import platform
import re
import sys
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import NamedTuple

from bench.kit.rounds import Measured, Ratio, three

SHORT = 3  # the exit status of a bench that misses a bar; an error's is 1
RATIOS = """\
Each ratio is the median over short rounds in which contestants took turns in shuffled
order; behind it the least and the greatest round, and the same of processor time.
Microseconds are medians of the same rounds: they belong to one machine, and mean
nothing without the ratio."""
HEADER = "| | times (least … greatest round) | CPU | µs | bar | |\n" + "| --- " * 6 + "|"
_OPERATORS = {"≥": operator.ge, "≤": operator.le, "<": operator.lt}


class Bar(NamedTuple):
    """What a ratio must be: ``≥``, ``≤`` or ``<`` a number."""

    sign: str
    number: float

    def holds(self, ratio: Ratio) -> bool:
        """Whether the median reaches it."""
        return bool(_OPERATORS[self.sign](ratio.median, self.number))


class Row(NamedTuple):
    """Two contestants compared. ``us`` are the medians of which this is the ratio.

    ``cpu`` is the same ratio of processor time, ``why`` the reason where nothing was measured.
    """

    name: str
    ratio: Ratio
    us: tuple[float, float]
    bar: Bar | None = None
    cpu: float | None = None
    why: str = ""

    @property
    def verdict(self) -> str:
        """Whether the bar is reached; nothing where there is none."""
        if self.bar is None:
            return ""
        if self.why:
            return "**not measured**"
        return "PASS" if self.bar.holds(self.ratio) else "**short of it**"


class Table(NamedTuple):
    """One bench's rows, under a title, with what a reader must know of them."""

    title: str
    says: str
    rows: Sequence[Row]
    notes: Sequence[str] = ()
    peers: Sequence[str] = ()  # the distributions whose versions the figures are of


def row(found: Measured, of: str, to: str, bar: Bar | None = None, name: str = "") -> Row:
    """The row that says how long ``of`` takes in units of ``to``."""
    return Row(name or of, found.ratio(of, to), (found.us(of), found.us(to)), bar)


def missing(name: str, why: str, bar: Bar | None = None) -> Row:
    """The row of what was not measured."""
    return Row(name, Ratio(0, 0, 0), (0, 0), bar, why=why)


def markdown(table: Table) -> str:
    """A table as results.md has it."""
    lines = [f"### {table.title}", "", table.says, ""]
    if peers := [f"{each} {_version(each)}" for each in table.peers]:
        lines += [f"Peers: {', '.join(peers)}.", ""]
    lines += [HEADER]
    for each in table.rows:
        bar = f"{each.bar.sign} {each.bar.number:g}" if each.bar else ""
        ratio = each.why or str(each.ratio)
        us = "" if each.why else f"{three(each.us[0])} : {three(each.us[1])}"
        cpu = "" if each.cpu is None else three(each.cpu)
        lines.append(f"| {each.name} | {ratio} | {cpu} | {us} | {bar} | {each.verdict} |")
    lines += ["", *table.notes] if table.notes else []
    return "\n".join(lines) + "\n"


def shown(*tables: Table) -> int:
    """Print tables; the exit status, 3 where a bar is missed."""
    sys.stdout.write("\n".join(map(markdown, tables)))
    return status(row.verdict in ("", "PASS") for table in tables for row in table.rows)


def bars(found: Iterable[tuple[str, float, str, float]]) -> int:
    """Print values with their bars, a line each; the exit status, 3 where one is missed."""
    reached = list[bool]()
    for name, value, sign, number in found:
        reached.append(bool(_OPERATORS[sign](value, number)))
        verdict = "PASS" if reached[-1] else "**short of it**"
        sys.stdout.write(f"- {name}: {value:.3g} ({sign} {number:g}) {verdict}\n")
    return status(reached)


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "(not installed)"


def document(sections: Sequence[str]) -> str:
    """All of results.md."""
    python = f"{platform.python_implementation()} {platform.python_version()}"
    model = re.search(r"model name\s*: (.+)", Path("/proc/cpuinfo").read_text())
    machine = f"{os.cpu_count()} processors ({model[1] if model else platform.machine()})"
    head = f"Written by `make bench` on {datetime.now(tz=UTC):%Y-%m-%d}: {python}, {machine}."
    return f"# Results\n\n{head}\n\n{RATIOS}\n\n{''.join(sections).rstrip()}\n"


def short(results: str) -> str:
    """When, where and how our runtime was measured beside others last, for the README."""
    rows = [each for each in results.splitlines() if each.startswith("| ") and ": nanovm" in each]
    return "\n".join([results.split("\n\n")[1], "", HEADER, *rows, ""])


def status(reached: Iterable[bool]) -> int:
    """The exit status of a bench: 0 where each of its bars is reached."""
    return 0 if all(reached) else SHORT
