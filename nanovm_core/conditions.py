"""The condition language: text is parsed once into closures, which then hold or do not.

Loosest first: ``or`` · ``and`` · ``not`` · ``== != < <= > >= in``, ``not in``, ``contains`` · then
``$name.field``, integers, strings (no escapes), ``true``, ``false``, lists of literals, ``( )``.
A list's elements are of one type, in literals and in contexts; else it is an error.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, cast

from nanovm_core.canonical import INTEGER_MAX
from nanovm_core.errors import ConditionError

TEXT_CHARS_MAX = 4_096  # a guard that a person can still read
DEPTH_MAX = 32  # parentheses and operators open at one place; bounds the closures' stack too
NODES_MAX = 512  # values, list elements and operators; bounds the cost of one evaluation

Value = bool | int | str | tuple[bool | int | str, ...]
Context = Mapping[str, object]
_Run = Callable[[Context], Value]

# Control, line and direction marks: what a person reads must be what is compared.
_HIDDEN = "\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff"
_NAME = "[A-Za-z][A-Za-z0-9_]*"
_TOKEN = re.compile(
    rf"(?P<space>[ \t\r\n]+)|(?P<variable>\${_NAME}(?:\.{_NAME})*)"
    r"|(?P<integer>-?(?:0|[1-9][0-9]{0,15})(?![A-Za-z0-9_.]))"
    rf"|(?P<string>\"[^\"\\{_HIDDEN}]*\"|'[^'\\{_HIDDEN}]*')|(?P<symbol>[=!<>]=|[<>()\[\],])"
    r"|(?P<word>(?:not[ \t\r\n]+in|not|and|or|in|contains|true|false)(?![A-Za-z0-9_]))"
)
_UNREADABLE = {"[A-Za-z_]": 3, "[\"']": 4, "[-0-9]": 5, "[$.]": 6, "(?s:.)": 2}
_WHY = {
    1: f"over {TEXT_CHARS_MAX} characters, {NODES_MAX} parts or {DEPTH_MAX} levels: split it",
    2: "an unknown character: equality is ==, negation is not",
    3: "an unknown word: a variable begins with $, a string with a quote",
    4: "this string is not closed, or holds a backslash or an invisible character",
    5: f"not an integer within ±{INTEGER_MAX}: there are no floats and no arithmetic",
    6: "not a variable: its names are ASCII and begin with a letter, as in $name.field",
    7: "a value or an opening parenthesis is expected here",
    8: "an operator, a partner for each parenthesis, or the end is expected here",
    9: "comparisons do not chain, nor take a bare 'not': use 'and' or parentheses",
    10: "a list holds literals of one type, with ',' between and ']' at the end",
    20: "a variable or field is missing here",
    21: "neither a boolean, an integer, a string nor a list of one of these",
    22: "these types do not fit: equality takes two of one type, order two integers",
    23: "logic takes booleans only",
}


class ConditionSyntaxError(ConditionError):
    """The text is not a condition: mend it. Raised by ``parse`` alone."""


class ConditionEvaluationError(ConditionError):
    """No answer in this context, so whoever asked denies. Its text holds no value of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One part and its value (as public as the context), or error, or neither: not evaluated."""

    start: int
    end: int
    text: str
    value: Value | None
    error: ConditionEvaluationError | None


class _Node(NamedTuple):
    """A token, or what the parser made of several."""

    kind: str  # variable, literal, end; any other word or symbol is its own kind
    start: int
    end: int
    run: _Run
    children: tuple["_Node", ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """A parsed condition; ``variables`` are its dotted paths without ``$``, in order, each once."""

    text: str
    variables: tuple[str, ...]
    _root: _Node = field(compare=False, repr=False)

    def holds(self, context: Context) -> bool:
        """Whether the condition is true of ``context``; items are read, attributes never.

        It holds str, bool, int (exactly), lists or tuples of one of them, and mappings.
        What ``and`` or ``or`` did not reach is not checked.
        Raises ConditionEvaluationError: deny then, in allow and in deny rules alike.
        """
        return self._root.run(context) is True

    def explain(self, context: Context) -> tuple[Part, ...]:
        """What each part came to, by the closures of ``holds``: the whole, then from the left."""
        return tuple(_parts(self.text, self._root, context, reached=True))


def parse(text: str) -> Condition:
    """The condition that ``text`` says, or ConditionSyntaxError with position and caret."""
    if len(text) > TEXT_CHARS_MAX:
        raise _error(1, text, TEXT_CHARS_MAX)
    tokens = _tokens(text)
    names = [text[each.start + 1 : each.end] for each in tokens if each.kind == "variable"]
    root = _Parser(text, tokens).root()
    root = root._replace(run=_logic((root,), True, True))
    return Condition(text=text, variables=tuple(dict.fromkeys(names)), _root=root)


def _tokens(text: str) -> list[_Node]:
    tokens, at, nodes = [], 0, 0
    while at < len(text):
        if (match := _TOKEN.match(text, at)) is None:
            raise _error(next(w for p, w in _UNREADABLE.items() if re.match(p, text[at])), text, at)
        token = _token(str(match.lastgroup), match[0], at)
        nodes += token.kind not in ("space", *"()[],")
        value = token.run({}) if token.kind == "literal" else None
        if nodes > NODES_MAX or (type(value) is int and abs(value) > INTEGER_MAX):
            raise _error(1 if nodes > NODES_MAX else 5, text, at)
        tokens += [token] if token.kind != "space" else []
        at = match.end()
    return [*tokens, _token("end", "", at)]


def _token(group: str, found: str, at: int) -> _Node:
    end, word = at + len(found), " ".join(found.split())
    if group == "variable":
        return _Node(group, at, end, _reader(found, at))
    if group in ("integer", "string") or word in ("true", "false"):
        other = found[1:-1] if group == "string" else word == "true"
        value = int(found) if group == "integer" else other
        return _Node("literal", at, end, lambda _: value)
    return _Node(word if group in ("word", "symbol") else group, at, end, lambda _: False)


def _error(why: int, text: str, at: int) -> ConditionSyntaxError:
    start = max(text.rfind("\n", 0, at) + 1, at - 60)
    line = re.sub(f"[{_HIDDEN}]", " ", text[start : at + 20].split("\n")[0])
    shown = f"{_WHY[why]}\n  {line}\n  {'^':>{at - start + 1}}"
    return ConditionSyntaxError(f"CON-{why:03}", shown, at)


class _Parser:
    """Precedence parsing on two stacks of its own: no input can exhaust Python's."""

    def __init__(self, text: str, tokens: list[_Node]) -> None:
        self._text = text
        self._tokens = iter(tokens)
        self._values: list[_Node] = []
        self._operators: list[_Node] = []

    def root(self) -> _Node:
        while True:
            while (token := next(self._tokens)).kind in ("not", "("):
                self._require(token.kind == "(" or self._top() < _COMPARISON, 9, token)
                self._operators.append(token)
            self._require(len(self._operators) <= DEPTH_MAX, 1, token)
            self._values.append(self._list(token) if token.kind == "[" else token)
            self._require(self._values[-1].kind in ("variable", "literal"), 7, token)
            while (token := next(self._tokens)).kind == ")":
                self._close(token)
            if token.kind == "end":
                self._reduce(1)
                self._require(not self._operators, 8, token)
                return self._values[0]
            precedence = _PRECEDENCE.get(token.kind, 0)
            self._require(precedence > 0 and token.kind != "not", 8, token)
            self._require(not precedence == self._top() == _COMPARISON, 9, token)
            self._reduce(precedence)
            self._operators.append(token)

    def _require(self, holds: bool, why: int, token: _Node) -> None:
        if not holds:
            raise _error(why, self._text, token.start)

    def _top(self) -> int:
        return _PRECEDENCE[self._operators[-1].kind] if self._operators else 0

    def _close(self, token: _Node) -> None:
        self._reduce(1)
        self._require(bool(self._operators), 8, token)
        opening, value = self._operators.pop(), self._values.pop()
        self._values.append(value._replace(start=opening.start, end=token.end))

    def _reduce(self, precedence: int) -> None:
        while self._top() >= precedence:
            operator, right = self._operators.pop(), self._values.pop()
            left = operator if operator.kind == "not" else self._values.pop()
            merges = operator.kind in ("and", "or") and left.kind == operator.kind
            lefts = left.children if merges or left is operator else (left,)  # stays flat
            parts, kind = (*lefts, right), operator.kind
            run = _logic(parts, *_LOGIC[kind]) if kind in _LOGIC else _comparison(operator, *parts)
            self._values.append(_Node(kind, left.start, right.end, run, parts))

    def _list(self, opening: _Node) -> _Node:
        items: list[Value] = []
        while (token := next(self._tokens)).kind != "]":
            if items:
                self._require(token.kind == ",", 10, token)
                token = next(self._tokens)
            items.append(token.run({}) if token.kind == "literal" else ())
            self._require(type(items[-1]) is type(items[0]) is not tuple, 10, token)
        found = cast(Value, tuple(items))
        return _Node("literal", opening.start, token.end, lambda _: found)


