"""The canonical JSON profile: one value, one sequence of bytes, one hash."""

import hashlib
import json
import re
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from types import MappingProxyType
from typing import Any, NoReturn, cast

import orjson

from nanovm_core.decimals import Number as Number
from nanovm_core.errors import CanonicalError

Json = None | bool | int | str | list["Json"] | dict[str, "Json"]
FrozenJson = None | bool | int | str | tuple["FrozenJson", ...] | Mapping[str, "FrozenJson"]

INTEGER_MAX = 2**53 - 1  # what every JSON reader holds exactly (RFC 7493 §2.2)
SIZE_BYTES_MAX = 1_048_576  # bounds the cost of one decode
DEPTH_MAX = 64  # nested arrays and objects; far below a reader's stack
UNTRUSTED_DEPTH_MAX = 16  # a proposed tool call needs four

_INTEGER_MIN = -INTEGER_MAX
_SCALARS = frozenset({str, int, bool, type(None)})
_CONTAINERS = frozenset({dict, MappingProxyType, list, tuple})
_NO_PAIRS: dict[str, object] = {}
_OPTIONS = orjson.OPT_SORT_KEYS | orjson.OPT_STRICT_INTEGER
_INTEGER_CHARS_MAX = 17  # INTEGER_MAX and a sign: longer digits are never converted
_BAD_KEY = "an object's key is not an ASCII string"
_NO_FLOAT = "floats are refused: use an integer or a string"
_SURROGATE = re.compile("[\ud800-\udfff]")
# A string (also an unterminated one, so that the scan stays linear) or one bracket.
_BRACKET = re.compile(r'"(?>(?:[^"\\]++|\\.)*)"?|[\[{]|[\]}]', re.DOTALL)


def encode(value: object) -> bytes:
    """The only bytes for ``value``: RFC 8785 on the profile of the audit format.

    Takes exactly None, bool, int, str, list, tuple, dict, mapping proxy: no subclass decides what
    is hashed. ``decode`` accepts the result.
    """
    pairs: dict[int, dict[str, object]] = {}
    try:
        if _room(value, SIZE_BYTES_MAX, 1, pairs) < 0:
            data = _bytes(thaw(value))
        else:
            data = orjson.dumps(value, lambda proxy: pairs[id(proxy)], _OPTIONS)
    except TypeError:  # of a key, an integer or half a surrogate pair, which `thaw` tells apart
        data = _bytes(thaw(value))
    if len(data) > SIZE_BYTES_MAX:
        raise CanonicalError("CAN-010", f"larger than {SIZE_BYTES_MAX} bytes")
    return data


def decode(data: bytes) -> Json:
    """The value of canonical JSON.

    Raises:
        CanonicalError: CAN-…, the bytes are not the canonical form of a value.
    """
    if len(data) <= SIZE_BYTES_MAX:
        with suppress(json.JSONDecodeError, CanonicalError):  # the strict reader says which fault
            if encode(quick := cast(Json, orjson.loads(data))) == data:
                return quick
    value = parse_untrusted(data, size_max=SIZE_BYTES_MAX, depth_max=DEPTH_MAX)
    _require(_bytes(value) == data, "CAN-014", "the bytes are not their value's canonical form")
    return value


def parse_untrusted(
    data: bytes, *, size_max: int, depth_max: int = UNTRUSTED_DEPTH_MAX, decimals: bool = False
) -> Json:
    """The value of untrusted JSON within the profile.

    As strict as ``decode`` about values (each fault has its own code; nothing is repaired); white
    space, key order and escapes are free. No message quotes the bytes, which may be personal.
    ``depth_max`` is at most DEPTH_MAX. ``decimals``: fractions are ``Number``s.
    """
    _require(len(data) <= size_max, "CAN-010", f"larger than {size_max} bytes")
    _require(not data.startswith(b"\xef\xbb\xbf"), "CAN-012", "leave out the byte order mark")
    try:
        text = data.decode("utf-8")
        _check_depth(text, min(depth_max, DEPTH_MAX))
        value = (_EXACT if decimals else _READER).decode(text)
    except UnicodeDecodeError as error:
        raise CanonicalError("CAN-011", f"byte {error.start} is not UTF-8") from None
    except json.JSONDecodeError as error:
        raise CanonicalError("CAN-013", f"not JSON: {error.msg} at {error.pos}") from None
    checked = _copy(without_numbers(value) if decimals else value, [size_max], frozen=False)
    return cast(Json, value if decimals else checked)


def without_numbers(value: Any) -> Any:
    """A copy of lists and dicts with each ``Number`` made 0."""
    if isinstance(value, dict):
        return {key: without_numbers(each) for key, each in value.items()}
    if isinstance(value, list):
        return [without_numbers(each) for each in value]
    return 0 if isinstance(value, Number) else value


def written(value: Json) -> bytes:
    """As strict as ``encode``, but each ``Number`` is written as it was."""
    thaw(without_numbers(value))
    options = _OPTIONS | orjson.OPT_PASSTHROUGH_DATACLASS
    return orjson.dumps(value, lambda number: orjson.Fragment(number.text), options)


def freeze(value: object) -> FrozenJson:
    """An immutable deep copy: tuples and mapping proxies. As strict as ``encode``."""
    return cast(FrozenJson, _copy(value, [SIZE_BYTES_MAX], frozen=True))


def thaw(value: object) -> Json:
    """A deep copy in lists and dicts. As strict as ``encode``."""
    return cast(Json, _copy(value, [SIZE_BYTES_MAX], frozen=False))


def digest(domain: bytes, data: bytes) -> str:
    """SHA-256 of ``domain || data`` in lower-case hex; no domain may be another's prefix."""
    return hashlib.sha256(domain + data).hexdigest()


