"""The program: TOML in, one immutable checked value out, named by its hash."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TypeVar

from nanovm_core.canonical import INTEGER_MAX, digest
from nanovm_core.capabilities import ArgSpec, Constraint, Grant, Tool
from nanovm_core.errors import ProgramError
from nanovm_core.policy import DENY_ALL, Policy
from nanovm_core.projection import HIDDEN, MODES
from nanovm_core.strict_toml import Table, document, names, only, positive, rows, subtable, text

COMPLETED = "completed"
SOURCE_BYTES_MAX = 262_144
STEPS_MAX = 64
SLOT_TYPES: Mapping[str, type] = MappingProxyType(
    {"ref": str, "string": str, "integer": int, "boolean": bool}
)
TABLES = ("slots", "tools", "grants", "steps")
KINDS = ("effect", "model", "pure")
AUTHORIZED = "authorized"
BOUND_TYPES: Mapping[str, type] = MappingProxyType(
    {
        "type": str,
        "min": int,
        "max": int,
        "length_max": int,
        "one_of": tuple,
        "prefix": str,
        "equals_slot": str,
    }
)
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Slot:
    """A named place in a run's snapshot: its type, and how the model sees it."""

    type: str
    model: str = HIDDEN


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One step. ``args`` maps its tool's arguments to slots, ``fills`` are the slots it sets."""

    name: str
    kind: str
    next: str
    tool: str = ""
    call: str = ""  # "authorized": the tool and arguments come from the judged proposal
    args: Mapping[str, str] = field(default_factory=dict)
    fills: tuple[str, ...] = ()
    drops: tuple[str, ...] = ()  # slots that end with this step
    accepts: tuple[str, ...] = ()  # tools that may be proposed here
    attempts_max: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """A compiled program; ``hash`` names the exact bytes it came from. Denies all by default."""

    name: str
    hash: str
    first: str
    steps: Mapping[str, Step]
    slots: Mapping[str, Slot]
    tools: Mapping[str, Tool]
    grants: Mapping[str, Grant]
    proposals_max: int
    warrant_ttl_ms: int
    policy: Policy = DENY_ALL

    def under(self, policy: Policy) -> "Program":
        """The same program, judged by this policy."""
        return replace(self, policy=policy)

    @property
    def model_step(self) -> Step:
        """The one step at which a model is asked."""
        return next(step for step in self.steps.values() if step.kind == "model")


def load_program(source: bytes) -> Program:
    """Compile and check a program file (TOML, UTF-8).

    Raises:
        ProgramError: PRG-001 not readable, PRG-002 inconsistent; the text names the place.
    """
    found = document(source, code="PRG-001", what="program", size_max=SOURCE_BYTES_MAX)
    if found.get("v") != "nanovm-program/1":
        raise ProgramError("PRG-001", 'expected v = "nanovm-program/1"')
    only(found, {"v", "name", "first", "limits", *TABLES}, "program")
    limits = subtable(found, "limits")
    only(limits, {"proposals_max", "warrant_ttl_ms"}, "limits")
    program = Program(
        name=text(found, "name", "program"),
        hash=digest(b"nanovm/program/v1\0", source),
        first=text(found, "first", "program"),
        steps=_indexed(((s.name, s) for s in map(_step, rows(found, "steps"))), "step"),
        slots=_mapped(subtable(found, "slots"), _slot),
        tools=_mapped(subtable(found, "tools"), _tool),
        grants=_indexed(((g.tool, g) for g in map(_grant, rows(found, "grants"))), "grant"),
        proposals_max=positive(limits, "proposals_max", "limits"),
        warrant_ttl_ms=positive(limits, "warrant_ttl_ms", "limits"),
    )
    for fault in faults(program):
        raise ProgramError("PRG-002", fault)
    return program


def faults(program: Program) -> Iterator[str]:
    """Everything in which a program contradicts itself, a sentence each."""
    yield from _path_faults(program)
    for step in program.steps.values():
        yield from _step_faults(program, step)
    for tool in program.tools.values():
        for name, slot in tool.critical.items():
            if name not in tool.args or slot not in program.slots:
                yield f"tool {tool.name}: critical {name} = {slot!r} names no argument or no slot"
    for grant in program.grants.values():
        if grant.tool not in program.tools:
            yield f"a grant names the unknown tool {grant.tool!r}"
        elif set(grant.where) - set(program.tools[grant.tool].args):
            yield f"the grant of {grant.tool} constrains an unknown argument"
        for constraint in grant.where.values():
            if constraint.equals_slot and constraint.equals_slot not in program.slots:
                yield f"the grant of {grant.tool} names the unknown slot {constraint.equals_slot!r}"


def _path_faults(program: Program) -> Iterator[str]:
    """Follow ``next`` from the first step: every step once, and the end in sight."""
    seen: list[str] = []
    at = program.first
    while at != COMPLETED:
        if at not in program.steps:
            yield f"step {seen[-1] if seen else 'first'!r} leads to the unknown step {at!r}"
            return
        if at in seen:
            yield f"the steps form a cycle at {at!r}"
            return
        seen.append(at)
        at = program.steps[at].next
    for name in program.steps:
        if name not in seen:
            yield f"step {name!r} is unreachable"
    if sum(step.kind == "model" for step in program.steps.values()) != 1:
        yield "a program has exactly one model step"


