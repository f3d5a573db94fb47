"""The program: an immutable, checked value, identified by the hash of its source."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain
from types import MappingProxyType

from nanovm_core.conditions import Condition
from nanovm_core.core.authority.advice import Advice
from nanovm_core.core.authority.budget import Budget, Limits
from nanovm_core.core.authority.capabilities import Grant, Tool, attenuate, origin_of
from nanovm_core.core.authority.origin import ADVISOR, DOCUMENT, PERSON, Origins, least
from nanovm_core.core.authority.policy import DENY_ALL, HARD, Fact, Policy, PolicyRule, Window
from nanovm_core.core.authority.scope import Scope, misread
from nanovm_core.core.gate import Gate, compile_gate
from nanovm_core.core.gate.decider import Decider, joined_hash
from nanovm_core.core.messages import NOTHING
from nanovm_core.core.projection import HIDDEN
from nanovm_core.errors import ProgramError

COMPLETED, FAILED = "completed", "failed"  # where ``next`` and ``on_error`` may end
EFFECT, MODEL, PURE, WAIT = "effect", "model", "pure", "wait"
KINDS = (EFFECT, MODEL, PURE, WAIT)
AUTHORIZED = "authorized"
SLOT_TYPES: Mapping[str, type] = MappingProxyType(
    {"ref": str, "string": str, "integer": int, "boolean": bool}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Slot:
    """A named value: its type, how the model sees it, and the least trusted origin it may have.

    Without an ``origin`` it may have any, and nothing that is demanded may rest on it.
    """

    type: str
    model: str = HIDDEN
    origin: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Branch:
    """Where a step leads while ``when`` holds; without one, always."""

    when: Condition | None = None
    to: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Retry:
    """Attempts of a failed step, and the delay between them."""

    attempts_max: int = 1
    backoff_ms: int = 0
    backoff_max_ms: int = 60_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One step. ``args`` maps its tool's arguments to slots; it sets the slots in ``fills``.

    What it fills is as trusted as its tool and its least trusted argument; ``endorses`` names the
    slots that it raises, and to which origin. ``next`` is tried in order; its last branch has no
    guard. ``then``: the only place it leads to, else empty.
    """

    name: str
    kind: str
    next: tuple[Branch, ...]
    on_error: str = FAILED
    tool: str = ""
    call: str = ""  # "authorized": tool and arguments are the judged proposal's
    args: Mapping[str, str] = field(default_factory=lambda: NOTHING)
    fills: tuple[str, ...] = ()
    endorses: Mapping[str, str] = field(default_factory=lambda: NOTHING)
    drops: tuple[str, ...] = ()  # slots that it ends
    accepts: tuple[str, ...] = ()  # tools that may be proposed here
    authorizes: str = ""  # the model step whose call this pure step judges
    timeout_ms: int = 0  # 0: it waits for no answer
    retry: Retry = field(default_factory=Retry)
    tokens_max: int = 0
    then: str = field(init=False, repr=False, compare=False, default="")

    def __post_init__(self) -> None:
        if len(self.next) == 1 and self.next[0].when is None:
            object.__setattr__(self, "then", self.next[0].to)


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """A compiled program; ``hash`` names the exact bytes it came from. Denies all by default.

    ``gate`` is compiled with every Program: no copy keeps another's.
    """

    name: str
    hash: str
    agent: str
    first: str
    steps: Mapping[str, Step]
    slots: Mapping[str, Slot]
    tools: Mapping[str, Tool]
    grants: Mapping[str, Grant]
    limits: Limits
    rules: tuple[PolicyRule, ...] = ()
    windows: tuple[Window, ...] = ()
    facts: tuple[Fact, ...] = ()
    budgets: tuple[Budget, ...] = ()
    policy_file: str = ""
    policy: Policy = DENY_ALL
    decider: Decider | None = None  # a foreign engine, asked beside the rules
    granted: frozenset[str] = frozenset()  # tools that need a grant
    gate: Gate = field(init=False, repr=False, compare=False)
    advice: Advice = field(init=False, repr=False, compare=False)
    has_agents: bool = field(init=False, repr=False, compare=False)  # a tool names its agent

    def __post_init__(self) -> None:
        object.__setattr__(self, "advice", advice_of(self.steps, self.tools, self.grants))
        gate = compile_gate(
            tools=self.tools,
            grants=self.grants,
            limits=self.limits,
            slots={name: slot.model for name, slot in self.slots.items()},
            rules=self.rules,
            windows=self.windows,
            facts=self.facts,
            budgets=self.budgets,
            policy=self.policy,
            decider=self.decider,
            advice=self.advice,
        )
        object.__setattr__(self, "gate", gate)
        object.__setattr__(self, "granted", self.granted | frozenset(self.grants))
        object.__setattr__(self, "has_agents", any(tool.agent for tool in self.tools.values()))

    def under(self, policy: Policy, decider: Decider | None = None) -> "Program":
        """The same program, judged by this policy beside its own rules.

        A foreign ``decider`` is asked where they allow; the policy's hash then covers its own.

        Raises:
            ProgramError: PRG-004 where a rule or fact of the policy does not fit this program,
                PRG-005 where the policy lifts what it may not, or reuses a name of the program,
                PRG-007 where a rule of the policy lets advice make a verdict more permissive.
        """
        for _, text in overreach(self, policy):
            raise ProgramError("PRG-005", f"policy {policy.name}: {text}")
        for found in misread(policy.rules, policy.windows, self.scope(policy)):
            raise ProgramError(found.code, f"policy {policy.name}: {found.what}: {found.text}")
        if decider is not None:
            policy = replace(policy, hash=joined_hash(policy.hash, decider))
        return replace(self, policy=policy, decider=decider)

    def attenuated(self, grants: Iterable[Grant]) -> "Program":
        """The same program with these grants only; a tool without one is refused in its own steps.

        Raises:
            RefusedError: CAP-030 where a grant is wider than the program's own.
        """
        return replace(self, grants=attenuate(self.grants, grants))

    def acting(self, tool: str, agent: str) -> str:
        """The agent that uses a tool in a run of ``agent``."""
        return (self.tools[tool].agent if tool in self.tools else "") or agent

    def actors(self, agent: str) -> frozenset[str]:
        """The agents that act in a run of ``agent``, which is one of them."""
        return frozenset({agent, *(self.acting(tool, agent) for tool in self.tools)})

    def declared(self, slots: Iterable[str]) -> Mapping[str, str]:
        """The least trusted origins that these slots may have, where the program declares them."""
        found = {name: self.slots[name].origin for name in slots if name in self.slots}
        return {name: origin for name, origin in found.items() if origin}

    def scope(self, policy: Policy) -> Scope:
        return Scope(
            {name: slot.type for name, slot in self.slots.items()},
            self.tools,
            tuple(self.grants),
            self.windows + policy.windows,
            self.facts + policy.facts,
            self.budgets + policy.budgets,
            tuple(name for name, step in self.steps.items() if step.kind == EFFECT),
            self.advice,
        )


