"""Proposals: each fault its own code, nothing repaired, and a look-alike is never the tool."""

import json
from collections.abc import Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nanovm_core.core.canonical import INTEGER_MAX, UNTRUSTED_DEPTH_MAX, Json
from nanovm_core.core.proposals import FAULTS, PROPOSAL_BYTES_MAX, Call, read_proposal
from nanovm_core.errors import RefusedError

PAY = "stripe.create_payment_intent"
GOOD: Mapping[str, Json] = {"amount_minor": 5, "payee": "{{payee}}"}


def refusal(raw: bytes) -> RefusedError:
    with pytest.raises(RefusedError) as caught:
        read_proposal(raw)
    return caught.value


def with_value(text: str) -> bytes:
    return f'{{"tool":"t","args":{{"i":{text}}}}}'.encode()


def named(tool: object = "t", argument: str = "i") -> bytes:
    return json.dumps({"tool": tool, "args": {argument: 1}}).encode()


def test_call_is_read_as_it_is_written() -> None:
    raw = (
        b' {"args" : {"payee": "{{payee}}", "amount_minor": 5},\n "tool": "' + PAY.encode() + b'"} '
    )
    assert read_proposal(raw) == Call(tool=PAY, args=GOOD, raw=True)
    assert read_proposal(b'{"tool":"","args":{}}') == Call(tool="", args={}, raw=True)


@pytest.mark.parametrize(
    ("code", "raws"),
    [
        (
            "CAP-010",
            (b"", b"pay 5 EUR", b"{'tool': 't', 'args': {}}", b'{"tool": "t", "args": {},}'),
        ),
        (
            "CAP-010",
            (b"[]", b"null", b'[{"tool": "t", "args": {}}]', b'{"tool": "t", "args": {}} {}'),
        ),
        ("CAP-010", (b'{"tool": "t"}', b'{"args": {}}', b'{"tool": "t", "args": {}, "more": 1}')),
        ("CAP-010", (b'{"Tool": "t", "args": {}}', b'{"tool": 5, "args": {}}')),
        ("CAP-010", (b'{"tool": ["t"], "args": {}}', b'```json\n{"tool": "t", "args": {}}\n```')),
        ("CAP-010", (b'{"tool": "t", "args": []}', b'{"tool": "t", "args": "{}"}')),
        ("CAP-011", (b'{"tool": "t", "tool": "t", "args": {}}', with_value('[{"a":1,"a":1}]'))),
        ("CAP-011", (b'{"tool": "t", "args": {"i": 1, "\\u0069": 2}}',)),
        ("CAP-012", (b'{"tool": 1.5, "args": {}}', b'{"tool": "t", "args": {}, "more": 1.5}')),
        ("CAP-012", (b'{"tool": "t", "args": 1e3, "x": [-1e-400]}', b"[1.5]", b"1E400")),
        ("CAP-013", tuple(map(with_value, ("NaN", "Infinity", "-Infinity")))),
        ("CAP-014", (with_value("-0"),)),
        ("CAP-015", tuple(map(with_value, (str(2**53), str(-(2**53)), "9" * 10_000)))),
        ("CAP-016", (with_value("[" * 15 + "]" * 15), with_value("[" * 8_000))),
        ("CAP-016", (with_value('{"a":' * 15 + "1" + "}" * 15),)),
        ("CAP-017", (b"\xff" * (PROPOSAL_BYTES_MAX + 1),)),
        ("CAP-018", (b'{"tool": "\xff", "args": {}}', with_value('"') + b'\xed\xa0\x80"}}')),
        ("CAP-018", (b'\xef\xbb\xbf{"tool": "t", "args": {}}', '{"tool": "t"}'.encode("utf-16"))),
        ("CAP-018", (with_value('"\\udc00\\ud800"'), b'{"tool": "\\ud800", "args": {}}')),
    ],
)
def test_each_fault_has_its_own_code(code: str, raws: tuple[bytes, ...]) -> None:
    assert {raw: refusal(raw).code for raw in raws} == dict.fromkeys(raws, code)


def test_limits_hold_at_their_edges() -> None:
    raw = with_value("1")
    padded = raw + b" " * (PROPOSAL_BYTES_MAX - len(raw))
    assert read_proposal(padded).tool == "t"
    assert refusal(padded + b" ").code == "CAP-017"
    inner = UNTRUSTED_DEPTH_MAX - 2
    assert read_proposal(with_value("[" * inner + "]" * inner)).tool == "t"
    assert refusal(with_value("[" * (inner + 1) + "]" * (inner + 1))).code == "CAP-016"
    for edge in (INTEGER_MAX, -INTEGER_MAX):
        assert read_proposal(with_value(str(edge))).args == {"i": edge}


@pytest.mark.parametrize(
    "name",
    [
        *(" " + PAY, PAY + "\n", PAY + "\x00", PAY + "\x7f", "a\x1bb", PAY + "\u200b"),
        *(PAY.replace("e", "\u0435", 1), PAY.replace(".", "\uff0e"), "\u202e" + PAY, "zahlen für"),
    ],
)
def test_name_that_is_not_plain_is_refused(name: str) -> None:
    assert refusal(named(tool=name)).code == "CAP-019"
    assert refusal(named(argument=name)).code == "CAP-019"
    assert refusal(named(argument="\ud800")).code == "CAP-019"


def test_refusal_never_quotes_the_bytes() -> None:
    for raw in (
        b"secret",
        b'{"secret":1,"secret":2}',
        b'{"tool":"secret","secret":1}',
        b'{"tool":"secret\\u00e9","args":{}}',
        b'{"tool":"t","args":{"secret ":1}}',
        b'"secret\xff"',
    ):
        assert "secret" not in str(refusal(raw))


@settings(max_examples=50)
@given(
    st.binary(max_size=200)
    | st.text('{}[]":,tolargs0123456789.eE+-\\u ', max_size=60).map(str.encode)
)
def test_any_bytes_are_a_call_or_refused_under_a_code_of_the_table(raw: bytes) -> None:
    try:
        call = read_proposal(raw)
    except RefusedError as error:
        code = error.code
    else:
        code = ""
        assert json.loads(raw) == {"tool": call.tool, "args": dict(call.args)}
    assert code in {"", *FAULTS.values()}
