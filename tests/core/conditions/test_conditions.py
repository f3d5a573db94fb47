"""The condition language, by hand: what it says, what it refuses, and where it stops."""

from collections.abc import Mapping

import pytest

from nanovm_core.conditions import ConditionEvaluationError, ConditionSyntaxError, parse

CONTEXT: Mapping[str, object] = (
    {"a": 1, "big": 10**30, "in": 7, "s": "abc", "t": True, "f": False, "blocked": True}
    | {"list": ["x", "y"], "pair": (1, 2), "flags": [True], "empty": []}
    | {"invoice": {"total_minor": 500, "payee": {"ref": "vault://secret/1"}}}
    | {"null": None, "float": 1.5, "mixed": [1, "x"], "sly": [1, True]}
    | {"nested": [[1]], "holes": [None]}
)


@pytest.mark.parametrize(("text", "expected"), [
    ("true", True), ("not true", False), ("$t", True), ("$a == 1", True),
    (" \t\r\n$a\n==\n1 ", True), ("$a == -1", False), ("-1 < $a", True),
    ("$a <= 1 and $a >= 1", True), ("$in == 7", True),
    ("$invoice.payee.ref == 'vault://secret/1'", True), ('"it\'s" == "it\'s"', True),
    ("'Müller' == \"Müller\"", True), ("true == false", False), ("(1 == 1) == true", True),
    ("$t == ($a == 1)", True),
    # Not binds looser than a comparison, tighter than and; and tighter than or.
    ("not $a == 2", True), ("not $a == 1", False), ("not ($f and $f)", True),
    ("true or true and false", True), ("(true or true) and false", False),
    ("false and true or true", True), ("not not not $t", False),
    # The first that decides stops the rest: what is missing or wrong there is not seen.
    ("$t or $missing", True), ("$f and $missing", False), ("$t or 1", True),
    ("$f and $null == 1", False),
    # Membership.
    ("'x' in $list", True), ("'z' not in $list", True), ("$list contains 'x'", True),
    ("not $list contains 'z'", True), ("not 'z' in $list", True), ("2 in $pair", True),
    ("$a in []", False), ("$a not in []", True), ("[] contains true", False),
    ("$a in [3, -1, 1]", True), ("'b' in $s", True), ("$s contains 'bc'", True), ("'' in $s", True),
    # Lists are equal when their elements are; lists and tuples are one type.
    ("$list == ['x', 'y']", True), ("$pair == [1, 2]", True), ("$pair != [2, 1]", True),
    ("[] == $empty", True),
])  # fmt: skip
def test_a_condition_says_what_it_reads_as(text: str, expected: bool) -> None:
    assert parse(text).holds(CONTEXT) is expected


@pytest.mark.parametrize(("text", "code", "position"), [
    # Nothing is there, or nothing that the language knows.
    ("$missing == 1", "CON-020", 0), ("$invoice.missing == 1", "CON-020", 0),
    ("$invoice.payee.ref.more == 1", "CON-020", 0), ("$s.upper == 'x'", "CON-020", 0),
    ("$f or $missing", "CON-020", 6), ("$missing or $t", "CON-020", 0),
    ("$null == 1", "CON-021", 0), ("$float == 1", "CON-021", 0), ("$invoice == 1", "CON-021", 0),
    ("1 in $mixed", "CON-021", 5), ("$nested contains 1", "CON-021", 0),
    ("$holes == []", "CON-021", 0), ("'total_minor' in $invoice", "CON-021", 17),
    # Two types.
    ("true == 1", "CON-022", 5), ("false == 0", "CON-022", 6), ('"5" == 5', "CON-022", 4),
    ("$s == 1", "CON-022", 3), ("$pair == ['x']", "CON-022", 6), ("true in $pair", "CON-022", 5),
    ("1 in '1'", "CON-022", 2), ("$list in 'x'", "CON-022", 6), ("$pair in $pair", "CON-022", 6),
    ("[] in []", "CON-022", 3),
    # Order takes integers, logic booleans.
    ("'a' < 'b'", "CON-022", 4), ("$pair >= $pair", "CON-022", 6), ("1", "CON-023", 0),
    ("false < true", "CON-022", 6), ("1 < true", "CON-022", 2),
    ("not 1", "CON-023", 4), ("$a and $t", "CON-023", 0), ("$t and $a", "CON-023", 7),
])  # fmt: skip
def test_what_has_no_answer_is_an_error_in_a_rule_and_in_its_opposite(
    text: str, code: str, position: int
) -> None:
    with pytest.raises(ConditionEvaluationError) as caught:
        parse(text).holds(CONTEXT)
    assert (caught.value.code, caught.value.position) == (code, position)
    with pytest.raises(ConditionEvaluationError) as denied:
        parse(f"not ({text})").holds(CONTEXT)
    assert denied.value.code == code


