"""The tables of docs/conditions.md: each of our answers there is what the language answers now."""

import json
import re
from collections.abc import Mapping
from typing import NamedTuple

import pytest

from nanovm_core.conditions import DEPTH_MAX, NODES_MAX, TEXT_CHARS_MAX, parse
from nanovm_core.conditions.errors import WHY
from nanovm_core.conditions.syntax import COMPARISONS
from nanovm_core.core.canonical import INTEGER_MAX
from nanovm_core.errors import ConditionError
from tests.house.repository import ROOT

PAGE = (ROOT / "docs" / "conditions.md").read_text(encoding="utf-8")
TEXT = r"(?:`(?P<text>[^`]*)`|an empty text)"
TRAP = re.compile(rf"\| .*?: {TEXT} over `(?P<context>[^`]*)`\. \*.*?\* \| (?P<answer>.*?) \|.*")
CODE = re.compile(
    rf"\| CON-(?P<number>\d+) \| (?P<why>.*) \| {TEXT}(?: over `(?P<context>[^`]*)`)?"
    r"(?:, where `(?P<name>[^`]*)` is (?P<kind>\w+))? \|"
)
ESCAPED = re.compile(r"\\(?:x[0-9a-f]{2}|u[0-9a-f]{4}|[|])")


class Row(NamedTuple):
    """A row of the page: a condition, and what it is evaluated over."""

    condition: str
    context: str
    cells: Mapping[str, str | None]


def rows(table: str, pattern: re.Pattern[str]) -> list[Row]:
    """The rows of a table of the page; each must have the pattern's form."""
    lines = PAGE.split(f"<!-- {table} -->\n")[1].split(f"<!-- end of {table} -->")[0]
    found = [(line, pattern.fullmatch(line)) for line in lines.strip().splitlines()[2:]]
    assert [line for line, match in found if match is None] == []
    cells = [match.groupdict() for _, match in found if match is not None]
    return [Row(written(each["text"]), written(each["context"]), each) for each in cells]


def written(shown: str | None) -> str:
    """A text as it was before the page escaped what is not ASCII, and the bars."""
    return ESCAPED.sub(lambda match: chr(int("0" + match[0][2:], 16) or ord("|")), shown or "")


TRAPS, CODES = rows("table", TRAP), rows("codes", CODE)


def answered(row: Row) -> str:
    """The answer of the language; a refusal with its code, and when it comes."""
    when = "loading"
    try:
        condition = parse(row.condition)
        when = "evaluation"
        return str(condition.holds(json.loads(row.context))).lower()
    except ConditionError as error:
        return f"refused ({error.code} at {when})"


@pytest.mark.parametrize("row", TRAPS, ids=lambda row: str(row.condition))
def test_our_column_is_what_the_language_answers_now(row: Row) -> None:
    assert answered(row) == row.cells["answer"]


def test_the_table_has_all_its_traps() -> None:
    assert len({(row.condition, row.context) for row in TRAPS}) == len(TRAPS) == 38
    assert f"| nanovm (this one) | 0 | 0 | {len(TRAPS)} |" in PAGE


@pytest.mark.parametrize("row", CODES, ids=lambda row: f"CON-{row.cells['number']}")
def test_each_code_has_an_example_that_trips_it(row: Row) -> None:
    with pytest.raises(ConditionError, match=f"CON-{row.cells['number']}"):
        tripped(row)


def tripped(row: Row) -> None:
    condition = parse(row.condition)
    if row.cells["name"]:
        condition.check({row.cells["name"]: str(row.cells["kind"])})
    else:
        condition.holds(json.loads(row.context))


def test_every_code_is_on_the_page() -> None:
    assert {int(str(row.cells["number"])): row.cells["why"] for row in CODES} == dict(WHY)


def test_the_grammar_on_the_page_has_every_operator_and_every_limit() -> None:
    operators = next(line for line in PAGE.splitlines() if line.startswith("    operator "))
    assert operators.split("= ", 1)[1].replace('"', "").split(" | ") == list(COMPARISONS)
    assert f"{TEXT_CHARS_MAX:,} characters" in PAGE
    assert f"{NODES_MAX} values" in PAGE
    assert f"{DEPTH_MAX} parentheses" in PAGE
    assert f"±{INTEGER_MAX}" in PAGE
