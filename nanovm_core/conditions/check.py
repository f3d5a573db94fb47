"""Type check of a condition, before it is evaluated."""

from collections.abc import Mapping

from nanovm_core.conditions.errors import names_like, type_error
from nanovm_core.conditions.syntax import LITERAL, VARIABLE, Node, upwards

_ELEMENTS = {"booleans": "boolean", "integers": "integer", "strings": "string"}
_LISTS = {element: lists for lists, element in _ELEMENTS.items()}
_NAMES = {bool: "boolean", int: "integer", str: "string"}
_EMPTY = "empty list"  # fits every list
TYPES = frozenset({*_ELEMENTS, *_LISTS})  # the types of variables


def check(root: Node, text: str, types: Mapping[str, str]) -> None:
    """Raise ConditionTypeError at the first part from the left whose types do not fit.

    A condition that passes never raises CON-021 … CON-023 on a context of these types.
    """
    if unknown := {*types.values()} - TYPES:
        raise ValueError(f"no type of the condition language: {', '.join(sorted(unknown))}")
    found: list[str] = []
    for node in upwards(root):
        first = len(found) - len(node.children)
        found[first:] = [_type(node, found[first:], text, types)]
    if found != ["boolean"]:
        raise type_error(35, f"this is {found[0]}", text, root.start)


def _type(node: Node, below: list[str], text: str, types: Mapping[str, str]) -> str:
    if node.kind == VARIABLE:
        name = ".".join(node.path)
        if name not in types:
            raise type_error(30, names_like(name, [*types]), text, node.at)
        return types[name]
    if node.kind == LITERAL:
        return _of_literal(node)
    if node.kind in ("and", "or", "not"):
        for child, kind in zip(node.children, below, strict=True):
            if kind != "boolean":
                raise type_error(33, f"this is {kind}", text, child.start)
    else:
        _fit(node, below[0], below[1], text)
    return "boolean"


def _of_literal(node: Node) -> str:
    value = node.value
    if isinstance(value, tuple):
        return _LISTS[_NAMES[type(value[0])]] if value else _EMPTY
    return _NAMES[type(value)]


def _fit(node: Node, left: str, right: str, text: str) -> None:
    if node.kind in ("==", "!="):
        why, fits = 31, left == right or (_EMPTY in (left, right) and {left, right} <= _ALL_LISTS)
    elif node.kind in ("in", "not in"):
        why, fits = 34, _contains(right, left)
    elif node.kind == "contains":
        why, fits = 34, _contains(left, right)
    else:
        why, fits = 32, left == right == "integer"
    if not fits:
        raise type_error(why, f"this is {left} {node.kind} {right}", text, node.at)


def _contains(among: str, value: str) -> bool:
    if among == _EMPTY:
        return value in _LISTS
    return among == value == "string" or _ELEMENTS.get(among) == value


_ALL_LISTS = {*_ELEMENTS, _EMPTY}
