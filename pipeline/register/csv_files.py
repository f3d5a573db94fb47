"""The register as a CSV file: imported whole or not at all, each faulty line named."""

import csv
import io
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from uuid import UUID

from engine.models import Workspace
from pipeline.models import SupplierIndex
from pipeline.register import index, suppliers
from pipeline.register.details import Details, DetailsError, checked

COLUMNS = ("name", "tax_id", "iban", "email")
COLUMNS_MUST = (
    f"The first line must name the column name, and of {', '.join(COLUMNS[1:])} those that the file"
    " has, each once."
)
SEPARATORS = ",;\t"
UTF_8 = re.compile(rb"[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}")  # beyond ASCII
BYTES_MAX = 1_000_000
LINES_MAX = 2_000
# Where a spreadsheet that splits at semicolons or tabs begins a cell, and a sign that makes
# the cell a formula. A quote that already precedes such a sign gets one more, so that it survives.
BEGINNING = r"((?:^|[;\t\r\n])[\s\"]*)"
FORMULA = re.compile(BEGINNING + r"(?='*[=+\-@＝＋－＠\t\r])")
KEPT = re.compile(BEGINNING + r"'(?='*[=+\-@＝＋－＠\t\r])")


@dataclass(frozen=True, slots=True)
class Fault:
    """What is wrong with a line of the file; line 1 has the names of the columns."""

    line: int
    text: str


@dataclass(frozen=True, slots=True)
class FaultyFileError(Exception):
    """Nothing was imported; ``faults`` says why, line by line."""

    faults: tuple[Fault, ...]


@dataclass(frozen=True, slots=True)
class Table:
    """The suppliers of a file, each with its line, and the columns that the register has not."""

    rows: tuple[tuple[int, Details], ...]
    ignored: tuple[str, ...]

    @property
    def suppliers(self) -> list[Details]:
        """The suppliers alone."""
        return [details for _, details in self.rows]


def parse(data: bytes) -> Table:
    """The suppliers of a CSV file whose first line names the columns, in any order.

    Commas, semicolons or tabs part its cells, in UTF-8 or Windows-1252.

    Raises:
        FaultyFileError: for wrong columns, malformed values, and names or tax ids that are there
            twice: every fault of the file.
    """
    head, *rows = _rows(data)
    columns = _columns(head[1])
    if len(rows) > LINES_MAX:
        raise FaultyFileError((Fault(LINES_MAX + 2, f"More than {LINES_MAX} suppliers."),))
    found, faults = [], []
    seen: dict[tuple[str, str], int] = {}
    for line, cells in rows:
        if len(cells) != len(columns):
            text = f"It has {len(cells)} values; the first line names {len(columns)} columns."
            faults.append(Fault(line, text))
            continue
        given = {name: cell for name, cell in zip(columns, cells, strict=True) if name in COLUMNS}
        try:
            details = checked(Details.of(given))
        except DetailsError as error:
            faults.append(Fault(line, error.text[:1].upper() + error.text[1:]))
            continue
        for kind, text in details.identities().items():
            first = seen.setdefault((kind, text), line)
            if first != line:
                faults.append(Fault(line, f"Line {first} has the same {kind.replace('_', ' ')}."))
        found.append((line, details))
    if not found and not faults:
        faults.append(Fault(1, "There is no supplier in it."))
    if len(csv_text(details for _, details in found)) > BYTES_MAX:
        faults.append(Fault(1, f"The file is over {BYTES_MAX:,} bytes in UTF-8."))
    if faults:
        raise FaultyFileError(tuple(faults))
    ignored = (each for each in columns if each and each not in COLUMNS)
    return Table(rows=tuple(found), ignored=tuple(ignored))


def csv_text(suppliers: Iterable[Details]) -> bytes:
    """A CSV file that ``parse`` takes. No cell of it is a formula to a spreadsheet."""
    rows = ([getattr(each, name) for name in COLUMNS] for each in suppliers)
    return b"".join(map(line, (COLUMNS, *rows)))


def _rows(data: bytes) -> Iterator[tuple[int, list[str]]]:
    if len(data) > BYTES_MAX:
        raise FaultyFileError((Fault(1, f"The file is over {BYTES_MAX:,} bytes."),))
    text = _decoded(data)
    first = re.split(r"[\r\n]", text, maxsplit=1)[0]
    separator = max(SEPARATORS, key=first.count)
    lines = csv.reader(io.StringIO(text, newline=""), strict=True, delimiter=separator)
    try:
        yield 1, next(lines, [])
        for cells in lines:
            if any(cell.strip() for cell in cells):
                yield lines.line_num, [KEPT.sub(r"\1", cell) for cell in cells]
    except csv.Error as error:
        raise FaultyFileError((Fault(lines.line_num, f"It is no CSV: {error}."),)) from error


def _decoded(data: bytes) -> str:
    fault = 1
    for coding in ("utf-8-sig",) if UTF_8.search(data) else ("utf-8-sig", "cp1252"):
        try:
            return data.decode(coding)
        except UnicodeDecodeError as error:
            fault = data[: error.start].count(b"\n") + 1
    raise FaultyFileError((Fault(fault, "It is not text in one coding: save it as UTF-8."),))


def _columns(head: Sequence[str]) -> list[str]:
    """The columns by the register's names; one that it has not keeps its own."""
    given = [cell.strip() for cell in head]
    names = ["".join(filter(str.isalnum, cell.casefold())) for cell in given]
    known = {column.replace("_", ""): column for column in COLUMNS}
    columns = [known.get(name, cell) for name, cell in zip(names, given, strict=True)]
    if "name" not in columns or any(columns.count(each) > 1 for each in COLUMNS):
        raise FaultyFileError((Fault(1, COLUMNS_MUST),))
    return columns


def escaped(cell: str) -> str:
    """A cell that no spreadsheet runs as a formula, whichever sign separates its cells."""
    return FORMULA.sub(r"\1'", cell)


def line(cells: Iterable[object]) -> bytes:
    """A line of a CSV file in which no cell is a formula."""
    text = io.StringIO()
    csv.writer(text).writerow([escaped(str(each)) for each in cells])
    return text.getvalue().encode("utf-8", "replace")


def import_csv(workspace_id: UUID, data: bytes, *, actor: str) -> int:
    """Register the suppliers of a CSV file; says how many.

    Raises:
        FaultyFileError: what is wrong with the file, or registered already, line by line.
    """
    given = parse(data)
    try:
        suppliers.register(workspace_id, given.suppliers, actor=actor)
    except DetailsError as error:
        found = registered(Workspace.objects.get(id=workspace_id), given)
        raise FaultyFileError(found or (Fault(1, error.text),)) from error
    return len(given.rows)


def registered(workspace: Workspace, given: Table) -> tuple[Fault, ...]:
    """The lines whose supplier is in the register."""
    key = index.key_of(workspace)
    rows = SupplierIndex.objects.filter(workspace=workspace)
    return tuple(
        Fault(line, f"A supplier with this {kind.replace('_', ' ')} is registered: {details.name}.")
        for line, details in given.rows
        for kind, text in details.identities().items()
        if rows.filter(kind=kind, value=index.blind(key, kind, text)).exists()
    )
