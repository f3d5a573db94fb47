"""Evaluation: each node of a condition's tree is compiled to a closure that checks its types."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple, cast

from nanovm_core.conditions.errors import evaluation_error
from nanovm_core.conditions.syntax import LITERAL, VARIABLE, Node, Value, upwards

Context = Mapping[str, object]
Run = Callable[[Context], Value]
Truth = Callable[[Context], bool]

SCALARS = frozenset({bool, int, str})
_ONE_KIND = frozenset({frozenset[type](), *(frozenset({kind}) for kind in SCALARS)})


class Compiled(NamedTuple):
    """A node with the closure that answers it, and its parts."""

    node: Node
    run: Run
    below: tuple["Compiled", ...]


def compiled(root: Node) -> Compiled:
    """The tree compiled to closures, children before their parent."""
    done: list[Compiled] = []
    for node in upwards(root):
        first = len(done) - len(node.children)
        below = tuple(done[first:])
        done[first:] = [Compiled(node, _closure(node, below), below)]
    return done[0]


def _closure(node: Node, below: tuple[Compiled, ...]) -> Run:
    """A closure that evaluates ``node``, or raises ConditionEvaluationError."""
    if node.kind == VARIABLE:
        return _reading(node.path, node.at)
    if node.kind == LITERAL:
        value = node.value
        return lambda _: value
    if node.kind in _COMPARISONS:
        one, other = (part.run for part in below)
        compare, at = _COMPARISONS[node.kind], node.at
        return lambda context: compare(one(context), other(context), at)
    return _logic(node.kind, tuple(map(truth, below)))


def truth(part: Compiled) -> Truth:
    """The part's value where it is a boolean, else CON-023 at its place."""
    run, at = part.run, part.node.start
    if part.node.kind not in (VARIABLE, LITERAL):
        return cast(Truth, run)  # comparisons and logic answer booleans and nothing else

    def require_boolean(context: Context) -> bool:
        value = run(context)
        if type(value) is not bool:
            raise evaluation_error(23, at)
        return value

    return require_boolean


def _logic(kind: str, parts: tuple[Truth, ...]) -> Truth:
    """``not`` of one part; ``and`` or ``or`` of several, which stops at the first that decides."""
    one, other = parts[0], parts[-1]
    if kind == "not":
        return lambda context: not one(context)
    if len(parts) == 2:
        if kind == "and":
            return lambda context: one(context) and other(context)
        return lambda context: one(context) or other(context)
    decides = kind == "or"

    def chain(context: Context) -> bool:
        for part in parts:
            if part(context) is decides:
                return decides
        return not decides

    return chain


def _reading(path: tuple[str, ...], at: int) -> Run:
    name = "$" + ".".join(path)

    def read(context: Context) -> Value:
        found: Any = context
        for key in path:
            kind = type(found)
            if kind is not dict and kind is not MappingProxyType and not isinstance(found, Mapping):
                raise evaluation_error(20, at, name)
            if key not in found:  # asked first: reading may make what is missing
                raise evaluation_error(20, at, name)
            found = found[key]
        value: Value = found
        if type(value) in SCALARS:
            return value
        if type(found) is list or type(found) is tuple:
            items = tuple(found)
            if frozenset(map(type, items)) in _ONE_KIND:
                return items
        raise evaluation_error(21, at, name)

    return read


def _equal(left: Value, right: Value, at: int) -> bool:
    fits = type(left) is type(right)
    if fits and isinstance(left, tuple) and isinstance(right, tuple) and left and right:
        fits = type(left[0]) is type(right[0])
    if not fits:
        raise evaluation_error(22, at)
    return left == right


def _member(value: Value, among: Value, at: int) -> bool:
    if isinstance(among, tuple):
        if not isinstance(value, tuple) and (not among or type(value) is type(among[0])):
            return value in among
    elif isinstance(among, str) and isinstance(value, str):
        return value in among
    raise evaluation_error(22, at)


def _difference(left: Value, right: Value, at: int) -> int:
    if type(left) is not int or type(right) is not int:
        raise evaluation_error(22, at)
    return left - right


_COMPARISONS: dict[str, Callable[[Value, Value, int], bool]] = {
    "==": _equal,
    "!=": lambda left, right, at: not _equal(left, right, at),
    "<": lambda left, right, at: _difference(left, right, at) < 0,
    "<=": lambda left, right, at: _difference(left, right, at) <= 0,
    ">": lambda left, right, at: _difference(left, right, at) > 0,
    ">=": lambda left, right, at: _difference(left, right, at) >= 0,
    "in": _member,
    "not in": lambda left, right, at: not _member(left, right, at),
    "contains": lambda left, right, at: _member(right, left, at),
}
