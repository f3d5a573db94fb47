"""The grammar: a text is parsed into a tree of nodes, or refused with the place of the error.

Loosest first: ``or`` · ``and`` · ``not`` · ``== != < <= > >= in``, ``not in``, ``contains`` · then
``$name.field``, integers, strings (no escapes), ``true``, ``false``, lists of literals, ``( )``.
"""

import re
from typing import NamedTuple, cast

from nanovm_core.conditions.errors import (
    DEPTH_MAX,
    HIDDEN,
    INTEGER_MAX,
    NODES_MAX,
    TEXT_CHARS_MAX,
    syntax_error,
)

Value = bool | int | str | tuple[bool | int | str, ...]

COMPARISONS = ("==", "!=", "<", "<=", ">", ">=", "in", "not in", "contains")
VARIABLE, LITERAL = "variable", "literal"

_COMPARISON = 4
_PRECEDENCE = {"(": 0, "or": 1, "and": 2, "not": 3, **dict.fromkeys(COMPARISONS, _COMPARISON)}
_NAME = "[A-Za-z][A-Za-z0-9_]*"
_TOKEN = re.compile(
    rf"(?P<space>[ \t\r\n]+)|(?P<variable>\${_NAME}(?:\.{_NAME})*)"
    r"|(?P<integer>-?(?:0|[1-9][0-9]{0,15})(?![A-Za-z0-9_.]))"
    rf"|(?P<string>\"[^\"\\{HIDDEN}]*\"|'[^'\\{HIDDEN}]*')|(?P<symbol>[=!<>]=|[<>()\[\],])"
    r"|(?P<word>(?:not[ \t\r\n]+in|not|and|or|in|contains|true|false)(?![A-Za-z0-9_]))"
)
_UNREADABLE = {"[A-Za-z_]": 3, "[\"']": 4, "[-0-9]": 5, "[$.]": 6, "(?s:.)": 2}


class Node(NamedTuple):
    """A token or an expression; ``at`` is the position that errors report."""

    kind: str  # variable, literal, end; other words and symbols are their own kind
    start: int
    end: int
    at: int
    value: Value = ()  # of a literal
    path: tuple[str, ...] = ()  # of a variable
    children: tuple["Node", ...] = ()


def tree(text: str) -> Node:
    """Parse ``text``; chains of ``and`` or of ``or`` are one node.

    Raises:
        ConditionSyntaxError: CON-001 … CON-010.
    """
    if len(text) > TEXT_CHARS_MAX:
        raise syntax_error(1, text, TEXT_CHARS_MAX)
    return _Parser(text, _tokens(text)).root()


def upwards(root: Node) -> list[Node]:
    """Every node of the tree in post-order."""
    waiting, found = [root], []
    while waiting:
        node = waiting.pop()
        found.append(node)
        waiting += node.children
    return found[::-1]


def _tokens(text: str) -> list[Node]:
    tokens, at, nodes = [], 0, 0
    while at < len(text):
        if (match := _TOKEN.match(text, at)) is None:
            why = next(why for sign, why in _UNREADABLE.items() if re.match(sign, text[at]))
            raise syntax_error(why, text, at)
        token = _token(str(match.lastgroup), match[0], at)
        nodes += token.kind not in ("space", *"()[],")
        if nodes > NODES_MAX:
            raise syntax_error(1, text, at)
        if type(token.value) is int and abs(token.value) > INTEGER_MAX:
            raise syntax_error(5, text, at)
        tokens += [token] if token.kind != "space" else []
        at = match.end()
    return [*tokens, Node("end", at, at, at)]


def _token(group: str, found: str, at: int) -> Node:
    end, word = at + len(found), " ".join(found.split())
    if group == "variable":
        return Node(VARIABLE, at, end, at, path=tuple(found[1:].split(".")))
    if group == "integer":
        return Node(LITERAL, at, end, at, int(found))
    if group == "string":
        return Node(LITERAL, at, end, at, found[1:-1])
    if word in ("true", "false"):
        return Node(LITERAL, at, end, at, word == "true")
    return Node(group if group == "space" else word, at, end, at)


class _Parser:
    """Operator-precedence parsing with explicit stacks, without recursion."""

    def __init__(self, text: str, tokens: list[Node]) -> None:
        self._text = text
        self._tokens = iter(tokens)
        self._values: list[Node] = []
        self._operators: list[Node] = []

    def root(self) -> Node:
        while True:
            while (token := next(self._tokens)).kind in ("not", "("):
                self._require(token.kind == "(" or self._top() < _COMPARISON, 9, token)
                self._operators.append(token)
            self._require(len(self._operators) <= DEPTH_MAX, 1, token)
            self._values.append(self._list(token) if token.kind == "[" else token)
            self._require(self._values[-1].kind in (VARIABLE, LITERAL), 7, token)
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

    def _require(self, holds: bool, why: int, token: Node) -> None:
        if not holds:
            raise syntax_error(why, self._text, token.start)

    def _top(self) -> int:
        return _PRECEDENCE[self._operators[-1].kind] if self._operators else 0

    def _close(self, token: Node) -> None:
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
            self._values.append(
                operator._replace(start=left.start, end=right.end, children=(*lefts, right))
            )

    def _list(self, opening: Node) -> Node:
        items: list[Value] = []
        while (token := next(self._tokens)).kind != "]":
            if items:
                self._require(token.kind == ",", 10, token)
                token = next(self._tokens)
            items.append(token.value)
            self._require(token.kind == LITERAL and type(token.value) is type(items[0]), 10, token)
        found = cast(Value, tuple(items))
        return Node(LITERAL, opening.start, token.end, opening.start, found)
