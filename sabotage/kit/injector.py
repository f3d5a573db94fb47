"""The interface of all attacks: parameters, the attack itself, the assessment of its outcome."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from engine.models import Run
from nanovm_core.core.messages import Decision
from sabotage.kit.evidence import Evidence, RunState

TEXT_BYTES_MAX = 65_536  # four times what the kernel reads, so that its own limit is reached

Value = str | int


class InjectionError(Exception):
    """The attack cannot be made as it was asked for; the text says what to change."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Param:
    """What a visitor can change: free text, one of ``choices``, or a number in its bounds."""

    name: str
    label: str
    kind: str  # text, choice, int
    default: Value
    choices: tuple[str, ...] = ()
    low: int = 0
    high: int = 2**31 - 1

    def read(self, given: str) -> Value:
        """The value of a form's text.

        Raises:
            InjectionError: it is none; the text says what would be.
        """
        if self.kind == "int":
            return self._number(given)
        if self.kind == "choice" and given not in self.choices:
            raise InjectionError(f"{self.label} is one of: {', '.join(self.choices)}.")
        if len(given.encode("utf-8", "surrogateescape")) > TEXT_BYTES_MAX:
            raise InjectionError(f"{self.label} may have up to {TEXT_BYTES_MAX:,} bytes.")
        return given

    def _number(self, given: str) -> int:
        text = given.strip()
        known = text.isascii() and text.isdecimal() and len(text) <= 10
        if not known or not self.low <= int(text) <= self.high:
            raise InjectionError(f"{self.label} is a number from {self.low} to {self.high}.")
        return int(text)


def choice(name: str, label: str, choices: Iterable[str], default: str = "") -> Param:
    """A parameter with these choices; the first of them is its default, unless another is named."""
    among = tuple(choices)
    return Param(name=name, label=label, kind="choice", default=default or among[0], choices=among)


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """The run that is attacked, the parameter values, and the actor of the events."""

    run: Run
    actor: str
    values: Mapping[str, Value]
    before: RunState

    @property
    def run_id(self) -> str:
        return str(self.run.id)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fired:
    """What was done: the decisions that came back at once, and facts for the evidence.

    ``proposal_ref`` is where the vault keeps the free text that was fired, if it kept it.
    """

    decisions: tuple[Decision, ...] = ()
    facts: Mapping[str, object] = field(default_factory=dict)
    proposal_ref: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Assessment:
    """The outcome by the evidence: verdict, rule, deciding line, and the envelope that shows it.

    ``breaches`` are what this attack alone can see to have got out, a sentence each; what any
    attack sees is found for all of them.
    """

    verdict: str
    rule: str
    where: str
    event: int | None = None
    facts: Mapping[str, object] = field(default_factory=dict)
    breaches: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Injector:
    """One attack: the claim it is aimed at, how it is made, how its outcome is read."""

    name: str
    claim: str
    wants: str
    stopped_by: str
    params: tuple[Param, ...]
    inject: Callable[[Target], Fired]
    assess: Callable[[Evidence, Fired], Assessment]

    def read(self, given: Mapping[str, str]) -> dict[str, Value]:
        """Every parameter's value, its default where none is given.

        Raises:
            InjectionError: a value is wrong, or a name is unknown.
        """
        names = {param.name for param in self.params}
        for name in given:
            if name not in names:
                raise InjectionError(f"{self.name} has no parameter {name!r}.")
        return {
            param.name: param.read(str(given.get(param.name, param.default)))
            for param in self.params
        }
