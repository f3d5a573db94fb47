"""Form-encoded parameters with nested names, as Stripe's clients send them, become values."""

import re
from urllib.parse import parse_qsl

from stripe_sandbox.errors import ApiError, invalid_request

Value = str | list["Value"] | dict[str, "Value"]
Form = dict[str, Value]

FIELDS_MAX = 1000
"""Fields in one request; enough for 50 metadata keys and far from a flood."""
DEPTH_MAX = 8
"""Brackets behind one name."""

_NAME = re.compile(r"([^\[\]]+)((?:\[[^\[\]]*\])*)")
_BRACKET = re.compile(r"\[([^\[\]]*)\]")


def parse_form(text: str) -> Form:
    """Return the parameters: ``a[b]=`` as objects, ``a[]=`` as arrays, the rest as text.

    ``a[0]=`` stays an object with the name ``0``, because metadata may be called
    that; a reader that expects an array reads it as one. A name given twice counts the
    second time. Raises ApiError for what no client of Stripe's can have meant.
    """
    try:
        pairs = parse_qsl(text, keep_blank_values=True, errors="strict", max_num_fields=FIELDS_MAX)
    except UnicodeDecodeError:
        raise invalid_request("Invalid request: the parameters are not UTF-8.") from None
    except ValueError:
        raise invalid_request(f"Invalid request: more than {FIELDS_MAX} parameters.") from None
    form: Form = {}
    for name, value in pairs:
        _place(form, _path(name), value, name)
    return form


def _path(name: str) -> list[str]:
    match = _NAME.fullmatch(name)
    if match is None:
        raise invalid_request(f"Invalid parameter name: {name}", param=name)
    path = [match[1], *_BRACKET.findall(match[2])]
    if len(path) > DEPTH_MAX:
        raise invalid_request(f"Invalid parameter name: nested too deeply: {name}", param=name)
    return path


def _place(form: Form, path: list[str], value: str, name: str) -> None:
    here: dict[str, Value] = form
    key, rest = path[0], path[1:]
    while rest and rest[0] != "":
        inner = here.setdefault(key, {})
        if not isinstance(inner, dict):
            raise _mixed(name)
        here, key, rest = inner, rest[0], rest[1:]
    if not rest:
        if isinstance(here.get(key), dict | list):
            raise _mixed(name)
        here[key] = value
        return
    items = here.setdefault(key, [])
    if not isinstance(items, list):
        raise _mixed(name)
    _append(items, rest[1:], value, name)


def _append(items: list[Value], path: list[str], value: str, name: str) -> None:
    if not path:
        items.append(value)
        return
    last = items[-1] if items else None
    if not isinstance(last, dict) or path[0] in last:
        last = {}
        items.append(last)
    _place(last, path, value, name)


def _mixed(name: str) -> ApiError:
    return invalid_request(
        f"Invalid parameter: {name} is given both as a value and as an object or array.",
        param=name,
    )
