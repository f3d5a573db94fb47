"""A second reading of the condition language, without its limits: its own walk."""

import ast
import re
from collections.abc import Iterator, Mapping, Sequence

MISSING, VALUE, TYPES, LOGIC = "CON-020", "CON-021", "CON-022", "CON-023"
INTEGER_MAX = 2**53 - 1
WORDS = ("and", "or", "not", "in", "contains")
TOKEN = re.compile(
    r"(?P<space>[ \t\r\n]+)|(?P<string>\"[^\"]*\"|'[^']*')|(?P<variable>\$[A-Za-z0-9_.]*)"
    r"|(?P<number>[-0-9][A-Za-z0-9_.]*)|(?P<word>[A-Za-z_][A-Za-z0-9_]*)"
    r"|(?P<sign>[=!<>]=|[<>()\[\],])"
)
PATH = re.compile(r"\$[A-Za-z][A-Za-z0-9_]*(\.[A-Za-z][A-Za-z0-9_]*)*")
ALLOWED = (ast.Name, ast.Load, ast.BoolOp, ast.boolop, ast.UnaryOp, ast.Not, ast.Compare, ast.cmpop)
Token = tuple[str, object]  # "sign", "variable" or "literal", and what it says


class Refused(Exception):
    """The text is not of the language."""


class NoAnswer(Exception):
    """The language has no answer; the first argument is the reason's code."""


def require(holds: object) -> None:
    if not holds:
        raise Refused


def outcome(text: str, context: Mapping[str, object]) -> bool | str:
    """True, False, the code of why there is no answer, or "refused"."""
    try:
        tree, operands = read(text)
        return boolean(evaluated(tree, operands, context))
    except Refused:
        return "refused"
    except NoAnswer as reason:
        return str(reason)


def tokens(text: str) -> Iterator[Token]:
    """The text cut into words; what nobody described is refused."""
    at = 0
    while at < len(text):
        found = TOKEN.match(text, at)
        if found is None:
            raise Refused
        kind, said, at = found.lastgroup, found[0], found.end()
        if kind == "variable":
            require(PATH.fullmatch(said))
            yield "variable", tuple(said[1:].split("."))
        elif kind == "string":
            require(not any(map(hidden, said)))
            yield "literal", said[1:-1]
        elif kind == "number":
            require(re.fullmatch("-?(0|[1-9][0-9]*)", said) and abs(int(said)) <= INTEGER_MAX)
            yield "literal", int(said)
        elif said in ("true", "false"):
            yield "literal", said == "true"
        elif kind != "space":
            require(kind == "sign" or said in WORDS)
            yield "sign", said


def hidden(sign: str) -> bool:
    """Escapes there are none; and what a person cannot see has no place in a string."""
    marks = ("\u2028", "\u2029", "\u202e", "\u200b", "\u200f", "\u2066", "\ufeff", "\u00ad")
    return sign == "\\" or ord(sign) < 32 or 127 <= ord(sign) < 160 or sign in marks


def read(text: str) -> tuple[ast.expr, Sequence[object]]:
    """The text in Python's grammar, and its operands; ``contains`` is written as ``is``."""
    words: list[str] = []
    operands: list[object] = []
    left = list(tokens(text))
    while left:
        kind, said = left.pop(0)
        if kind == "sign" and said != "[":
            words.append("is" if said == "contains" else str(said))
        else:
            words.append(f"x{len(operands)}")
            operands.append(items(left) if kind == "sign" else said)
    try:
        tree = ast.parse(" ".join(words), mode="eval").body
    except SyntaxError:
        raise Refused from None
    for node in ast.walk(tree):
        # "contains not" would be read as Python's "is not"
        require(isinstance(node, ALLOWED) and not isinstance(node, ast.IsNot))
        require(not isinstance(node, ast.Compare) or len(node.ops) == 1)  # they do not chain
    return tree, operands


def items(left: list[Token]) -> list[object]:
    """The literals of a list, all of one type, up to its end."""
    found: list[object] = []
    while left[:1] != [("sign", "]")]:
        require(not found or left[:1] == [("sign", ",")])
        del left[: bool(found)]
        kind, said = left.pop(0) if left else ("end", None)
        require(kind == "literal" and (not found or named(said) == named(found[0])))
        found.append(said)
    del left[0]
    return found


def evaluated(tree: ast.expr, operands: Sequence[object], context: Mapping[str, object]) -> object:
    """What the tree comes to, or NoAnswer."""

    def of(node: ast.expr) -> object:
        return evaluated(node, operands, context)

    match tree:
        case ast.Name(id=name):
            said = operands[int(name[1:])]
            return looked_up(said, context) if isinstance(said, tuple) else said
        case ast.UnaryOp(operand=inner):
            return not boolean(of(inner))
        case ast.BoolOp(op=ast.And(), values=values):
            return all(boolean(of(each)) for each in values)
        case ast.BoolOp(values=values):
            return any(boolean(of(each)) for each in values)
        case ast.Compare(left=left, ops=[sign], comparators=[right]):
            return compared(type(sign).__name__, of(left), of(right))
    raise AssertionError(tree)


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
    if sign == "Is":
        return inside(right, left)
    if sign in ("In", "NotIn"):
        return inside(left, right) is (sign == "In")
    if sign in ("Eq", "NotEq"):
        return equal(left, right) is (sign == "Eq")
    if named(left) != "integer" or named(right) != "integer":
        raise NoAnswer(TYPES)
    assert isinstance(left, int)
    assert isinstance(right, int)
    above = left - right if sign[0] == "G" else right - left
    return above > 0 or (sign[-1] == "E" and above == 0)


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
