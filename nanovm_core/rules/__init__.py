"""The catalogue of refusal codes: what each means, why it exists, and what trips it.

Nothing is decided here: who says no with a code is in ``gate``, ``fsm``, ``files`` and beside them.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from nanovm_core.rules import authority, evidence, language, runs

FIELDS = ("code", "title", "why", "example")


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """A stable code, the sentence people see, why the rule exists, and an example that trips it."""

    code: str
    title: str
    why: str
    example: str = ""


def catalogue(*rows: tuple[str, ...]) -> Mapping[str, Rule]:
    """Index rules (code, title, why and, in the kernel, example) by their codes.

    A code given twice is a mistake in the source.
    """
    rules = {row[0]: Rule(**dict(zip(FIELDS, row, strict=False))) for row in rows}
    if len(rules) != len(rows):
        raise ValueError("a rule code is given twice")
    return MappingProxyType(rules)


RULES = catalogue(*runs.ROWS, *authority.ROWS, *evidence.ROWS, *language.ROWS)
