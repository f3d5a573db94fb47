"""Shortcuts: the usual comparisons as one closure each, in a third of the plain one's time.

A shortcut answers where it has seen every type that it needs, in exact dicts and read-only
views of mappings; else, errors first of all, it asks the plain closure that it stands for.
Each walks its path by itself: one call more would cost as much as the comparison.
"""

from types import MappingProxyType

from nanovm_core.conditions.operators import SCALARS, Compiled, Context, Run, plain
from nanovm_core.conditions.syntax import COMPARISONS, LITERAL, VARIABLE, Node, Value

_Path = tuple[str, ...]

# The same comparison with its sides changed.
_MIRRORED = {"==": "==", "!=": "!=", "<": ">", ">": "<", "<=": ">=", ">=": "<=", "contains": "in"}


def fused(node: Node, below: tuple[Compiled, ...]) -> Run:
    """The quickest closure that answers and fails as ``plain(node, below)`` does."""
    slow = plain(node, below)
    if node.kind == VARIABLE:
        return _reading(node.path, slow)
    if node.kind not in COMPARISONS:
        return slow
    sign, (left, right) = node.kind, below
    if left.node.kind == VARIABLE == right.node.kind:
        return _with_variable(sign, left.node.path, right.node.path, slow)
    if left.node.kind == LITERAL:
        sign, left, right = _MIRRORED.get(sign, ""), right, left
    if left.node.kind == VARIABLE and right.node.kind == LITERAL:
        return _with_literal(sign, left, right.node.value, slow)
    return slow


def _with_literal(sign: str, variable: Compiled, literal: Value, slow: Run) -> Run:
    if sign in ("<", "<=", ">", ">=") and type(literal) is int:
        most = literal if sign in ("<=", ">") else literal - 1  # integers: < n is <= n - 1
        return _at_most(variable, most, sign in ("<", "<="), slow)
    if sign in ("==", "!=") and not isinstance(literal, tuple):
        return _among(variable, type(literal), frozenset({literal}), sign == "==", slow)
    if sign in ("in", "not in") and isinstance(literal, tuple) and literal:
        return _among(variable, type(literal[0]), frozenset(literal), sign == "in", slow)
    return slow


def _with_variable(sign: str, path: _Path, other: _Path, slow: Run) -> Run:
    if len(path) != 2 or len(other) != 2:
        return slow
    if sign in ("==", "!="):
        return _equal(path, other, sign == "==", slow)
    if sign in ("<=", ">"):
        return _no_more(path, other, sign == "<=", slow)
    if sign in (">=", "<"):
        return _no_more(other, path, sign == ">=", slow)
    return slow


def _reading(path: _Path, slow: Run) -> Run:
    first, last = path[0], path[-1]

    def one(context: Context) -> Value:
        try:
            if type(context) is dict:
                value: Value = context[last]
                if type(value) in SCALARS:
                    return value
        except KeyError:
            pass
        return slow(context)

    def two(context: Context) -> Value:
        try:
            if type(context) is dict:
                inner = context[first]
                if type(inner) is dict or (type(inner) is MappingProxyType and last in inner):
                    value: Value = inner[last]
                    if type(value) in SCALARS:
                        return value
        except KeyError:
            pass
        return slow(context)

    return {1: one, 2: two}.get(len(path), slow)


def _at_most(variable: Compiled, most: int, wanted: bool, slow: Run) -> Run:
    path, read = variable.node.path, variable.run
    first, last = path[0], path[-1]

    def one(context: Context) -> Value:
        try:
            if type(context) is dict and type(value := context[last]) is int:
                return (value <= most) is wanted
        except KeyError:
            pass
        return slow(context)

    def two(context: Context) -> Value:
        try:
            if type(context) is dict:
                inner = context[first]
                if type(inner) is dict or (type(inner) is MappingProxyType and last in inner):
                    value = inner[last]
                    if type(value) is int:
                        return (value <= most) is wanted
        except KeyError:
            pass
        return slow(context)

    def many(context: Context) -> Value:
        value = read(context)
        return (value <= most) is wanted if type(value) is int else slow(context)

    return {1: one, 2: two}.get(len(path), many)


def _among(
    variable: Compiled,
    kind: type,
    literals: frozenset[bool | int | str],
    wanted: bool,
    slow: Run,
) -> Run:
    path, read = variable.node.path, variable.run
    first, last = path[0], path[-1]

    def one(context: Context) -> Value:
        try:
            if type(context) is dict and type(value := context[last]) is kind:
                return (value in literals) is wanted
        except KeyError:
            pass
        return slow(context)

    def two(context: Context) -> Value:
        try:
            if type(context) is dict:
                inner = context[first]
                if type(inner) is dict or (type(inner) is MappingProxyType and last in inner):
                    value = inner[last]
                    if type(value) is kind:
                        return (value in literals) is wanted
        except KeyError:
            pass
        return slow(context)

    def many(context: Context) -> Value:
        value = read(context)
        return (value in literals) is wanted if type(value) is kind else slow(context)

    return {1: one, 2: two}.get(len(path), many)


def _equal(path: _Path, other: _Path, wanted: bool, slow: Run) -> Run:
    (first, last), (second, end) = path, other

    def two(context: Context) -> Value:
        try:
            if type(context) is dict:
                one, two = context[first], context[second]
                if (type(one) is dict or (type(one) is MappingProxyType and last in one)) and (
                    type(two) is dict or (type(two) is MappingProxyType and end in two)
                ):
                    left, right = one[last], two[end]
                    if type(left) is type(right) and type(left) in SCALARS:
                        return (left == right) is wanted
        except KeyError:
            pass
        return slow(context)

    return two


def _no_more(path: _Path, other: _Path, wanted: bool, slow: Run) -> Run:
    (first, last), (second, end) = path, other

    def two(context: Context) -> Value:
        try:
            if type(context) is dict:
                one, two = context[first], context[second]
                if (type(one) is dict or (type(one) is MappingProxyType and last in one)) and (
                    type(two) is dict or (type(two) is MappingProxyType and end in two)
                ):
                    left, right = one[last], two[end]
                    if type(left) is int is type(right):
                        return (left <= right) is wanted
        except KeyError:
            pass
        return slow(context)

    return two
