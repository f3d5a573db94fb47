"""The torture table: our column is what the language answers now, and the page shows it."""

import copy
import json
from collections.abc import Mapping
from typing import Any

import pytest

from bench import torture
from bench.kit.torture_peers import PEERS
from nanovm_core.conditions import DEPTH_MAX, NODES_MAX, TEXT_CHARS_MAX, parse
from nanovm_core.conditions.errors import WHY
from nanovm_core.conditions.syntax import COMPARISONS
from nanovm_core.core.canonical import INTEGER_MAX
from nanovm_core.errors import ConditionError

STORED: dict[str, Any] = json.loads(torture.STORED.read_text(encoding="utf-8"))
TRAPS: Mapping[str, Any] = torture.read_traps()


@pytest.mark.parametrize("row", STORED["rows"], ids=lambda row: str(row["id"]))
def test_our_column_is_what_the_language_answers_now(row: dict[str, Any]) -> None:
    assert row["nanovm"] == torture.ours(row["condition"], row["context"])
    assert row["nanovm"]["answer"] in row["right"]


def test_the_stored_rows_are_the_traps() -> None:
    kept = ("id", "trap", "reader", "right", "condition", "context")
    stored = [{key: row[key] for key in kept} for row in STORED["rows"]]
    assert stored == [{key: trap[key] for key in kept} for trap in TRAPS["trap"]]
    assert len({row["id"] for row in stored}) == len(stored) >= 25
    for row, trap in zip(STORED["rows"], TRAPS["trap"], strict=True):
        assert set(row["right"]) < {"true", "false", "refused"}
        for peer in PEERS:
            idiom = next((trap[key] for key in peer.speaks if key in trap), None)
            answer = row["peers"][peer.name]
            assert (answer and answer["written"]) == idiom
            assert answer is None or answer["answer"] in ("true", "false", "refused")


def test_the_page_is_made_of_what_is_stored() -> None:
    text = torture.PAGE.read_text(encoding="utf-8")
    assert torture.page(STORED, text) == text
    changed = copy.deepcopy(STORED)
    changed["rows"][0]["nanovm"] = {"answer": "true", "shown": "true"}
    assert torture.page(changed, text) != text
    with pytest.raises(ValueError, match="no one place for its counts"):
        torture.page(STORED, text.replace("<!-- counts -->", ""))


@pytest.mark.parametrize("answer", ["true", "false", "refused"])
def test_another_answer_than_the_readers_is_misread_and_a_refusal_never(answer: str) -> None:
    for right in (["true"], ["false"], ["false", "refused"], ["refused"]):
        expected = answer != "refused" and answer not in right
        assert torture.misread({"right": right}, {"answer": answer, "shown": ""}) is expected
    assert not torture.misread({"right": ["true"]}, None)


@pytest.mark.parametrize("code", TRAPS["code"], ids=lambda code: f"CON-{code['number']:03}")
def test_each_code_has_an_example_that_trips_it(code: Mapping[str, Any]) -> None:
    with pytest.raises(ConditionError, match=f"CON-{code['number']:03}"):
        tripped(code)


def tripped(code: Mapping[str, Any]) -> None:
    condition = parse(code["condition"])
    if "types" in code:
        condition.check(code["types"])
    else:
        condition.holds(json.loads(code["context"]))


def test_every_code_is_on_the_page() -> None:
    assert [code["number"] for code in TRAPS["code"]] == list(WHY)
    text = torture.PAGE.read_text(encoding="utf-8")
    for number, why in WHY.items():
        assert f"| CON-{number:03} | {why} |" in text


def test_the_grammar_on_the_page_has_every_operator_and_every_limit() -> None:
    text = torture.PAGE.read_text(encoding="utf-8")
    operators = next(line for line in text.splitlines() if line.startswith("    operator "))
    assert operators.split("= ", 1)[1].replace('"', "").split(" | ") == list(COMPARISONS)
    assert f"{TEXT_CHARS_MAX:,} characters" in text
    assert f"{NODES_MAX} values" in text
    assert f"{DEPTH_MAX} parentheses" in text
    assert f"±{INTEGER_MAX}" in text
