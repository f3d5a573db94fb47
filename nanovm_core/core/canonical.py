"""The canonical JSON profile: one value, one sequence of bytes, one hash."""

import hashlib
import json
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from types import MappingProxyType
from typing import Any, NoReturn, cast

from nanovm_core.errors import CanonicalError

Json = None | bool | int | str | list["Json"] | dict[str, "Json"]
FrozenJson = None | bool | int | str | tuple["FrozenJson", ...] | Mapping[str, "FrozenJson"]

INTEGER_MAX = 2**53 - 1  # what every JSON reader holds exactly (RFC 7493 §2.2)
SIZE_BYTES_MAX = 1_048_576  # bounds the cost of one decode
DEPTH_MAX = 64  # nested arrays and objects; far below a reader's stack
UNTRUSTED_DEPTH_MAX = 16  # a proposed tool call needs four

_INTEGER_MIN = -INTEGER_MAX
_SCALARS = frozenset({str, int, bool, type(None)})
_INTEGER_CHARS_MAX = 17  # INTEGER_MAX and a sign: longer digits are never converted
_BAD_KEY = "an object's key is not an ASCII string"
_SURROGATE = re.compile("[\ud800-\udfff]")
# A string (also an unterminated one, so that the scan stays linear) or one bracket.
_BRACKET = re.compile(r'"(?:[^"\\]++|\\.)*+"?|[\[{]|[\]}]', re.DOTALL)


def encode(value: object) -> bytes:
    """The only bytes for ``value``: RFC 8785 on the profile of the audit format.

    Takes exactly None, bool, int, str, list, tuple, dict, mapping proxy: no subclass (an enum
    member, a named tuple) decides what is hashed. ``decode`` accepts the result.
    """
    data = _written(value, [SIZE_BYTES_MAX], 0).encode("utf-8")
    if len(data) > SIZE_BYTES_MAX:
        raise CanonicalError("CAN-010", f"larger than {SIZE_BYTES_MAX} bytes")
    return data


def decode(data: bytes) -> Json:
    """The value of canonical bytes; all others are refused with CanonicalError."""
    value = parse_untrusted(data, size_max=SIZE_BYTES_MAX, depth_max=DEPTH_MAX)
    _require(_bytes(value) == data, "CAN-014", "the bytes are not their value's canonical form")
    return value


def parse_untrusted(data: bytes, *, size_max: int, depth_max: int = UNTRUSTED_DEPTH_MAX) -> Json:
    """The value of untrusted JSON within the profile.

    As strict as ``decode`` about values (each fault has its own code; nothing is repaired);
    white space, key order and escapes are free. No message quotes the bytes: they may hold
    personal data. ``depth_max`` is at most DEPTH_MAX.
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
    """An immutable deep copy: tuples and mapping proxies. As strict as ``encode``."""
    return cast(FrozenJson, _copy(value, [SIZE_BYTES_MAX], frozen=True))


def thaw(value: object) -> Json:
    """A deep copy in lists and dicts. As strict as ``encode``."""
    return cast(Json, _copy(value, [SIZE_BYTES_MAX], frozen=False))


def digest(domain: bytes, data: bytes) -> str:
    """SHA-256 of ``domain || data`` in lower-case hex; no domain may be another's prefix."""
    return hashlib.sha256(domain + data).hexdigest()


def _bytes(checked: Json) -> bytes:
    return "".join(_WRITER(checked, 0)).encode("utf-8")


def _written(value: Any, left: list[int], depth: int) -> str:
    """A value's text, checked as it is written; the recursion ends at DEPTH_MAX."""
    kind = type(value)
    if kind is dict or kind is MappingProxyType:
        _check_nesting(depth)
        return _written_object(value if kind is dict else dict(value), left, depth + 1)
    if kind is list or kind is tuple:
        _check_nesting(depth)
        _charge(left, 2 + len(value))
        return f"[{','.join([_written(item, left, depth + 1) for item in value])}]"
    text = _scalar(kind, value)
    _charge(left, len(text))
    return text


def _written_object(pairs: dict[Any, Any], left: list[int], depth: int) -> str:
    """An object in key order; strings and integers in place, for speed."""
    if not {*map(type, pairs)} <= {str}:
        raise CanonicalError("CAN-006", _BAD_KEY)
    pieces, nested = [], 0
    for key in sorted(pairs):
        value, name = pairs[key], _NAMES.get(key) or _name(key)
        kind = type(value)
        if kind is str and value.isascii():
            pieces.append(name + _QUOTED(value))
        elif kind is int and _INTEGER_MIN <= value <= INTEGER_MAX:
            pieces.append(name + repr(value))
        else:
            text = _written(value, left, depth)
            nested += len(text)  # charged already
            pieces.append(name + text)
    text = f"{{{','.join(pieces)}}}"
    _charge(left, len(text) - nested)
    return text


def _name(key: str) -> str:
    if not key.isascii():
        raise CanonicalError("CAN-006", _BAD_KEY)
    name = _QUOTED(key) + ":"
    if len(_NAMES) < _NAMES_MAX:
        _NAMES[key] = name
    return name


def _scalar(kind: type, value: Any) -> str:
    if kind is str:
        _check_text(value)
        return _QUOTED(value)
    if kind is int:
        return repr(_in_range(value))
    if kind is bool:
        return "true" if value else "false"
    if value is None:
        return "null"
    raise _unknown(kind)


def _unknown(kind: type) -> CanonicalError:
    if kind is float:
        return CanonicalError("CAN-002", "floats are refused: use an integer or a string")
    return CanonicalError("CAN-001", f"a {kind.__name__} has no canonical form: convert it first")


def _copy(value: object, left: list[int], *, frozen: bool) -> object:
    """A checked copy; each node and character is charged against ``left``.

    So no cycle, and no value that shares parts a million times, is unfolded.
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
    _check_nesting(depth)
    if kind is dict or kind is MappingProxyType:
        pairs: dict[Any, Any] = dict(value)
        _check_keys(pairs, left)
        _check(pairs.values(), pairs.items(), pairs, depth + 1, left, frozen=frozen)
        return MappingProxyType(pairs) if frozen else pairs
    if kind is list or kind is tuple:
        items = list(value)
        _check(items, enumerate(items), items, depth + 1, left, frozen=frozen)
        return tuple(items) if frozen else items
    raise _unknown(kind)


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


def _writer(settings: json.JSONEncoder) -> Callable[[Json, int], Iterable[str]]:
    made: Any = getattr(json.encoder, "c_make_encoder", None)
    if made is None:
        return lambda value, _: settings.iterencode(value)
    signs = (settings.key_separator, settings.item_separator)
    write = made(None, settings.default, _QUOTED, None, *signs, settings.sort_keys, False, False)
    return cast(Callable[[Json, int], Iterable[str]], write)


def _refuse_float(_: str) -> NoReturn:
    raise CanonicalError("CAN-002", "floats are refused: use an integer or a string")


def _refuse_constant(_: str) -> NoReturn:
    raise CanonicalError("CAN-003", "NaN and Infinity are not JSON")


_QUOTED = json.encoder.encode_basestring
_NAMES: dict[str, str] = {}
_NAMES_MAX = 4096
_WRITER = _writer(
    json.JSONEncoder(
        sort_keys=True, separators=(",", ":"), ensure_ascii=False, check_circular=False
    )
)
_READER = json.JSONDecoder(
    object_pairs_hook=_object,
    parse_float=_refuse_float,
    parse_int=_integer,
    parse_constant=_refuse_constant,
)