def _step_faults(program: Program, step: Step) -> Iterator[str]:
    if step.kind not in KINDS:
        yield f"step {step.name}: kind {step.kind!r} is none of {KINDS}"
    if step.call and (step.call != AUTHORIZED or not _is_authorized(program, step)):
        yield f"step {step.name}: call = {step.call!r} takes the call that a pure step authorized"
    if step.kind != "pure" and not step.call and step.tool not in program.tools:
        yield f"step {step.name}: unknown tool {step.tool!r}"
    for slot in (*step.args.values(), *step.fills, *step.drops):
        if slot not in program.slots:
            yield f"step {step.name}: unknown slot {slot!r}"
    for tool in step.accepts:
        if tool not in program.grants:
            yield f"step {step.name}: accepts {tool!r}, which is not granted"
    if step.kind == "pure" and program.steps.get(step.next, step).call != AUTHORIZED:
        yield f"step {step.name}: a pure step authorizes the call of the step after it"
    if step.kind == "model" and program.steps.get(step.next, step).kind != "pure":
        yield f"step {step.name}: what a model proposes goes to a pure step first"


def _is_authorized(program: Program, step: Step) -> bool:
    """Whether this is an effect that nothing but a pure step leads to."""
    before = [each.kind for each in program.steps.values() if each.next == step.name]
    return step.kind == "effect" and before == ["pure"] and program.first != step.name


def _step(row: Table) -> Step:
    name = text(row, "name", "a step")
    place = f"step {name}"
    only(row, set(Step.__slots__), place)
    return Step(
        name=name,
        kind=text(row, "kind", place),
        next=text(row, "next", place),
        tool=text(row, "tool", place, ""),
        call=text(row, "call", place, ""),
        args=_strings(row, "args", place),
        fills=names(row, "fills", place),
        drops=names(row, "drops", place),
        accepts=names(row, "accepts", place),
        attempts_max=positive(row, "attempts_max", place, 1),
    )


def _slot(name: str, row: Table) -> Slot:
    place = f"slot {name}"
    only(row, {"type", "model"}, place)
    slot = Slot(type=text(row, "type", place), model=text(row, "model", place, HIDDEN))
    if slot.type not in SLOT_TYPES or slot.model not in MODES:
        raise ProgramError(
            "PRG-001", f"{place}: type is one of {list(SLOT_TYPES)}, model one of {MODES}"
        )
    return slot


def _tool(name: str, row: Table) -> Tool:
    only(row, {"args", "critical"}, f"tool {name}")
    return Tool(
        name=name,
        args=_mapped(subtable(row, "args"), _arg),
        critical=_strings(row, "critical", f"tool {name}"),
    )


def _arg(name: str, row: Table) -> ArgSpec:
    spec = _bounded(ArgSpec, row, f"argument {name}")
    if spec.type not in SLOT_TYPES:
        raise ProgramError("PRG-001", f"argument {name}: type is one of {list(SLOT_TYPES)}")
    return spec


def _grant(row: Table) -> Grant:
    tool = text(row, "tool", "a grant")
    place = f"the grant of {tool}"
    only(row, {"tool", "where"}, place)

    def constraint(name: str, table: Table) -> Constraint:
        return _bounded(Constraint, table, f"{place}: {name}")

    return Grant(tool=tool, where=_mapped(subtable(row, "where"), constraint))


def _bounded(kind: Callable[..., T], row: Table, place: str) -> T:
    """Make a dataclass from a table whose keys are its fields; lists become tuples."""
    values = {key: tuple(v) if isinstance(v, list) else v for key, v in row.items()}
    for key, value in values.items():
        parts = value if isinstance(value, tuple) else (value,)
        if type(value) is not BOUND_TYPES.get(key) or not all(map(_is_scalar, parts)):
            raise ProgramError("PRG-001", f"{place}: {key} is unknown, or its value does not fit")
    try:
        return kind(**values)
    except TypeError as error:
        raise ProgramError("PRG-001", f"{place}: {error}") from error


def _is_scalar(value: object) -> bool:
    known = type(value) in (str, bool, int)
    return known and (not isinstance(value, int) or abs(value) <= INTEGER_MAX)


def _mapped(table: Table, make: Callable[[str, Table], T]) -> Mapping[str, T]:
    return MappingProxyType({name: make(name, subtable(table, name)) for name in table})


def _indexed(named: Iterable[tuple[str, T]], what: str) -> Mapping[str, T]:
    """Index by name; none twice, and not too many."""
    listed = list(named)
    for place, (name, _) in enumerate(listed):
        if name in [each for each, _ in listed[:place]]:
            raise ProgramError("PRG-002", f"{what} {name!r} is there twice")
    if len(listed) > STEPS_MAX:
        raise ProgramError("PRG-002", f"there are over {STEPS_MAX} of {what}")
    return MappingProxyType(dict(listed))


def _strings(row: Table, key: str, place: str) -> Mapping[str, str]:
    found = subtable(row, key)
    if not all(isinstance(value, str) for value in found.values()):
        raise ProgramError("PRG-001", f"{place}: {key} must map names to names")
    return MappingProxyType({name: str(value) for name, value in found.items()})
