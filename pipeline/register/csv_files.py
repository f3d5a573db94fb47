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
COLUMNS_MUST = f"The columns must be {', '.join(COLUMNS)}, separated by commas."
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


def read(data: bytes) -> list[Details]:
    """The suppliers of a CSV file; raises as ``numbered`` does."""
    return [details for _, details in numbered(data)]


def numbered(data: bytes) -> list[tuple[int, Details]]:
    """The suppliers of a CSV file in UTF-8 whose first line names the columns, each with its line.

    Raises:
        FaultyFileError: for wrong columns, malformed values, and names or tax ids that are there
            twice: every fault of the file.
    """
    rows = list(_rows(data))
    if len(rows) > LINES_MAX:
        raise FaultyFileError((Fault(LINES_MAX + 2, f"More than {LINES_MAX} suppliers."),))
    found, faults = [], []
    seen: dict[tuple[str, str], int] = {}
    for line, cells in rows:
        try:
            details = checked(Details.of(dict(zip(COLUMNS, cells, strict=True))))
        except ValueError:
            text = f"It needs {len(COLUMNS)} values, separated by commas, and has {len(cells)}."
            faults.append(Fault(line, text))
            continue
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
    if faults:
        raise FaultyFileError(tuple(faults))
    return found


def written(suppliers: Iterable[Details]) -> bytes:
    """A CSV file that ``read`` takes. No cell of it is a formula to a spreadsheet."""
    text = io.StringIO(newline="")
    lines = csv.writer(text, lineterminator="\r\n")
    lines.writerow(COLUMNS)
    for each in suppliers:
        lines.writerow(plain(getattr(each, column)) for column in COLUMNS)
    return text.getvalue().encode()


def _rows(data: bytes) -> Iterator[tuple[int, list[str]]]:
    if len(data) > BYTES_MAX:
        raise FaultyFileError((Fault(1, f"The file is over {BYTES_MAX:,} bytes."),))
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise FaultyFileError((Fault(line, "It is not UTF-8: save the file as UTF-8."),)) from error
    lines = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        head = [cell.strip().casefold() for cell in next(lines, [])]
        if tuple(head) != COLUMNS:
            raise FaultyFileError((Fault(1, COLUMNS_MUST),))
        for cells in lines:
            if any(cell.strip() for cell in cells):
                yield lines.line_num, [KEPT.sub(r"\1", cell) for cell in cells]
    except csv.Error as error:
        raise FaultyFileError((Fault(lines.line_num, f"It is no CSV: {error}."),)) from error


def plain(cell: str) -> str:
    """A cell that no spreadsheet runs as a formula, whichever sign separates its cells."""
    return FORMULA.sub(r"\1'", cell)


def import_csv(workspace_id: UUID, data: bytes, *, actor: str) -> int:
    """Register the suppliers of a CSV file; says how many.

    Raises:
        FaultyFileError: what is wrong with the file, or registered already, line by line.
    """
    given = numbered(data)
    try:
        suppliers.register(workspace_id, [details for _, details in given], actor=actor)
    except DetailsError as error:
        found = tuple(_registered(Workspace.objects.get(id=workspace_id), given))
        raise FaultyFileError(found or (Fault(1, error.text),)) from error
    return len(given)


def _registered(workspace: Workspace, given: Sequence[tuple[int, Details]]) -> Iterator[Fault]:
    key = index.key_of(workspace)
    rows = SupplierIndex.objects.filter(workspace=workspace)
    for line, details in given:
        for kind, text in details.identities().items():
            if rows.filter(kind=kind, value=index.blind(key, kind, text)).exists():
                yield Fault(line, f"A supplier with this {kind.replace('_', ' ')} is registered.")