@pytest.mark.parametrize(("text", "code", "position"), [
    ("!$blocked", "CON-002", 0), ("$a = 1", "CON-002", 3), ("$a && $t", "CON-002", 3),
    ("$a == 1; import os", "CON-002", 7), ("$a\N{NO-BREAK SPACE}== 1", "CON-002", 2),
    ("$a == \N{ARABIC-INDIC DIGIT ONE}", "CON-002", 6),
    ("$a == \N{FULLWIDTH DIGIT ONE}", "CON-002", 6), ("$a == 1\x00", "CON-002", 7),
    ("\ufefftrue", "CON-002", 0), ("$a ≠ 1", "CON-002", 3), ("amount == 1", "CON-003", 0),
    ("$a is 1", "CON-003", 3), ("True", "CON-003", 0), ("$a == 1 AND $t", "CON-003", 8),
    ("__import__('os')", "CON-003", 0), ("notin", "CON-003", 0), ("'a' == 'b", "CON-004", 7),
    (r"'a\'b' == ''", "CON-004", 0), (r'"\n" == ""', "CON-004", 0),
    ("'\N{RIGHT-TO-LEFT OVERRIDE}' == ''", "CON-004", 0),
    ("'a\N{ZERO WIDTH SPACE}' == 'a'", "CON-004", 0),
    ("'\N{RIGHT-TO-LEFT MARK}' == ''", "CON-004", 0),
    ("'\N{ARABIC LETTER MARK}' == ''", "CON-004", 0), ("'\N{SOFT HYPHEN}' == ''", "CON-004", 0),
    ("'\N{WORD JOINER}' == ''", "CON-004", 0), ("'\ufeff' == ''", "CON-004", 0),
    ("'\N{TAG LATIN SMALL LETTER A}' == ''", "CON-004", 0), ("'\x85' == ''", "CON-004", 0),
    ("'\ud800' == ''", "CON-004", 0), ("$\N{CYRILLIC SMALL LETTER A} == 1", "CON-006", 0),
    ("$p\N{CYRILLIC SMALL LETTER A}yee == 'x'", "CON-002", 2), ("1.5 == 1", "CON-005", 0),
    ("0x10 == 16", "CON-005", 0), ("007 == 7", "CON-005", 0), ("- 1 == 1", "CON-005", 0),
    ("-$a == 1", "CON-005", 0), ("1 == 1" + "0" * 400, "CON-005", 5), ("$ == 1", "CON-006", 0),
    ("$a._b == 1", "CON-006", 2), ("$1 == 1", "CON-006", 0), ("$a..b == 1", "CON-006", 2),
    ("$é == 1", "CON-006", 0), ("", "CON-007", 0), ("()", "CON-007", 1), (")", "CON-007", 0),
    ("== 1", "CON-007", 0), ("$a <> 1", "CON-007", 4), ("$a not in", "CON-007", 9),
    ("not in $a", "CON-007", 0), ("$a in $list]", "CON-008", 11), ("($t", "CON-008", 3),
    ("$t $t", "CON-008", 3), ("$a-1 == 0", "CON-008", 2), ("'a''b' == 'ab'", "CON-008", 3),
    ("$s not contains 'x'", "CON-008", 3), ("$list[0] == 'x'", "CON-008", 5),
    ("$a == 1 == 1", "CON-009", 8), ("1 in [1] == true", "CON-009", 9),
    ("$t == not $f", "CON-009", 6), ("1 in [1,]", "CON-010", 8), ("1 in [1", "CON-010", 7),
    ("1 in [1, 'a']", "CON-010", 9), ("1 in [$a]", "CON-010", 6), ("1 in [[1]]", "CON-010", 6),
    ("1 in [(1)]", "CON-010", 6),
])  # fmt: skip
def test_what_is_not_the_language_is_refused_with_its_place(
    text: str, code: str, position: int
) -> None:
    with pytest.raises(ConditionSyntaxError) as caught:
        parse(text)
    assert (caught.value.code, caught.value.position) == (code, position)
    line, caret = caught.value.text.split("\n")[-2:]
    assert caret.strip() == "^"
    if text.isprintable() and len(text) < 60:
        assert line.strip("\n")[2:] == text
        assert caret.index("^") == position + 2


def test_the_caret_stands_below_the_fault_in_a_text_of_several_lines() -> None:
    with pytest.raises(ConditionSyntaxError) as caught:
        parse("$a == 1\nand $b ~ 2\nand $c")
    assert caught.value.position == 15
    assert caught.value.text.split("\n")[-2:] == ["  and $b ~ 2", "         ^"]


def test_explain_shows_what_decided_and_what_was_not_reached() -> None:
    condition = parse("$a in [1, 2] and ($f or not $s == 'x') or $missing and $t")
    parts = condition.explain(CONTEXT)
    assert [part.error for part in parts] == [None] * 14
    assert [(part.text, part.value) for part in parts] == [
        (condition.text, True),
        ("$a in [1, 2] and ($f or not $s == 'x')", True),
        *(("$a in [1, 2]", True), ("$a", 1), ("[1, 2]", (1, 2))),
        *(("($f or not $s == 'x')", True), ("$f", False), ("not $s == 'x'", True)),
        *(("$s == 'x'", False), ("$s", "abc"), ("'x'", "x")),
        *(("$missing and $t", None), ("$missing", None), ("$t", None)),
    ]
