"""Hostile lines: always one verdict, under the line's own id where it has one, never a crash."""

import json
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nanovm_core.core.proposals import PROPOSAL_BYTES_MAX
from nanovm_core.judge import LINE_BYTES_MAX, SEARCH_BYTES_MAX, Verdict, judge
from pipeline.steps.reasons import RULES
from tests.core.kit.refund_desk import DESK, TOOL, args_of, slots_of

CALL = f'"tool": "{TOOL}", "args": {json.dumps(args_of())}'
CONTEXT = f'"context": {{"slots": {json.dumps(slots_of())}}}'
GOOD = f'{{"id": "good", {CALL}, {CONTEXT}}}'.encode()


def verdict(line: bytes) -> Verdict:
    """The verdict on a line; a good one before and after it shows that it changed nothing else."""
    before, found, after = judge(DESK, [GOOD, line, GOOD])
    assert (before.verdict, after.verdict) == ("ACCEPTED", "ACCEPTED")
    assert (before.id, after.id) == ("good", "good")
    return found


@pytest.mark.parametrize(("given_id", "shown"), [
    ('"x"', "x"), ('"\\u00e9\\n"', "é\n"), ('""', ""), ("7", 7),
    ("-9007199254740991", -9007199254740991), ('"' + "x" * 5_000 + '"', "x" * 5_000),
    ("null", "line 2"), ("true", "line 2"), ("[7]", "line 2"), ('{"id": "x"}', "line 2"),
])  # fmt: skip
def test_an_id_comes_back_as_it_is(given_id: str, shown: str | int) -> None:
    found = verdict(f'{{"id": {given_id}, {CALL}, {CONTEXT}}}'.encode())
    assert (found.id, found.verdict) == (shown, "ACCEPTED")
    assert type(found.id) is type(shown)


@pytest.mark.parametrize(("line", "shown", "code"), [
    (b'{"id": "x", "tool": "t", "args": {', "x", "CAP-010"),
    (b'{"tool": "t", "args": {"id": "no"}, "id" : "x", }', "x", "CAP-010"),
    (b'{"id": 7, "id": 8, "tool": "t"', 7, "CAP-010"),
    (b'{"id": "x", "id": "y", "tool": "t", "args": {}}', "x", "CAP-011"),
    (b'{"id": "a\\"b", "tool": NaN, "args": {}}', 'a"b', "CAP-013"),
    (b'{"args": {"deep": ' + b"[" * 500_000 + b"]" * 500_000 + b'}, "id": "x"}', "x", "CAP-017"),
    (b'{"args": ' + b"[" * 99 + b"]" * 99 + b', "id": "x"}', "x", "CAP-016"),
    (b'{"args": {"n": ' + b"9" * 5_000 + b'}, "id": "x"}', "x", "CAP-015"),
    (b'{"args": {"text": "' + b"t" * 1_000_000 + b'"}, "id": "x"}', "x", "CAP-017"),
    (b'{"id": "x", "tool": "\xff"}', "x", "CAP-018"),
    (b'\xef\xbb\xbf{"id": "x"}', "x", "CAP-018"),
    (b'{"id": 1.5, "tool": "t"}', "line 2", "CAP-012"),
    (b'{"id": "\\ud800", "tool": "t"}', "line 2", "CAP-018"),
    (b'{"id": "\xff", "tool": "t"}', "line 2", "CAP-018"),
    (b'{"id": ' + b"9" * 5_000 + b', "tool": "t"}', "line 2", "CAP-015"),
    (b'{"id": "' + b"x" * LINE_BYTES_MAX + b'"}', "line 2", "CAP-017"),
    (b'{"id": "never closed, "tool": "t"}', "never closed, ", "CAP-010"),
    (b'{"id": "never closed', "line 2", "CAP-010"),
    (b'{"id": [1, 2.5]}', "line 2", "CAP-012"),
    (b'{"id" "x", "tool": 1.5}', "line 2", "CAP-010"),
    (b'{"args": {"id": "inner"}, "tool": 1.5}', "line 2", "CAP-012"),
    (f"{{{CALL}}}".encode(), "line 2", "POL-002"),
    (b'["id", "x"]', "line 2", "CAP-010"),
    (b"", "line 2", "CAP-010"),
])  # fmt: skip
def test_a_line_that_cannot_be_read_keeps_its_id(line: bytes, shown: str | int, code: str) -> None:
    found = verdict(line)
    assert (found.id, found.verdict, found.rule) == (shown, "BLOCKED", code)
    json.dumps(found._asdict(), ensure_ascii=False).encode()


def test_the_search_for_an_id_has_an_end() -> None:
    for beyond, shown in ((0, "x"), (1, "line 2")):
        head = b'{"t": "'
        tail = b'", "id": "x"'
        filler = SEARCH_BYTES_MAX - len(head) - len(tail) + beyond
        found = verdict(head + b"t" * filler + tail)
        assert (found.id, found.rule) == (shown, "CAP-017")


