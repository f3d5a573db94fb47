"""The canonical profile: one value, one sequence of bytes, and everything else refused."""

import enum
import json
from collections import OrderedDict, UserDict
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple
from uuid import UUID

import orjson
import pytest
import rfc8785
from hypothesis import given, settings
from hypothesis import strategies as st

from nanovm_core import verify
from nanovm_core.core import canonical
from nanovm_core.core.canonical import (
    DEPTH_MAX,
    INTEGER_MAX,
    SIZE_BYTES_MAX,
    UNTRUSTED_DEPTH_MAX,
    Json,
    decode,
    encode,
    freeze,
    parse_untrusted,
    thaw,
)
from nanovm_core.errors import CanonicalError

VECTORS = Path(__file__).parents[4] / "shared" / "data" / "vectors" / "jcs_rfc8785.json"

KEYS = st.text(st.characters(max_codepoint=0x7F), max_size=8)
TEXTS = st.text(st.characters(codec="utf-8"), max_size=12)
SCALARS = st.none() | st.booleans() | st.integers(-INTEGER_MAX, INTEGER_MAX) | TEXTS
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=12,
)


REFUSED = (CanonicalError, ValueError)  # of the kernel, of the verifier


class Colour(enum.StrEnum):
    RED = "red"


class Count(enum.IntEnum):
    ONE = 1


class Text(str):
    __slots__ = ()


class Pair(NamedTuple):
    left: int
    right: int


@dataclass
class Point:
    x: int = 1


class Fickle(dict[str, object]):
    """Answers with an integer once, and with a float after that."""

    asked = 0

    def __or__(self, other: object) -> Any:
        self.asked += 1
        return {"a": 1 if self.asked == 1 else 1.5}


def written(value: Json) -> bytes:
    """The bytes of four writers that agree."""
    reference = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    data = encode(value)
    assert data == reference.encode() == rfc8785.dumps(value)
    assert data == verify._ENCODER.encode(value).encode()
    return data


def refusal(data: bytes) -> str:
    with pytest.raises(CanonicalError) as caught:
        parse_untrusted(data, size_max=SIZE_BYTES_MAX)
    return caught.value.code


def read_by_the_verifier(data: bytes) -> Json:
    """What the verifier's own reader of the profile reads; ValueError where it refuses."""
    found: Json = verify.canonical(data)
    return found


def nested(depth: int) -> bytes:
    return b"[" * depth + b"]" * depth


@settings(max_examples=50)
@given(VALUES)
def test_a_value_has_one_form_and_is_read_back(value: Json) -> None:
    """Four writers agree; white space, order and escapes are free for a model only."""
    data, frozen = written(value), freeze(value)
    assert data == encode(decode(data)) == encode(frozen)
    assert decode(data) == value == thaw(frozen) == read_by_the_verifier(data)
    loose = json.dumps(value, indent=1).encode()
    assert parse_untrusted(loose, size_max=SIZE_BYTES_MAX) == value
    if loose != data:
        with pytest.raises(CanonicalError, match="CAN-014"):
            decode(loose)


ASCII = [*map(chr, range(128))]
EDGES = [chr(at) for start in (0x2028, 0xD7FF, 0xE000, 0xFEFF, 0xFFFF, 0x10FFFF)
         for at in (start - 1, start, start + 1)
         if at < 0x110000 and not 0xD800 <= at < 0xE000]  # fmt: skip


@pytest.mark.parametrize("value", [
    [*ASCII, *map(chr, range(128, 0x180)), *EDGES], "".join([*ASCII, *EDGES]),
    {key: at for at, key in enumerate([*ASCII, *(a + b for a in '!"A\x00' for b in ASCII), ""])},
    [number + near for number in (0, 2**31, 2**32, -(2**31), INTEGER_MAX - 1, 1 - INTEGER_MAX)
     for near in (-1, 0, 1)],
    [[], {}, [[]], [{}], {"a": {}, "b": []}, "", None, True, False], None, True, 0, "", [], {},
])  # fmt: skip
def test_writers_agree_at_the_edges_of_the_profile(value: Json) -> None:
    """Control characters, line separators, DEL, the planes beyond, key order, bounds, nothing."""
    assert decode(written(value)) == value == read_by_the_verifier(encode(freeze(value)))


@pytest.mark.parametrize("data", [
    b'{"b":1,"a":2}', b'{"a":{"b":1,"a":2}}', b'{"a": 1}', b"[1, 2]", b"[1,2]\n", rb'"\u00e9"',
    rb'"\u0061"', rb'"\/"', rb'"\u001F"', rb'"\u000a"', b' {"a":1}',
])  # fmt: skip
def test_another_spelling_of_a_value_is_not_canonical(data: bytes) -> None:
    value = parse_untrusted(data, size_max=SIZE_BYTES_MAX)
    with pytest.raises(CanonicalError, match="CAN-014"):
        decode(data)
    with pytest.raises(REFUSED):
        read_by_the_verifier(data)
    assert decode(encode(value)) == value == read_by_the_verifier(encode(value))


