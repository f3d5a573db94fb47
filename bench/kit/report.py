"""What a bench found, as the terminal shows it and as results.md keeps it."""

import operator
import platform
import sys
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from typing import NamedTuple

from bench.kit.rounds import Measured, Ratio

SHORT = 3  # the exit status of a bench that misses a bar; an error's is 1
RATIOS = """\
Each ratio is the median over short rounds in which all contestants of a table took
turns in shuffled order in one process; behind it the least and the greatest round.
Microseconds are medians of the same rounds: they belong to one machine, and mean
nothing without the ratio."""
_OPERATORS = {"≥": operator.ge, "≤": operator.le, "<": operator.lt}


class Bar(NamedTuple):
    """What a ratio must be: ``≥``, ``≤`` or ``<`` a number."""

    sign: str
    number: float

    def holds(self, ratio: Ratio) -> bool:
        """Whether the median reaches it."""
        return bool(_OPERATORS[self.sign](ratio.median, self.number))


class Row(NamedTuple):
    """Two contestants compared. ``us`` are the medians of which this is the ratio."""

    name: str
    ratio: Ratio
    us: tuple[float, float]
    bar: Bar | None = None

    @property
    def verdict(self) -> str:
        """Whether the bar is reached; nothing where there is none."""
        if self.bar is None:
            return ""
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


def markdown(table: Table) -> str:
    """A table as results.md has it."""
    lines = [f"### {table.title}", "", table.says, ""]
    if table.peers:
        lines += [f"Peers: {', '.join(f'{each} {version(each)}' for each in table.peers)}.", ""]
    lines += [
        "| | times (least … greatest round) | µs | bar | |",
        "| --- | --- | --- | --- | --- |",
    ]
    for each in table.rows:
        bar = f"{each.bar.sign} {each.bar.number:g}" if each.bar else ""
        us = f"{each.us[0]:.3g} : {each.us[1]:.3g}"
        lines.append(f"| {each.name} | {each.ratio} | {us} | {bar} | {each.verdict} |")
    lines += ["", *table.notes] if table.notes else []
    return "\n".join(lines) + "\n"


def document(sections: Sequence[str]) -> str:
    """All of results.md."""
    python = f"{platform.python_implementation()} {platform.python_version()}, {sys.platform}"
    head = f"# Results\n\nWritten by `make bench` on {datetime.now(tz=UTC):%Y-%m-%d}: {python}."
    return f"{head}\n\n{RATIOS}\n\n{''.join(sections).rstrip()}\n"


def status(reached: Iterable[bool]) -> int:
    """The exit status of a bench: 0 where each of its bars is reached."""
    return 0 if all(reached) else SHORT
