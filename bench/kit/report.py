"""What a bench found, as the terminal shows it and as results.md keeps it."""

import operator
import platform
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from typing import NamedTuple

from bench.kit.rounds import Measured, Ratio

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
        """PASS or by how much it is short; nothing where there is no bar."""
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
    """A table as a section of results.md."""
    lines = [f"## {table.title}", "", table.says, ""]
    if table.rows:
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


def document(tables: Sequence[Table]) -> str:
    """All of results.md."""
    peers = sorted({peer for table in tables for peer in table.peers})
    versions = ", ".join(f"{peer} {version(peer)}" for peer in peers)
    head = [
        "# Results",
        "",
        written_by("make bench"),
        f"Peers: {versions}.",
        "",
        "Each ratio is the median over short rounds in which all contestants of a table took",
        "turns in shuffled order in one process; behind it the least and the greatest round.",
        "Microseconds are medians of the same rounds: they belong to one machine, and mean",
        "nothing without the ratio.",
        "",
    ]
    return "\n".join(head) + "\n" + "\n".join(markdown(table) for table in tables)


def written_by(command: str) -> str:
    """The sentence of a kept file that says what wrote it, when and where."""
    today = datetime.now(tz=UTC).date().isoformat()
    python = f"{platform.python_implementation()} {platform.python_version()}, {sys.platform}"
    return f"Written by `{command}` on {today}: {python}."


def plain(values: Mapping[str, object]) -> str:
    """Names and values on one line."""
    return ", ".join(f"{name} {value}" for name, value in values.items())