@given(
    st.binary(max_size=40)
    | st.text('[]{}",:0123456789.eE+-\\utrfalsn ', max_size=40).map(str.encode)
)
def test_any_bytes_give_a_value_or_the_one_error(data: bytes) -> None:
    try:
        value = parse_untrusted(data, size_max=SIZE_BYTES_MAX)
    except CanonicalError:
        return
    assert json.loads(data) == value
    assert decode(encode(value)) == value == read_by_the_verifier(encode(value))


@pytest.mark.skipif(not VECTORS.exists(), reason="the published RFC 8785 vectors are not here")
def test_published_vectors_hold_where_the_profile_covers_them() -> None:
    held, outside = [], {}
    for case in json.loads(VECTORS.read_bytes())["cases"]:
        expected = bytes.fromhex(case["output_hex"])
        try:
            value = parse_untrusted(case["input_utf8"].encode(), size_max=SIZE_BYTES_MAX)
        except CanonicalError as error:
            outside[case["name"]] = error.code
            continue
        assert encode(value) == expected == case["output_utf8"].encode()
        assert decode(expected) == value == read_by_the_verifier(expected)
        held.append(case["name"])
    assert held == ["arrays", "unicode"]
    assert outside == {
        **dict.fromkeys(("french", "weird"), "CAN-006"),
        **dict.fromkeys(("structures", "values"), "CAN-002"),
    }


MODEL_FAULTS = [
    (b"1.0", "CAN-002"), (b"1e400", "CAN-002"), (b"-0.0", "CAN-002"), (b"NaN", "CAN-003"),
    (b"Infinity", "CAN-003"), (b"-Infinity", "CAN-003"), (b"-0", "CAN-004"),
    (b"9007199254740992", "CAN-005"), (b"-9007199254740992", "CAN-005"), (b"1" * 5_000, "CAN-005"),
    ('{"é":1}'.encode(), "CAN-006"), (b'{"\\u00e9":1}', "CAN-006"), (b'{"\\ud800":1}', "CAN-006"),
    (b'{"a":1,"a":1}', "CAN-007"), (b'{"a":1,"\\u0061":2}', "CAN-007"),
    (b'{"b":[{"a":1,"a":1}]}', "CAN-007"), (b'"\\ud800"', "CAN-008"),
    (b'["\\udc00\\ud800"]', "CAN-008"), (nested(UNTRUSTED_DEPTH_MAX + 1), "CAN-009"),
    (b'{"a":' * (UNTRUSTED_DEPTH_MAX + 1), "CAN-009"), (b"[" * 200_000, "CAN-009"),
    (b'"\xff"', "CAN-011"), (b'"\xed\xa0\x80"', "CAN-011"), (b"\xef\xbb\xbf1", "CAN-012"),
    (b"", "CAN-013"), (b"1 2", "CAN-013"), (b"[1,]", "CAN-013"), (b"01", "CAN-013"),
    (b"'a'", "CAN-013"), (b'"\n"', "CAN-013"), (b"]" * 100 + b"[" * 100, "CAN-009"),
    ("[\N{ARABIC-INDIC DIGIT ONE}]".encode(), "CAN-013"),
    ("\N{NO-BREAK SPACE}1".encode(), "CAN-013"),
]  # fmt: skip


@pytest.mark.parametrize(("data", "code"), MODEL_FAULTS)
def test_each_fault_of_a_model_has_its_own_code(data: bytes, code: str) -> None:
    assert refusal(data) == code
    if code != "CAN-009" or data in (nested(DEPTH_MAX + 1), b"[" * 200_000):
        with pytest.raises(REFUSED):
            read_by_the_verifier(data)
        with pytest.raises(CanonicalError) as caught:
            decode(data)
        assert caught.value.code == code


OUTSIDE: list[tuple[object, str]] = [
    (1.0, "CAN-002"), (float("nan"), "CAN-002"), (INTEGER_MAX + 1, "CAN-005"),
    (-INTEGER_MAX - 1, "CAN-005"), ({1: 1}, "CAN-006"), ({"é": 1}, "CAN-006"),
    ({Colour.RED: 1}, "CAN-006"), ("\ud800", "CAN-008"), (b"bytes", "CAN-001"), ({1, 2}, "CAN-001"),
    (object(), "CAN-001"), (Colour.RED, "CAN-001"), (Pair(1, 2), "CAN-001"),
    ([{"deep": [1.5]}], "CAN-002"), (Count.ONE, "CAN-001"), (Text("a"), "CAN-001"),
    ({Text("a"): 1}, "CAN-006"), (OrderedDict(a=1), "CAN-001"), (UUID(int=0), "CAN-001"),
    (Point(), "CAN-001"), (date(2026, 1, 1), "CAN-001"), (datetime.now(UTC), "CAN-001"),
    (orjson.Fragment(b"1"), "CAN-001"), (MappingProxyType({"a": 1.5}), "CAN-002"),
    (MappingProxyType({"é": 1}), "CAN-006"), (MappingProxyType(UserDict(a=1.5)), "CAN-002"),
]  # fmt: skip