@pytest.mark.parametrize("call", [
    '"tool": 7, "args": {}', '"tool": null, "args": {}', '"tool": ["refund.issue"], "args": {}',
    '"args": {}', '"tool": "refund.issue"', f'{CALL}, "approved": true', f'{CALL}, "Context": {{}}',
])  # fmt: skip
def test_a_line_is_a_call_and_nothing_else(call: str) -> None:
    found = verdict(f'{{"id": "x", {call}, {CONTEXT}}}'.encode())
    assert (found.id, found.rule) == ("x", "CAP-010")


@pytest.mark.parametrize("around", [
    "null", "[]", '"slots"', "7", '{"slots": []}', '{"slots": null}',
    '{"slots": {"paid_minor": null}}', '{"slots": {"paid_minor": [4500]}}',
    '{"slots": {"paid_minor": {"is": 4500}}}', '{"workspace": 7}', '{"workspace": null}',
    '{"agent": ["desk"]}', '{"at_ms": "0"}', '{"at_ms": true}', '{"at_ms": null}',
    '{"ledger": {"workspace/EUR": 1000000}}', '{"approved": ["old-order"]}', '{"Slots": {}}',
])  # fmt: skip
def test_a_context_of_another_shape_is_refused(around: str) -> None:
    found = verdict(f'{{"id": "x", {CALL}, "context": {around}}}'.encode())
    assert (found.id, found.verdict, found.rule) == ("x", "BLOCKED", "CAP-010")
    assert "context" in found.why


def test_slots_of_another_type_help_nobody() -> None:
    for value in ("true", '"4500"', "1"):
        slots = json.dumps(slots_of()).replace("4500", value)
        found = verdict(f'{{"id": "x", {CALL}, "context": {{"slots": {slots}}}}}'.encode())
        assert (found.verdict, found.rule) in (("BLOCKED", "POL-010"), ("BLOCKED", "POL-002"))


def test_a_line_has_a_size() -> None:
    for more, code in ((0, "small-or-signed"), (1, "CAP-017")):
        filler = b" " * (LINE_BYTES_MAX - len(GOOD) + more)
        found = verdict(GOOD[:-1] + filler + b"}")
        assert (found.id, found.rule) == ("good", code)


def test_a_proposal_has_a_size_of_its_own() -> None:
    for more, code in ((0, "CAP-001"), (1, "CAP-017")):
        filler = "t" * (PROPOSAL_BYTES_MAX - len('{"args":{"a":""},"tool":"x"}') + more)
        found = verdict(f'{{"id": "x", "tool": "x", "args": {{"a": "{filler}"}}}}'.encode())
        assert (found.id, found.rule) == ("x", code)


def test_a_line_has_a_depth() -> None:
    for depth, code in ((16, "CAP-001"), (17, "CAP-016")):
        nested = "[" * (depth - 2) + "]" * (depth - 2)
        found = verdict(f'{{"id": "x", "tool": "x", "args": {{"a": {nested}}}}}'.encode())
        assert (found.id, found.rule) == ("x", code)
    for depth, code in ((16, "CAP-010"), (17, "CAP-016")):
        nested = "[" * (depth - 3) + "]" * (depth - 3)
        context = f'"context": {{"slots": {{"a": {nested}}}}}'
        found = verdict(f'{{"id": "x", {CALL}, {context}}}'.encode())
        assert (found.id, found.rule) == ("x", code)


def mutilated() -> st.SearchStrategy[bytes]:
    """A good line, cut, with bytes put in or exchanged."""

    def change(line: bytes, at: int, put: bytes, cut: int) -> bytes:
        at %= len(line) + 1
        return line[:at] + put + line[at + cut :]

    tokens = st.sampled_from([b"{", b"}", b'"', b"[", b"]", b":", b",", b"\\", b"1e9", b"NaN", b""])
    return st.builds(
        change,
        st.just(GOOD),
        st.integers(0, 999),
        st.one_of(tokens, st.binary()),
        st.integers(0, 9),
    )


@given(lines=st.lists(st.one_of(mutilated(), st.binary(max_size=200)), max_size=8))
def test_every_line_has_exactly_one_verdict(lines: list[bytes]) -> None:

    def once() -> Iterator[bytes]:
        yield from lines

    found = list(judge(DESK, once()))
    assert len(found) == len(lines)
    for each in found:
        json.dumps(each._asdict(), ensure_ascii=False).encode()
        if each.verdict == "ACCEPTED":
            assert each.rule == "small-or-signed"
        else:
            assert (each.verdict, each.rule) == ("BLOCKED", each.rule)
            assert each.rule in RULES