def _bytes(checked: object) -> bytes:
    """The one writer. By itself it would take floats, UUIDs, enum members and any depth."""
    return orjson.dumps(checked, None, _OPTIONS)


def _room(whole: Any, left: int, depth: int, pairs: dict[int, Any]) -> int:
    """What is left of ``left`` once an array or object is charged, as ``_check`` charges it.

    Negative where types, keys and sizes do not show that the writer writes the profile. ``pairs``
    gets a copy of each mapping proxy, by its id, to be checked and written: what is under a proxy
    may answer otherwise the next time.
    """
    if left < 0 or depth > DEPTH_MAX:
        return -1
    kind, values = type(whole), whole
    if kind is not list and kind is not tuple:
        if kind is MappingProxyType:
            pairs[id(whole)] = whole = whole | _NO_PAIRS  # far faster than dict(whole)
        if type(whole) is not dict or not (keys := "".join(whole)).isascii():
            return -1
        values, left = whole.values(), left - len(keys)
    left -= len(values)
    for value in values:
        kind = type(value)
        if kind is str:
            left -= len(value)
        elif kind not in _SCALARS:
            left = _room(value, left, depth + 1, pairs)
    return left


def _unknown(kind: type) -> CanonicalError:
    if kind in (float, Number):
        return CanonicalError("CAN-002", _NO_FLOAT)
    return CanonicalError("CAN-001", f"a {kind.__name__} has no canonical form: convert it first")


def _copy(value: object, left: list[int], *, frozen: bool) -> object:
    """A checked copy; each node and character is charged against ``left``.

    So no cycle is unfolded, and no part that is shared a million times.
    """
    copies = [value]
    _check(copies, enumerate(copies), copies, 0, left, frozen=frozen)
    return copies[0]


def _check(
    values: Collection[Any],
    items: Iterable[tuple[Any, Any]],
    copies: Any,
    depth: int,
    left: list[int],
    *,
    frozen: bool,
) -> None:
    """Check the items of one array or object; in ``copies`` each container becomes its own copy.

    All strings are checked as one, for speed.
    """
    kinds = {*map(type, values)}
    cost = len(values)
    if str in kinds:
        text = "".join([value for value in values if type(value) is str])
        cost += len(text)
        _check_text(text)
    if int in kinds:
        for value in values:
            if type(value) is int:
                _in_range(value)
    if not kinds <= _SCALARS:
        for place, value in items:
            if type(value) not in _SCALARS:
                copies[place] = _container(value, depth, left, frozen=frozen)
    _charge(left, cost)


def _container(value: Any, depth: int, left: list[int], *, frozen: bool) -> object:
    kind = type(value)
    if kind not in _CONTAINERS:
        raise _unknown(kind)
    _check_nesting(depth)
    if kind is dict or kind is MappingProxyType:
        pairs: dict[Any, Any] = dict(value)
        _check_keys(pairs, left)
        _check(pairs.values(), pairs.items(), pairs, depth + 1, left, frozen=frozen)
        return MappingProxyType(pairs) if frozen else pairs
    items = list(value)
    _check(items, enumerate(items), items, depth + 1, left, frozen=frozen)
    return tuple(items) if frozen else items


def _check_keys(pairs: Mapping[Any, object], left: list[int]) -> None:
    if not {*map(type, pairs)} <= {str} or not (text := "".join(pairs)).isascii():
        raise CanonicalError("CAN-006", _BAD_KEY)
    _charge(left, len(text))


def _check_nesting(depth: int) -> None:
    if depth >= DEPTH_MAX:
        raise CanonicalError("CAN-009", f"nested deeper than {DEPTH_MAX} levels")


def _check_text(text: str) -> None:
    if not text.isascii() and _SURROGATE.search(text):
        raise CanonicalError("CAN-008", "a string holds half of a surrogate pair")


def _require(holds: bool, code: str, text: str) -> None:
    if not holds:
        raise CanonicalError(code, text)


def _charge(left: list[int], size: int) -> None:
    left[0] -= size
    if left[0] < 0:
        raise CanonicalError("CAN-010", "larger than the limit")


def _check_depth(text: str, depth_max: int) -> None:
    if text.count("[") + text.count("{") <= depth_max:
        return  # too few to be too deep
    depth = 0
    for match in _BRACKET.finditer(text):
        if match[0] in "[{":
            depth += 1
            _require(depth <= depth_max, "CAN-009", f"nested deeper than {depth_max} levels")
        elif match[0] in "]}":
            depth = max(0, depth - 1)  # never below the reader's own depth


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    result = dict(pairs)
    _require(len(result) == len(pairs), "CAN-007", "an object has the same key twice")
    return result


def _integer(text: str) -> int:
    _require(text != "-0", "CAN-004", "minus zero is refused: write 0")
    return _in_range(int(text) if len(text) <= _INTEGER_CHARS_MAX else INTEGER_MAX + 1)


def _in_range(number: int) -> int:
    if not _INTEGER_MIN <= number <= INTEGER_MAX:
        raise CanonicalError("CAN-005", f"an integer lies outside ±{INTEGER_MAX}")
    return number


def _refuse_float(_: str) -> NoReturn:
    raise CanonicalError("CAN-002", _NO_FLOAT)


def _refuse_constant(_: str) -> NoReturn:
    raise CanonicalError("CAN-003", "NaN and Infinity are not JSON")


_READER, _EXACT = (
    json.JSONDecoder(
        object_pairs_hook=_object,
        parse_float=fraction,
        parse_int=_integer,
        parse_constant=_refuse_constant,
    )
    for fraction in (_refuse_float, Number)
)
