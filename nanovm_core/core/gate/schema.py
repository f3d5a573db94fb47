"""The schema of a tool's call: what it may say, read argument by argument."""

from collections.abc import Callable, Iterator, Mapping
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
Argument = tuple[str, ArgSpec, Intake, Reader, str]  # compiled; last, its schema in words


class Schema(NamedTuple):
    """A tool's argument schema, compiled."""

    tool: Tool
    args: tuple[Argument, ...]

    def checks(self, case: Case, fill: Fill | None = None) -> Iterator[Finding]:
        """The arguments' names (CAP-003, CAP-004), then their values (CAP-005, CAP-006).

        ``fill`` resolves all placeholders first. An optional argument may be left out, or null.
        """
        found: dict[str, object] = {}
        yield self._names(case.given)
        for name, spec, take, _, _ in self.args:
            value = case.given.get(name)
            if value is None and (spec.optional or name not in case.given):
                if not spec.optional:
                    yield Finding("schema", name, None, "The argument is missing.")
                elif spec.default is None:
                    yield Finding("schema", name, True, LEFT_OUT)
                else:
                    found[name] = spec.default
                continue
            try:
                filled = value if fill is None else fill(name, value, case.facts.slots)
                if filled is not _LATER:
                    found[name] = take(value) if case.raw and filled is value else filled
            except RefusedError as error:
                yield failed("schema", name, error)
        yield from self._values(case, found)

    def form_checks(self, case: Case) -> Iterator[Finding]:
        """``checks`` with each whole-string ``{{slot}}`` left unread."""
        return self.checks(case, _left)

    def _values(self, case: Case, found: Mapping[str, object]) -> Iterator[Finding]:
        for name, _, _, read, text in self.args:
            if name not in found:
                continue
            try:
                case.args[name] = read(found[name], case.facts.slots)
            except RefusedError as error:
                yield failed("schema", name, error)
            else:
                yield Finding("schema", name, True, text)

    def _names(self, given: Mapping[str, object]) -> Finding:
        name = self.tool.name
        if not given.keys() <= self.tool.args.keys():
            text = f"The call has an argument that {name} does not have."
            return failed("schema", "", RefusedError("CAP-003", text))
        for needed, spec in self.tool.args.items():
            if needed not in given and not spec.optional:
                text = f"{name} needs the argument {needed!r}."
                return failed("schema", "", RefusedError("CAP-004", text))
        return Finding("schema", "", True, "All that it needs is present, and nothing else.")


def _left(_: str, value: object, __: Slots) -> object:
    return _LATER if isinstance(value, str) and PLACEHOLDER.fullmatch(value) else value


def schema_of(tool: Tool) -> Schema:
    """Compile a tool's argument schema (PRG-002: an argument of an unknown type)."""
    slots = {name: tool.critical.get(name, Source()).slot for name in tool.args}
    args = (
        (name, spec, intake(name, spec), reader(name, spec, slots[name]), described(spec))
        for name, spec in tool.args.items()
    )
    return Schema(tool, tuple(args))