def _parts(text: str, node: _Node, context: Context, *, reached: bool) -> list[Part]:
    start, end, value, error = node.start, node.end, None, None
    try:
        value = node.run(context) if reached else None
    except ConditionEvaluationError as caught:
        error = caught
    parts = [Part(start=start, end=end, text=text[start:end], value=value, error=error)]
    for child in node.children:
        below = _parts(text, child, context, reached=reached)
        value, stop = below[0].value, _LOGIC.get(node.kind, (None,))[0]
        reached = value is not None if stop is None else value is (not stop)
        parts += below
    return parts


def _check(holds: bool, why: int, at: int, name: str = "value") -> None:
    if not holds:
        raise ConditionEvaluationError(f"CON-{why:03}", f"{name} at {at}: {_WHY[why]}", at)


def _comparison(operator: _Node, left: _Node, right: _Node) -> _Run:
    compare, at, one, other = _COMPARISONS[operator.kind], operator.start, left.run, right.run
    return lambda context: compare(one(context), other(context), at)


def _logic(children: tuple[_Node, ...], stop: bool, result: bool) -> _Run:
    parts = tuple((child.run, child.start) for child in children)

    def run(context: Context) -> bool:
        for part, at in parts:
            value = part(context)
            _check(type(value) is bool, 23, at)
            if value is stop:
                return result
        return not result

    return run


