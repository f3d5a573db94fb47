"""The program: TOML in, one immutable checked value out, named by its hash."""

import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TypeVar

from nanovm_core.canonical import digest
from nanovm_core.capabilities import ArgSpec, Constraint, Grant, Tool
from nanovm_core.errors import ProgramError
from nanovm_core.policy import DENY_ALL, Policy
from nanovm_core.projection import HIDDEN, MODES

COMPLETED = "completed"
SOURCE_BYTES_MAX = 262_144
STEPS_MAX = 64
SLOT_TYPES: Mapping[str, type] = MappingProxyType(
    {"ref": str, "string": str, "integer": int, "boolean": bool}
)
KINDS = ("effect", "model", "pure")
Table = Mapping[str, object]
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
    document = _document(source)
    limits = _table(document, "limits")
    program = Program(
        name=_text(document, "name", "program"),
        hash=digest(b"nanovm/program/v1\0", source),
        first=_text(document, "first", "program"),
        steps=_named(_rows(document, "steps"), _step),
        slots=_mapped(_table(document, "slots"), _slot),
        tools=_mapped(_table(document, "tools"), _tool),
        grants=MappingProxyType(
            {grant.tool: grant for grant in map(_grant, _rows(document, "grants"))}
        ),
        proposals_max=_positive(limits, "proposals_max"),
        warrant_ttl_ms=_positive(limits, "warrant_ttl_ms"),
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
    if step.kind != "pure" and not step.call and step.tool not in program.tools:
        yield f"step {step.name}: unknown tool {step.tool!r}"
    for slot in (*step.args.values(), *step.fills, *step.drops):
        if slot not in program.slots:
            yield f"step {step.name}: unknown slot {slot!r}"
    for tool in step.accepts:
        if tool not in program.grants:
            yield f"step {step.name}: accepts {tool!r}, which is not granted"
    if step.kind == "pure" and program.steps.get(step.next, step).call != "authorized":
        yield f"step {step.name}: a pure step authorizes the call of the step after it"
    if step.kind == "model" and program.steps.get(step.next, step).kind != "pure":
        yield f"step {step.name}: what a model proposes goes to a pure step first"


def _document(source: bytes) -> Table:
    if len(source) > SOURCE_BYTES_MAX:
        raise ProgramError("PRG-001", f"the program is over {SOURCE_BYTES_MAX} bytes")
    try:
        document = tomllib.loads(source.decode())
    except (UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
        raise ProgramError("PRG-001", f"the program is not TOML: {error}") from error
    if document.get("v") != "nanovm-program/1":
        raise ProgramError("PRG-001", 'expected v = "nanovm-program/1"')
    _only(
        document, {"v", "name", "first", "limits", "slots", "tools", "grants", "steps"}, "program"
    )
    return document


def _step(row: Table) -> Step:
    name = _text(row, "name", "a step")
    _only(row, set(Step.__slots__), f"step {name}")
    attempts = row.get("attempts_max", 1)
    if type(attempts) is not int or attempts < 1:
        raise ProgramError("PRG-001", f"step {name}: attempts_max must be an integer of 1 or more")
    return Step(
        name=name,
        kind=_text(row, "kind", name),
        next=_text(row, "next", name),
        tool=str(row.get("tool", "")),
        call=str(row.get("call", "")),
        args=_strings(row.get("args", {}), f"step {name}: args"),
        fills=_names(row, "fills"),
        drops=_names(row, "drops"),
        accepts=_names(row, "accepts"),
        attempts_max=attempts,
    )


def _slot(name: str, row: Table) -> Slot:
    _only(row, {"type", "model"}, f"slot {name}")
    slot = Slot(type=_text(row, "type", name), model=str(row.get("model", HIDDEN)))
    if slot.type not in SLOT_TYPES or slot.model not in MODES:
        raise ProgramError(
            "PRG-001", f"slot {name}: type is one of {list(SLOT_TYPES)}, model one of {MODES}"
        )
    return slot


def _tool(name: str, row: Table) -> Tool:
    _only(row, {"args", "critical"}, f"tool {name}")
    return Tool(
        name=name,
        args=_mapped(_table(row, "args"), _arg),
        critical=_strings(row.get("critical", {}), f"tool {name}: critical"),
    )


def _arg(name: str, row: Table) -> ArgSpec:
    spec = _built(ArgSpec, row, f"argument {name}")
    if spec.type not in SLOT_TYPES:
        raise ProgramError("PRG-001", f"argument {name}: type is one of {list(SLOT_TYPES)}")
    return spec


def _grant(row: Table) -> Grant:
    _only(row, {"tool", "where"}, "a grant")
    where = _mapped(_table(row, "where"), lambda name, table: _built(Constraint, table, name))
    return Grant(tool=_text(row, "tool", "a grant"), where=where)


def _built(kind: Callable[..., T], row: Table, place: str) -> T:
    """Make a dataclass from a table whose keys are its fields; lists become tuples."""
    values = {key: tuple(v) if isinstance(v, list) else v for key, v in row.items()}
    try:
        return kind(**values)
    except TypeError as error:
        raise ProgramError("PRG-001", f"{place}: {error}") from error


def _mapped(table: Table, make: Callable[[str, Table], T]) -> Mapping[str, T]:
    for name, row in table.items():
        if not isinstance(row, Mapping):
            raise ProgramError("PRG-001", f"{name} must be a table")
    return MappingProxyType({name: make(name, row) for name, row in table.items()})  # type: ignore[arg-type]


def _named(rows: list[Table], make: Callable[[Table], Step]) -> Mapping[str, Step]:
    steps = [make(row) for row in rows]
    if len({step.name for step in steps}) != len(steps) or len(steps) > STEPS_MAX:
        raise ProgramError("PRG-002", f"step names must differ, and {STEPS_MAX} steps are the most")
    return MappingProxyType({step.name: step for step in steps})


def _rows(document: Table, key: str) -> list[Table]:
    rows = document.get(key, [])
    if not isinstance(rows, list) or not all(isinstance(row, Mapping) for row in rows):
        raise ProgramError("PRG-001", f"{key} must be a list of tables: [[{key}]]")
    return rows


def _table(document: Table, key: str) -> Table:
    table = document.get(key, {})
    if not isinstance(table, Mapping):
        raise ProgramError("PRG-001", f"{key} must be a table")
    return table


def _text(row: Table, key: str, place: str) -> str:
    value = row.get(key)
    if not isinstance(value, str) or not value:
        raise ProgramError("PRG-001", f"{place}: {key} must be a text")
    return value


def _positive(row: Table, key: str) -> int:
    value = row.get(key)
    if type(value) is not int or value < 1:
        raise ProgramError("PRG-001", f"limits: {key} must be an integer of 1 or more")
    return value


def _names(row: Table, key: str) -> tuple[str, ...]:
    value = row.get(key, [])
    if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
        raise ProgramError("PRG-001", f"{key} must be a list of names")
    return tuple(value)


def _strings(value: object, place: str) -> Mapping[str, str]:
    if not isinstance(value, Mapping) or not all(isinstance(v, str) for v in value.values()):
        raise ProgramError("PRG-001", f"{place} must map names to names")
    return MappingProxyType(dict(value))


def _only(row: Table, known: set[str], place: str) -> None:
    unknown = sorted(set(row) - known)
    if unknown:
        raise ProgramError("PRG-001", f"{place}: unknown keys {unknown}")