@pytest.mark.parametrize(("value", "code"), OUTSIDE)
def test_a_value_outside_the_profile_is_refused(value: object, code: str) -> None:
    for wherever in (value, [value], {"key": value}, {"key": [{"key": value}]}):
        for act in (encode, freeze, thaw):
            with pytest.raises(CanonicalError) as caught:
                act(wherever)
            assert caught.value.code == code


def test_what_a_mapping_proxy_shows_is_read_once() -> None:
    assert encode([MappingProxyType(UserDict(b=1, a=MappingProxyType({})))]) == b'[{"a":{},"b":1}]'
    assert encode(MappingProxyType(Fickle())) == b'{"a":1}'


def test_depth_ends_at_its_limit() -> None:
    assert encode(decode(nested(DEPTH_MAX))) == nested(DEPTH_MAX)
    assert read_by_the_verifier(nested(DEPTH_MAX)) == decode(nested(DEPTH_MAX))
    for read in (decode, read_by_the_verifier):
        for deep in (nested(DEPTH_MAX + 1), b'{"a":' * 65 + b"1" + b"}" * 65):
            with pytest.raises(REFUSED, match=r"deep|nested"):
                read(deep)
    parse_untrusted(nested(UNTRUSTED_DEPTH_MAX), size_max=100)
    array: Json = []
    pairs: Json = {}
    faulty: object = [1.5]
    for _ in range(DEPTH_MAX - 1):
        array, pairs, faulty = [array], {"a": pairs}, [faulty]
    for act in (encode, freeze, thaw):
        with pytest.raises(CanonicalError, match="CAN-002"):  # no deeper than the rest
            act(faulty)
    for value in (array, pairs):
        for act in (encode, freeze, thaw):
            act(value)
            for deeper in ([value], {"a": value}, MappingProxyType({"a": value})):
                with pytest.raises(CanonicalError, match="CAN-009"):
                    act(deeper)


def test_a_greater_depth_than_the_readers_own_is_never_granted_outside_of_strings() -> None:
    for depth in (DEPTH_MAX + 1, SIZE_BYTES_MAX // 2):
        with pytest.raises(CanonicalError, match="CAN-009"):
            parse_untrusted(nested(depth), size_max=SIZE_BYTES_MAX, depth_max=10**6)
    text = json.dumps(['[[["\\' * 100]).encode()
    assert parse_untrusted(text, size_max=SIZE_BYTES_MAX) == ['[[["\\' * 100]


def test_size_ends_at_its_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "x" * (SIZE_BYTES_MAX - 2)
    assert decode(encode(text)) == text
    two_bytes_each = "é" * (SIZE_BYTES_MAX // 2)
    for value in (text + "x", text + "é", two_bytes_each, "\x01" * (SIZE_BYTES_MAX // 4)):
        with pytest.raises(CanonicalError, match="CAN-010"):
            encode(value)
    with pytest.raises(CanonicalError, match="CAN-010"):
        decode(b'"' + text.encode() + b'x"')
    assert parse_untrusted(b"[1]", size_max=3) == [1]
    with pytest.raises(CanonicalError, match="CAN-010"):
        parse_untrusted(b"[1]", size_max=2)
    monkeypatch.setattr(canonical, "orjson", None)  # reads nothing before its size is looked at
    with pytest.raises(CanonicalError, match="CAN-010"):
        decode(b" " * (SIZE_BYTES_MAX + 1))


def test_neither_a_cycle_nor_a_shared_value_can_be_unfolded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The writer is not even asked: it would unfold all of it first."""
    monkeypatch.setattr(canonical, "SIZE_BYTES_MAX", size := 20_000)
    monkeypatch.setattr(canonical, "orjson", None)
    cycle: list[object] = []
    cycle += [cycle, cycle]
    with pytest.raises(CanonicalError):
        encode(cycle)
    shared: object = []
    named: object = {}
    for _ in range(16):  # unfolded, each has more parts than it may have bytes
        shared, named = [shared, shared], {"a": named, "b": named}
    for value in (shared, named, ["x" * size] * 2, [{"x" * size: 1}] * 2):
        for act in (encode, freeze, thaw):
            with pytest.raises(CanonicalError, match="CAN-010"):
                act(value)


def test_an_unterminated_string_of_quotes_is_refused_in_one_pass() -> None:
    assert refusal(b'["' + b'\\"' * (SIZE_BYTES_MAX // 2 - 10)) == "CAN-013"


def test_a_frozen_value_cannot_change_nor_be_changed_through_its_source() -> None:
    source: dict[str, Json] = {"a": [1], "b": {"c": 2}}
    frozen = freeze(source)
    assert isinstance(frozen, MappingProxyType)
    assert isinstance(frozen["a"], tuple)
    with pytest.raises(TypeError):
        frozen["a"] = 1  # type: ignore[index]
    source["a"] = 0
    assert thaw(frozen) == {"a": [1], "b": {"c": 2}}