def _reader(name: str, at: int) -> _Run:
    path = name[1:].split(".")

    def read(context: Context) -> Value:
        found: Any = context
        for key in path:
            _check(isinstance(found, Mapping) and key in found, 20, at, name)
            found = found[key]
        found = tuple(found) if type(found) is list else found
        kinds = {type(item) for item in (found if type(found) is tuple else (found,))}
        _check(kinds in (set(), {bool}, {int}, {str}), 21, at, name)
        return cast(Value, found)

    return read


def _equal(left: Value, right: Value, at: int) -> bool:
    _check(type(left) is type(right), 22, at)
    if isinstance(left, tuple) and isinstance(right, tuple) and left and right:
        _check(type(left[0]) is type(right[0]), 22, at)
    return left == right


def _member(value: Value, among: Value, at: int) -> bool:
    if isinstance(among, tuple):
        fits = type(value) is type(among[0]) if among else type(value) is not tuple
    else:
        fits = type(value) is str and type(among) is str
    _check(fits, 22, at)
    return value in cast("tuple[Value, ...]", among)


def _difference(left: Value, right: Value, at: int) -> int:
    _check(type(left) is int and type(right) is int, 22, at)
    return cast(int, left) - cast(int, right)


_LOGIC = {"or": (True, True), "and": (False, False), "not": (True, False)}
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
_COMPARISON = 4
_PRECEDENCE = {"(": 0, "or": 1, "and": 2, "not": 3, **dict.fromkeys(_COMPARISONS, _COMPARISON)}
