"""The canonical JSON profile: one value, one sequence of bytes, one hash."""

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, NoReturn, cast

from nanovm_core.errors import CanonicalError

Json = None | bool | int | str | list["Json"] | dict[str, "Json"]
FrozenJson = None | bool | int | str | tuple["FrozenJson", ...] | Mapping[str, "FrozenJson"]

INTEGER_MAX = 2**53 - 1  # what every JSON reader holds exactly (RFC 7493 §2.2)
SIZE_BYTES_MAX = 1_048_576  # an envelope has kilobytes; bounds what one decode costs
DEPTH_MAX = 64  # nested arrays and objects; far below what a reader's stack holds
UNTRUSTED_DEPTH_MAX = 16  # a proposed tool call needs four

_INTEGER_CHARS_MAX = 17  # INTEGER_MAX and a sign: longer digits are never converted
_SURROGATE = re.compile("[\ud800-\udfff]")
# A string (also an unterminated one, so that the scan stays linear) or one bracket.
_BRACKET = re.compile(r'"(?:[^"\\]++|\\.)*+"?|[\[{]|[\]}]', re.DOTALL)


def encode(value: object) -> bytes:
    """The only bytes for ``value``: RFC 8785 on the profile of the audit format.

    Takes None, bool, int, str, list or tuple, dict or mapping proxy, of exactly these
    types: a subclass (an enum member, a named tuple) is refused, so that no foreign
    method decides what is hashed. What it returns, ``decode`` accepts.
    """
    return _bytes(thaw(value))


def decode(data: bytes) -> Json:
    """The value of canonical bytes; all others are refused with CanonicalError."""
    value = parse_untrusted(data, size_max=SIZE_BYTES_MAX, depth_max=DEPTH_MAX)
    _require(_bytes(value) == data, "CAN-014", "the bytes are not their value's canonical form")
    return value


def parse_untrusted(data: bytes, *, size_max: int, depth_max: int = UNTRUSTED_DEPTH_MAX) -> Json:
    """The value of someone else's JSON, if it lies within the profile.

    As strict as ``decode`` about values (each fault has its own code; nothing is
    repaired), but white space, key order and escapes are free. No message quotes the
    bytes: they may hold personal data. ``depth_max`` above DEPTH_MAX counts as DEPTH_MAX.
    """
    _require(len(data) <= size_max, "CAN-010", f"larger than {size_max} bytes")
    _require(not data.startswith(b"\xef\xbb\xbf"), "CAN-012", "leave out the byte order mark")
    try:
        text = data.decode("utf-8")
        _check_depth(text, min(depth_max, DEPTH_MAX))
        value = _READER.decode(text)
    except UnicodeDecodeError as error:
        raise CanonicalError("CAN-011", f"byte {error.start} is not UTF-8") from None
    except json.JSONDecodeError as error:
        raise CanonicalError("CAN-013", f"not JSON: {error.msg} at {error.pos}") from None
    return cast(Json, _copy(value, [size_max], frozen=False))


def freeze(value: object) -> FrozenJson:
    """A deep copy that nobody can change: tuples and mapping proxies. As strict as ``encode``."""
    return cast(FrozenJson, _copy(value, [SIZE_BYTES_MAX], frozen=True))


def thaw(value: object) -> Json:
    """A deep copy in lists and dicts: the inverse of ``freeze``. As strict as ``encode``."""
    return cast(Json, _copy(value, [SIZE_BYTES_MAX], frozen=False))


def digest(domain: bytes, data: bytes) -> str:
    """SHA-256 of ``domain || data`` in lower-case hex; no domain may be another's beginning."""
    return hashlib.sha256(domain + data).hexdigest()


def _bytes(checked: Json) -> bytes:
    """The bytes of a value that was checked before."""
    data = _WRITER.encode(checked).encode("utf-8")
    _require(len(data) <= SIZE_BYTES_MAX, "CAN-010", f"larger than {SIZE_BYTES_MAX} bytes")
    return data


