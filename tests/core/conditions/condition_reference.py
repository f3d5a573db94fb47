"""A second reading of the condition language: its own tokens, its own descent, its own walk.

Written from the language's description in words, plainly and slowly, and from nothing else. It
knows no limits of length, depth or count: give it texts far below them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from string import ascii_letters, digits

MISSING, VALUE, TYPES, LOGIC = "CON-020", "CON-021", "CON-022", "CON-023"
INTEGER_MAX = 2**53 - 1
NAME = ascii_letters + digits + "_"
WORDS = ("and", "or", "not", "in", "contains", "true", "false")
SIGNS = ("==", "!=", "<=", ">=", "<", ">", "(", ")", "[", "]", ",")
SPACE = " \t\r\n"


class Refused(Exception):
    """The text is not of the language."""


class NoAnswer(Exception):
    """The language has no answer; the first argument is the reason's code."""


@dataclass(frozen=True)
class Literal:
    value: object


@dataclass(frozen=True)
class Variable:
    path: tuple[str, ...]


@dataclass(frozen=True)
class Not:
    inner: "Tree"


@dataclass(frozen=True)
class Binary:
    sign: str
    left: "Tree"
    right: "Tree"


Tree = Literal | Variable | Not | Binary
Token = tuple[str, object]  # "sign", "word", "variable" or "literal", and what it says


def outcome(text: str, context: Mapping[str, object]) -> bool | str:
    """True, False, the code of why there is no answer, or "refused"."""
    try:
        return boolean(reference(read(text), context))
    except Refused:
        return "refused"
    except NoAnswer as reason:
        return str(reason)


def tokens(text: str) -> list[Token]:
    """The text cut into words; what nobody described is refused."""
    found: list[Token] = []
    at = 0
    while at < len(text):
        sign = next((sign for sign in SIGNS if text.startswith(sign, at)), "")
        if text[at] in SPACE:
            at += 1
        elif text[at] in "\"'":
            end = text.find(text[at], at + 1)
            if end < 0 or any(hidden(sign) for sign in text[at:end]):
                raise Refused
            found.append(("literal", text[at + 1 : end]))
            at = end + 1
        elif text[at] == "$":
            end = run(text, at + 1, NAME + ".")
            names = text[at + 1 : end].split(".")
            if not all(name and name[0] in ascii_letters for name in names):
                raise Refused
            found.append(("variable", tuple(names)))
            at = end
        elif sign:
            found.append(("sign", sign))
            at += len(sign)
        else:
            end = run(text, at + 1, NAME + ("." if text[at] in digits + "-" else ""))
            found.append(word(text[at:end]))
            at = end
    return found


def run(text: str, at: int, letters: str) -> int:
    while at < len(text) and text[at] in letters:
        at += 1
    return at


def hidden(sign: str) -> bool:
    """Escapes there are none; and what a person cannot see has no place in a string."""
    marks = ("\u2028", "\u2029", "\u202e", "\u200b", "\u200f", "\u2066", "\ufeff", "\u00ad")
    return sign == "\\" or ord(sign) < 32 or 127 <= ord(sign) < 160 or sign in marks


def word(said: str) -> Token:
    number = said.removeprefix("-")
    if number and all(sign in digits for sign in number):
        plain = number == "0" or number[0] != "0"
        if not plain or int(number) > INTEGER_MAX:
            raise Refused
        return "literal", int(said)
    if said not in WORDS:
        raise Refused
    return ("literal", said == "true") if said in ("true", "false") else ("word", said)


def read(text: str) -> Tree:
    descent = Descent(tokens(text))
    tree = descent.either()
    if descent.left:
        raise Refused
    return tree


