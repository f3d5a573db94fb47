"""The errors of the condition language: each code with its reason, and the limits."""

import re

from nanovm_core.errors import ConditionError

TEXT_CHARS_MAX = 4_096  # a guard that a person can still read
DEPTH_MAX = 32  # parentheses and operators open at one place; bounds the closures' stack too
INTEGER_MAX = 2**53 - 1  # as in canonical JSON: what every JSON reader holds exactly
NODES_MAX = 512  # values, list elements and operators; bounds the cost of one evaluation
_NAMES_SHOWN_MAX = 6  # of the variables that there are, where one is not
_LINE_CHARS_MAX = (60, 40)  # of the condition's own line, before the fault and from there

# Control characters, line breaks, direction marks and characters without width: a person must
# read the same text that is compared.
HIDDEN = (
    "\x00-\x1f\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f"
    "\ud800-\udfff\ufeff\ufff9-\ufffb\U000e0000-\U000e007f"
)

# 1 … 19: parse. 20 … 29: holds. 30 … 39: check.
WHY = {
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
    30: "no variable has this name here",
    31: "equality takes two values of one type",
    32: "order takes two integers",
    33: "logic takes booleans only: compare this with something",
    34: "membership takes an element and a list of its type, or two strings",
    35: "a condition comes to true or false: compare this with something",
}


class ConditionSyntaxError(ConditionError):
    """The text is not a condition. Raised by ``parse`` alone."""


class ConditionTypeError(ConditionError):
    """The condition has no answer in any context of these types. Raised by ``check`` alone."""


class ConditionEvaluationError(ConditionError):
    """The condition has no answer in this context: deny. Its text holds no value of it."""


def syntax_error(why: int, text: str, at: int) -> ConditionSyntaxError:
    """The error at ``at``, with its line and a caret below the place."""
    return ConditionSyntaxError(_code(why), f"{WHY[why]}\n{_pointed(text, at)}", at)


def type_error(why: int, found: str, text: str, at: int) -> ConditionTypeError:
    """The same for a text that parses; ``found`` names the types that were found."""
    return ConditionTypeError(_code(why), f"{WHY[why]}; {found}\n{_pointed(text, at)}", at)


def evaluation_error(why: int, at: int, name: str = "value") -> ConditionEvaluationError:
    """The error at ``at``, with the variable's name and never its value."""
    return ConditionEvaluationError(_code(why), f"{name} at {at}: {WHY[why]}", at)


def names_like(name: str, known: list[str]) -> str:
    """The known variables, those with the same first name before the others."""
    first = name.split(".")[0]
    near = sorted(known, key=lambda each: (each.split(".")[0] != first, each))
    shown = ", ".join(f"${each}" for each in near[:_NAMES_SHOWN_MAX])
    more = ", …" if len(near) > _NAMES_SHOWN_MAX else ""
    return f"there is {shown}{more}" if near else "there are no variables"


def _code(why: int) -> str:
    return f"CON-{why:03}"


def _pointed(text: str, at: int) -> str:
    before, after = _LINE_CHARS_MAX
    start = max(text.rfind("\n", 0, at) + 1, at - before)
    line = re.sub(f"[{HIDDEN}]", " ", text[start : at + after].split("\n")[0])
    return f"  {line}\n  {'^':>{at - start + 1}}"
