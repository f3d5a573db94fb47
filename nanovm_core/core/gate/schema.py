"""The schema of a tool's call: what it may say, read argument by argument."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from nanovm_core.core.authority.arguments import (
    PLACEHOLDER,
    ArgSpec,
    Intake,
    Reader,
    intake,
    reader,
)
from nanovm_core.core.authority.capabilities import Source, Tool
from nanovm_core.core.authority.origin import Origins
from nanovm_core.core.authority.policy import PolicyRule
from nanovm_core.core.gate.why import Finding, described, failed
from nanovm_core.core.messages import NOTHING, Args, Counts, Slots, Value
from nanovm_core.errors import RefusedError

_LATER = object()  # in place of a placeholder that is not filled here
LEFT_OUT = "It is optional, and left out."
_NAMED = Finding("schema", "", True, "All that it needs is present, and nothing else.")


class Facts(NamedTuple):
    """What a decision may know of a run and its context.

    ``origins``: of slots; one without is of a document. ``ledger``: what each shared account has
    left. ``counts``: of windows and rates, by name. ``used``: by the run, by unit.
    ``started_ms``: when the run's clock started, else 0.
    """

    slots: Slots = NOTHING
    ledger: Counts = NOTHING
    used: Counts = NOTHING
    counts: Counts = NOTHING
    agent: str = ""
    at_ms: int = 0
    approved: tuple[str, ...] = ()
    revoked: frozenset[str] = frozenset()
    refused: int = 0
    started_ms: int = 0
    origins: Origins = NOTHING


class Allowed(NamedTuple):
    """A call that nothing refuses: its final arguments, and the rest as in ``policy.Outcome``."""

    args: Args
    rules: tuple[str, ...]
    hold: PolicyRule | None = None
    fired: tuple[PolicyRule, ...] = ()


@dataclass(slots=True)
class Case:
    """One call under judgement; its checks fill the rest."""

    given: Mapping[str, object]
    facts: Facts
    raw: bool = False  # as in ``Call``
    args: dict[str, Value] = field(default_factory=dict)
    whole: bool = False  # its schema holds: ``args`` is complete
    allowed: Allowed | None = None
    fired: tuple[PolicyRule, ...] = ()


Fill = Callable[[str, object, Slots], object]
Argument = tuple[str, ArgSpec, Intake, Reader, Finding]  # compiled; last, that its value holds


class Schema(NamedTuple):
    """A tool's argument schema, compiled."""

    tool: Tool
    args: tuple[Argument, ...]

    def checks(self, case: Case, fill: Fill | None = None) -> list[Finding]:
        """The arguments' names (CAP-003, CAP-004), then their values (CAP-005, CAP-006).

        ``fill`` resolves all placeholders first. An optional argument may be left out, or null.
        """
        given, slots = case.given, case.facts.slots
        taken = [self._names(given)]
        found: list[Finding] = []
        for name, spec, take, read, passed in self.args:
            value, into = given.get(name), taken
            try:
                if value is not None or not (spec.optional or name not in given):
                    filled = value if fill is None else fill(name, value, slots)
                    if filled is _LATER:
                        continue
                    value = take(value) if case.raw and filled is value else filled
                elif spec.optional and spec.default is not None:
                    value = spec.default
                else:
                    text = LEFT_OUT if spec.optional else "The argument is missing."
                    taken.append(Finding("schema", name, spec.optional or None, text))
                    continue
                into = found
                case.args[name] = read(value, slots)
                found.append(passed)
            except RefusedError as error:
                into.append(failed("schema", name, error))
        return taken + found

    def _names(self, given: Mapping[str, object]) -> Finding:
        name = self.tool.name
        if not given.keys() <= self.tool.args.keys():
            text = f"The call has an argument that {name} does not have."
            return failed("schema", "", RefusedError("CAP-003", text))
        for needed, spec in self.tool.args.items():
            if needed not in given and not spec.optional:
                text = f"{name} needs the argument {needed!r}."
                return failed("schema", "", RefusedError("CAP-004", text))
        return _NAMED


def unread(_: str, value: object, __: Slots) -> object:
    """A ``fill`` that leaves a ``{{slot}}`` unread."""
    return _LATER if isinstance(value, str) and PLACEHOLDER.fullmatch(value) else value


def schema_of(tool: Tool) -> Schema:
    """Compile a tool's argument schema (PRG-002: an argument of an unknown type)."""
    args = []
    for name, spec in tool.args.items():
        slot = tool.critical.get(name, Source()).slot
        passed = Finding("schema", name, True, described(spec))
        args.append((name, spec, intake(name, spec), reader(name, spec, slot), passed))
    return Schema(tool, tuple(args))
