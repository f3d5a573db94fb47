"""Suppliers from a CSV file and back: whole or not at all, each fault by its line."""

import csv
import io

import pytest

from pipeline.register import csv_files
from pipeline.register.csv_files import FaultyFileError
from pipeline.register.details import Details

HEAD = "name,tax_id,iban,email\r\n"
GOOD = "Quartz Software GmbH,,DE02120300000000202051,invoices@quartz.example\r\n"


def faults(text: str | bytes) -> list[tuple[int, str]]:
    with pytest.raises(FaultyFileError) as caught:
        csv_files.parse(text if isinstance(text, bytes) else text.encode())
    return [(each.line, each.text) for each in caught.value.faults]


def test_a_file_comes_back_as_it_was_written() -> None:
    many = [
        Details(name="=SUM(A1) GmbH", tax_id="@1"),
        Details(name='Quotes "and", commas', iban="NL91ABNA0417164300"),
        Details(name="'Apostrophe", email="a@b.example"),
        Details(name="Ölmühle Süd"),
        Details(name="＝SUM(A1)"),
    ]
    data = csv_files.csv_text(many)
    assert data.decode().count("\r\n'") == 3
    assert csv_files.parse(data).suppliers == many
    assert csv_files.parse(b"\xef\xbb\xbf" + data + b"\r\n,,,\r\n").suppliers == many


@pytest.mark.parametrize("sign", "=+-@＝＋－＠")
@pytest.mark.parametrize("before", ["", "a;", "a; ", 'a;"', "a;;", "a,b;'"])
def test_no_separator_makes_a_formula_of_a_part_of_a_cell(before: str, sign: str) -> None:
    many = [Details(name=f"{before}{sign}1+1", tax_id=f"x;{sign}1"), Details(name="A;B - C=D")]
    text = csv_files.csv_text(many).decode()
    for separator in ",;\t":
        rows = csv.reader(io.StringIO(text), delimiter=separator)
        cells = [cell.strip(' "') for row in rows for cell in row]
        assert [cell for cell in cells if cell.startswith(tuple("=+-@＝＋－＠"))] == []
    assert csv_files.parse(text.encode()).suppliers == many
    assert "A;B - C=D" in text


@pytest.mark.parametrize(
    ("text", "line", "says"),
    [
        ("", 1, "must name the column name"),
        ("iban,email\r\nA,B\r\n", 1, "must name the column name"),
        ("name,iban,IBAN\r\nA,B,\r\n", 1, "each once"),
        (HEAD, 1, "no supplier"),
        (HEAD + GOOD + "A,,\r\n", 3, "has 3 values; the first line names 4"),
        (HEAD + GOOD.replace(",", ";"), 2, "has 1 values"),
        (HEAD + "A,,DE02120300000000202052,\r\n", 2, "Iban has wrong check digits"),
        (HEAD + GOOD + "QUARTZ  software gmbh,,,\r\n", 3, "Line 2 has the same name"),
        (HEAD + "A,X 1,,\r\nB,x1,,\r\n", 3, "Line 2 has the same tax id"),
        (HEAD + 'A,"x\r\n', 2, "no CSV"),
        ((HEAD + "Müller,,,\r\n").encode() + b"\xe9t\xe9,,,\r\n", 3, "not text in one coding"),
        (HEAD.encode() + b"\x81,,,\r\n", 2, "not text in one coding"),
        (HEAD + "".join(f"S{n},,,\r\n" for n in range(2_001)), 2_002, "More than 2000"),
        (HEAD + "x" * 1_000_001, 1, "over 1,000,000 bytes"),
    ],
)
def test_a_fault_is_named_by_its_line(text: str | bytes, line: int, says: str) -> None:
    assert any(at == line and says in said for at, said in faults(text)), faults(text)


WANTED = Details(name="Café Søren", iban="DE02120300000000202051", email="a@b.example")


@pytest.mark.parametrize("coding", ["utf-8", "utf-8-sig", "cp1252"])
@pytest.mark.parametrize("separator", [",", ";", "\t"])
@pytest.mark.parametrize("columns", [
    ("name", "iban", "email"), ("E-Mail", "Name", "IBAN", "Tax ID"),
    ("IBAN", "Town", " NAME ", "email"),
])  # fmt: skip
def test_a_spreadsheets_file_is_read_as_it_saves_it(
    coding: str, separator: str, columns: tuple[str, ...]
) -> None:
    values = {"name": WANTED.name, "iban": WANTED.iban, "email": WANTED.email, "town": "Århus"}
    cells = [values.get(each.strip().casefold().replace("-", ""), "") for each in columns]
    text = "\r\n".join(separator.join(row) for row in (columns, cells))
    found = csv_files.parse(text.encode(coding))
    assert found.suppliers == [WANTED]
    assert found.ignored == (("Town",) if "Town" in columns else ())


def test_all_faults_are_named_at_once() -> None:
    text = HEAD + ",,,a@b.example\r\n" + GOOD + "B,,,nobody\r\n"
    assert [line for line, _ in faults(text)] == [2, 4]