def answer_origin(
    step: Step,
    tools: Mapping[str, Tool],
    grants: Mapping[str, Grant],
    origins: Origins,
    called: Iterable[str] = (),
) -> str:
    """The origin of what a step is answered: its tool's, or its least trusted argument's.

    ``called``: the tools that an ``authorized`` call may be of. A step that waits is answered by a
    person.
    """
    found = [origins.get(slot, DOCUMENT) for slot in step.args.values()]
    if step.kind == WAIT:
        found.append(PERSON)
    for name in called if step.call else (step.tool,) if step.tool else ():
        tool = tools.get(name)
        found.append(tool.origin if tool else ADVISOR)
        if tool and step.call:
            found += (origin_of(arg, tool, grants.get(name), origins) for arg in tool.args)
    return least(found)


def advice_of(
    steps: Mapping[str, Step], tools: Mapping[str, Tool], grants: Mapping[str, Grant]
) -> Advice:
    """What of a program rests on advice; linear in its steps."""
    asked = {name for name, tool in tools.items() if tool.origin == ADVISOR}
    if not asked:
        return Advice()
    advisors = [step for step in steps.values() if step.tool in asked]
    leads: dict[str, list[tuple[str, ...]]] = {}  # an advised slot → what is advised then
    into: dict[str, list[tuple[str, ...]]] = {}  # a step → what leads to it
    for step in steps.values():
        for slot in step.args.values():
            leads.setdefault(slot, []).append((*step.fills, *step.drops))
        for target in (*(branch.to for branch in step.next), step.on_error):
            into.setdefault(target, []).append((step.name,))
    slots = _reached([slot for step in advisors for slot in (*step.fills, *step.drops)], leads)
    takers = [step for step in steps.values() if not slots.isdisjoint(step.args.values())]
    calls = _reached([s.name for s in steps.values() if s.call or s.tool in grants], into)
    choosing = (s.name for s in (*advisors, *takers) if s.on_error in calls - {s.then})
    judged = (s for s in steps.values() if s.on_error in calls)
    return Advice(
        slots=slots,
        choosing=tuple(dict.fromkeys(choosing)),
        judged=next((s.name for s in judged if s.accepts or s.authorizes or s.call), ""),
    )


def _reached(first: Iterable[str], leads: Mapping[str, list[tuple[str, ...]]]) -> frozenset[str]:
    """These names and all that they lead to."""
    todo = [*first]
    found = {*todo}
    while todo:
        new = {*chain.from_iterable(leads.get(todo.pop(), ()))} - found
        found |= new
        todo += new
    return frozenset(found)


def overreach(program: Program, policy: Policy) -> list[tuple[tuple[str | int, ...], str]]:
    """Where a policy does what no operator may, with its place in the file.

    It may lift soft rules only, and reuse no name of a rule, window or fact: an approval by that
    name would lift the program's own rule.
    """
    levels = {rule.id: rule.level for rule in program.rules}
    found: list[tuple[tuple[str | int, ...], str]] = []
    for place, name in enumerate(policy.lifts):
        if name not in levels:
            found.append((("lifts", place), f"lifts {name!r}, which is no rule of the program"))
        elif levels[name] == HARD:
            text = f"lifts {name!r}, which is hard: only another program can do without it"
            found.append((("lifts", place), text))
    for place, rule in enumerate(policy.rules):
        if rule.id in levels:
            text = f"rule {rule.id!r} bears the id of a rule of the program: rename it"
            found.append((("rules", place, "id"), text))
    for part, own, theirs in (
        ("window", {each.name for each in program.windows}, [each.name for each in policy.windows]),
        ("fact", {each.name for each in program.facts}, [each.name for each in policy.facts]),
    ):
        for place, name in enumerate(theirs):
            if name in own:
                text = f"{part} {name!r} bears the name of a {part} of the program: rename it"
                found.append(((f"{part}s", place, "name"), text))
    return found
