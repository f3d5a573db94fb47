"""The condition language: a text is parsed once into closures, which are then evaluated.

``syntax`` has the grammar, ``operators`` evaluates, ``check`` finds the types, ``errors`` has
every error.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from nanovm_core.conditions import check as condition_check
from nanovm_core.conditions.errors import DEPTH_MAX as DEPTH_MAX
from nanovm_core.conditions.errors import NODES_MAX as NODES_MAX
from nanovm_core.conditions.errors import TEXT_CHARS_MAX as TEXT_CHARS_MAX
from nanovm_core.conditions.errors import ConditionEvaluationError as ConditionEvaluationError
from nanovm_core.conditions.errors import ConditionSyntaxError as ConditionSyntaxError
from nanovm_core.conditions.errors import ConditionTypeError as ConditionTypeError
from nanovm_core.conditions.operators import Compiled, Run, Truth, compiled, truth
from nanovm_core.conditions.operators import Context as Context
from nanovm_core.conditions.syntax import COMPARISONS, LITERAL, VARIABLE, tree, upwards
from nanovm_core.conditions.syntax import Value as Value

_MIRRORED = {"<": ">", ">": "<", "<=": ">=", ">=": "<=", "contains": "in"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One part with its value or its error; neither where it was not evaluated.

    A value is as public as the context.
    """

    start: int
    end: int
    text: str
    value: Value | None
    error: ConditionEvaluationError | None


class Comparison(NamedTuple):
    """A variable that is compared with a literal, and where."""

    variable: str
    sign: str
    literal: Value
    position: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """A parsed condition; ``variables`` are its dotted paths without ``$``, in order, each once.

    ``run`` is ``holds`` without the method around it.
    """

    text: str
    variables: tuple[str, ...]
    run: Truth = field(compare=False, repr=False)
    _whole: Compiled = field(compare=False, repr=False)

    def holds(self, context: Context) -> bool:
        """Whether the condition is true of ``context``, of which it reads items, no attributes.

        Values are str, bool, int (exactly), lists or tuples of one of them, and mappings.
        ``and`` and ``or`` evaluate no more parts than they need.

        Raises:
            ConditionEvaluationError: deny then, in allow and in deny rules alike.
        """
        return self.run(context)

    def check(self, types: Mapping[str, str]) -> None:
        """Raise ConditionTypeError, with position and caret, where no context gives an answer.

        ``types``: dotted path to ``integer``, ``string``, ``boolean``, ``integers``, ``strings``
        or ``booleans``; another path is unknown. What passes fails in a context of these types
        only where something is missing (CON-020).
        """
        condition_check.check(self._whole.node, self.text, types)

    def comparisons(self) -> Iterator[Comparison]:
        """Each comparison of a variable with a literal, as if the variable were on the left."""
        for node in upwards(self._whole.node):
            if node.kind in COMPARISONS:
                (left, right), sign = node.children, node.kind
                if left.kind == LITERAL:
                    left, right, sign = right, left, _MIRRORED.get(sign, sign)
                if (left.kind, right.kind) == (VARIABLE, LITERAL):
                    yield Comparison(".".join(left.path), sign, right.value, node.at)

    def explain(self, context: Context) -> tuple[Part, ...]:
        """The value or error of each part, by the closures of ``holds``; the whole first."""
        parts, waiting = [], [(self._whole, _answer(self.run, context))]
        while waiting:
            this, (value, error) = waiting.pop()
            start, end = this.node.start, this.node.end
            said = self.text[start:end]
            parts.append(Part(start=start, end=end, text=said, value=value, error=error))
            reached, below = value is not None or error is not None, []
            for part in this.below:
                answer = _answer(part.run, context) if reached else (None, None)
                reached = _goes_on(this.node.kind, answer[0])
                below.append((part, answer))
            waiting += reversed(below)
        return tuple(parts)


def parse(text: str) -> Condition:
    """Parse a condition; ConditionSyntaxError has position and caret."""
    whole = compiled(tree(text))
    paths = sorted((node.at, node.path) for node in upwards(whole.node) if node.kind == VARIABLE)
    names = tuple(dict.fromkeys(".".join(path) for _, path in paths))
    return Condition(text=text, variables=names, run=truth(whole), _whole=whole)


class ASTEngine:
    """The condition language under its public name: ``ASTEngine.parse(text).holds(context)``."""

    parse = staticmethod(parse)


def _answer(run: Run, context: Context) -> tuple[Value | None, ConditionEvaluationError | None]:
    try:
        return run(context), None
    except ConditionEvaluationError as error:
        return None, error


def _goes_on(kind: str, value: Value | None) -> bool:
    """Whether the part to the right of one with this value is evaluated."""
    if kind in ("and", "or"):
        return value is (kind == "and")
    return value is not None