class Descent:
    """One function for each strength: or, and, not, a comparison, an operand."""

    def __init__(self, left: Sequence[Token]) -> None:
        self.left = list(left)

    def next(self, *wanted: Token) -> bool:
        """Take these tokens if they are what comes next."""
        if self.left[: len(wanted)] == list(wanted):
            del self.left[: len(wanted)]
            return True
        return False

    def either(self) -> Tree:
        tree = self.both()
        while self.next(("word", "or")):
            tree = Binary("or", tree, self.both())
        return tree

    def both(self) -> Tree:
        tree = self.negation()
        while self.next(("word", "and")):
            tree = Binary("and", tree, self.negation())
        return tree

    def negation(self) -> Tree:
        return Not(self.negation()) if self.next(("word", "not")) else self.comparison()

    def comparison(self) -> Tree:
        tree = self.operand()
        if sign := self.sign():
            tree = Binary(sign, tree, self.operand())
            if self.sign():
                raise Refused  # comparisons do not chain
        return tree

    def sign(self) -> str:
        if self.next(("word", "not"), ("word", "in")):
            return "not in"
        for kind, sign in [("word", "in"), ("word", "contains"), *(("sign", s) for s in SIGNS[:6])]:
            if self.next((kind, sign)):
                return sign
        return ""

    def operand(self) -> Tree:
        if self.next(("sign", "(")):
            tree = self.either()
            if not self.next(("sign", ")")):
                raise Refused
            return tree
        if self.next(("sign", "[")):
            return Literal(self.items())
        kind, said = self.left.pop(0) if self.left else ("end", None)
        if isinstance(said, tuple):
            return Variable(said)
        if kind != "literal":
            raise Refused
        return Literal(said)

    def items(self) -> list[object]:
        items: list[object] = []
        while not self.next(("sign", "]")):
            if items and not self.next(("sign", ",")):
                raise Refused
            kind, said = self.left.pop(0) if self.left else ("end", None)
            if kind != "literal" or (items and named(said) != named(items[0])):
                raise Refused
            items.append(said)
        return items


def reference(tree: Tree, context: Mapping[str, object]) -> object:
    """What the tree comes to, or NoAnswer."""
    match tree:
        case Literal(value):
            return value
        case Variable(path):
            return looked_up(path, context)
        case Not(inner):
            return not boolean(reference(inner, context))
        case Binary("and", left, right):
            return boolean(reference(left, context)) and boolean(reference(right, context))
        case Binary("or", left, right):
            return boolean(reference(left, context)) or boolean(reference(right, context))
        case Binary(sign, left, right):
            return compared(sign, reference(left, context), reference(right, context))


def looked_up(path: Sequence[str], context: Mapping[str, object]) -> object:
    found: object = context
    for name in path:
        if not isinstance(found, Mapping) or name not in found:
            raise NoAnswer(MISSING)
        found = found[name]
    if isinstance(found, list | tuple):
        names = {named(item) for item in found}
        if len(names) > 1 or names - {"boolean", "integer", "string"}:
            raise NoAnswer(VALUE)
        return list(found)
    if named(found) == "foreign":
        raise NoAnswer(VALUE)
    return found


def named(value: object) -> str:
    for kind, name in ((bool, "boolean"), (int, "integer"), (str, "string"), (list, "list")):
        if isinstance(value, kind):
            return name
    return "foreign"


def boolean(value: object) -> bool:
    if value is True or value is False:
        return value is True
    raise NoAnswer(LOGIC)


def compared(sign: str, left: object, right: object) -> bool:
    if sign == "contains":
        return compared("in", right, left)
    if sign in ("!=", "not in"):
        return not compared({"!=": "==", "not in": "in"}[sign], left, right)
    if sign == "==":
        return equal(left, right)
    if sign == "in":
        return inside(left, right)
    if named(left) != "integer" or named(right) != "integer":
        raise NoAnswer(TYPES)
    assert isinstance(left, int)
    assert isinstance(right, int)
    above = left - right if sign[0] == ">" else right - left
    return above > 0 or (len(sign) == 2 and above == 0)


def equal(left: object, right: object) -> bool:
    if named(left) != named(right):
        raise NoAnswer(TYPES)
    if isinstance(left, list) and isinstance(right, list):
        if left and right and named(left[0]) != named(right[0]):
            raise NoAnswer(TYPES)
        return len(left) == len(right) and all(map(equal, left, right))
    return left == right


def inside(value: object, among: object) -> bool:
    if isinstance(among, str) and isinstance(value, str):
        return among.find(value) >= 0
    if isinstance(among, list) and not isinstance(value, list):
        return any([equal(value, item) for item in among])  # noqa: C419  # all are looked at
    raise NoAnswer(TYPES)