def _copy(value: object, left: list[int], *, frozen: bool) -> object:
    """A checked copy.

    Each node and character is charged against ``left``: neither a cycle nor a small
    value that shares its parts a million times can be unfolded.
    """
    return _items((value,), 0, left, frozen=frozen)[0]


def _items(values: Iterable[Any], depth: int, left: list[int], *, frozen: bool) -> list[object]:
    """Checked copies of what one array or object holds; the recursion ends at DEPTH_MAX."""
    copies: list[object] = []
    cost = 0
    for value in values:
        kind = type(value)
        cost += 1
        if kind is str:
            cost += len(value)
            if not value.isascii() and _SURROGATE.search(value):
                raise CanonicalError("CAN-008", "a string holds half of a surrogate pair")
            copies.append(value)
        elif value is None or kind is bool:
            copies.append(value)
        elif kind is int:
            copies.append(_in_range(value))
        else:
            copies.append(_container(value, depth, left, frozen=frozen))
    _charge(left, cost)
    return copies


def _container(value: Any, depth: int, left: list[int], *, frozen: bool) -> object:
    kind = type(value)
    if depth >= DEPTH_MAX:
        raise CanonicalError("CAN-009", f"nested deeper than {DEPTH_MAX} levels")
    if kind is dict or kind is MappingProxyType:
        pairs: dict[object, object] = dict(value)
        items = _items(pairs.values(), depth + 1, left, frozen=frozen)
        copied = dict(zip(_keys(pairs, left), items, strict=True))
        return MappingProxyType(copied) if frozen else copied
    if kind is list or kind is tuple:
        items = _items(value, depth + 1, left, frozen=frozen)
        return tuple(items) if frozen else items
    _require(kind is not float, "CAN-002", "floats are refused: use an integer or a string")
    raise CanonicalError("CAN-001", f"a {kind.__name__} has no canonical form: convert it first")


def _keys(pairs: Mapping[object, object], left: list[int]) -> list[str]:
    keys: list[str] = []
    cost = 0
    for key in pairs:
        if type(key) is not str or not key.isascii():
            raise CanonicalError("CAN-006", "an object's key is not an ASCII string")
        cost += len(key)
        keys.append(key)
    _charge(left, cost)
    return keys


def _require(holds: bool, code: str, text: str) -> None:
    if not holds:
        raise CanonicalError(code, text)


def _charge(left: list[int], size: int) -> None:
    left[0] -= size
    if left[0] < 0:
        raise CanonicalError("CAN-010", "larger than the limit")


def _check_depth(text: str, depth_max: int) -> None:
    if text.count("[") + text.count("{") <= depth_max:
        return  # too few to be too deep, wherever they stand
    depth = 0
    for match in _BRACKET.finditer(text):
        if match[0] in "[{":
            depth += 1
            _require(depth <= depth_max, "CAN-009", f"nested deeper than {depth_max} levels")
        elif match[0] in "]}":
            depth = max(0, depth - 1)  # never below what the reader may still enter


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    result = dict(pairs)
    _require(len(result) == len(pairs), "CAN-007", "an object has the same key twice")
    return result


def _integer(text: str) -> int:
    _require(text != "-0", "CAN-004", "minus zero is refused: write 0")
    return _in_range(int(text) if len(text) <= _INTEGER_CHARS_MAX else INTEGER_MAX + 1)


def _in_range(number: int) -> int:
    if not -INTEGER_MAX <= number <= INTEGER_MAX:
        raise CanonicalError("CAN-005", f"an integer lies outside ±{INTEGER_MAX}")
    return number


def _refuse_float(_: str) -> NoReturn:
    raise CanonicalError("CAN-002", "floats are refused: use an integer or a string")


def _refuse_constant(_: str) -> NoReturn:
    raise CanonicalError("CAN-003", "NaN and Infinity are not JSON")


_WRITER = json.JSONEncoder(
    sort_keys=True, separators=(",", ":"), ensure_ascii=False, check_circular=False
)
_READER = json.JSONDecoder(
    object_pairs_hook=_object,
    parse_float=_refuse_float,
    parse_int=_integer,
    parse_constant=_refuse_constant,
)
