"""Consistency of a program: names, types, grants, and the graph of its steps."""

from collections.abc import Iterator, Mapping

from nanovm_core.agents import AGENTS_MAX, NAME, RESERVED
from nanovm_core.core.authority.advice import Advice
from nanovm_core.core.authority.arguments import DECIMAL, KINDS, reader
from nanovm_core.core.authority.capabilities import ArgSpec, Constraint, Grant, Money, Source, Tool
from nanovm_core.core.authority.origin import ADVISOR, meets
from nanovm_core.core.authority.policy import PolicyRule, Window
from nanovm_core.core.authority.scope import Scope, misread, unfit
from nanovm_core.core.messages import NOTHING, Scalar
from nanovm_core.core.program import (
    COMPLETED,
    EFFECT,
    FAILED,
    MODEL,
    Slot,
    Step,
    advice_of,
    answer_origin,
)
from nanovm_core.errors import RefusedError
from nanovm_core.loading import advice, graph
from nanovm_core.loading.graph import Misfit
from nanovm_core.loading.places import Path
from nanovm_core.loading.schema import Parts

_DEFAULT = "give it a default"


def misfits(parts: Parts) -> Iterator[Misfit]:
    """Every inconsistency of a program; linear in the number of steps."""
    for tool in parts.tools.values():
        yield from _tool_misfits(tool, parts.slots)
        if (tool.money or tool.critical) and tool.name not in parts.grants:
            text = f"tool {tool.name}: what moves money, or has critical arguments, needs a grant"
            yield Misfit(("tools", tool.name), f"{text}: add it to [[grants]], or take it out")
    yield from _agent_misfits(parts)
    for grant in parts.grants.values():
        yield from _grant_misfits(grant, parts)
    granted = [parts.tools[name] for name in parts.grants if name in parts.tools]
    judged = frozenset(name for tool in granted for name in tool.args)
    callable_ = tuple({tool for step in parts.steps.values() for tool in step.accepts})
    origins = {name: slot.origin or ADVISOR for name, slot in parts.slots.items()}
    for step in parts.steps.values():
        yield from _step_misfits(step, parts, judged)
        yield from _origin_misfits(step, parts, origins, callable_)
    known = advice_of(parts.steps, parts.tools, parts.grants)
    yield from advice.misfits(parts, known)
    yield from _condition_misfits(parts, known)
    yield from graph.misfits(parts.first, parts.steps)


def _agent_misfits(parts: Parts) -> Iterator[Misfit]:
    """Names of agents that an envelope's actor or chain may not bear, and too many agents."""
    named: dict[str, Path] = {parts.acting: ("agent",) if parts.agent else ("name",)}
    for tool in parts.tools.values():
        if tool.agent:
            named.setdefault(tool.agent, ("tools", tool.name, "agent"))
    for name, path in named.items():
        if name in RESERVED:
            yield Misfit(path, f"{name!r} is no agent's name: others are called that in the log")
        elif path == ("name",) and not NAME.fullmatch(name):
            text = f'{name!r} is no agent\'s name, which must match {NAME.pattern}: add agent = "…"'
            yield Misfit(path, text)
    if len(named) > AGENTS_MAX:
        text = f"the program has {len(named)} agents, and a log has at most {AGENTS_MAX}"
        yield Misfit([*named.values()][AGENTS_MAX], text)


# --- tools and grants ------------------------------------------------------------------------


def _tool_misfits(tool: Tool, slots: Mapping[str, Slot]) -> Iterator[Misfit]:
    path, what = ("tools", tool.name), f"tool {tool.name}"
    for name, spec in tool.args.items():
        yield from _bound_misfits((*path, "args", name), f"{what}: {name}", spec, spec)
    for name, source in tool.critical.items():
        at, of = (*path, "critical", name), f"{what}: critical {name}"
        if name not in tool.args:
            yield Misfit(at, f"{of} is no argument of the tool; it has {_listed(tool.args)}")
            continue
        if tool.args[name].may_lack:
            yield Misfit(at, f"{of} may be left out, and then equals nothing: {_DEFAULT}")
        if source.slot:
            yield from _slot_misfits(at, of, source.slot, tool.args[name].type, slots)
            yield from _demand_misfits(at, of, source.slot, source.origin, slots)
        elif source.constant is not None and not _is_of(source.constant, tool.args[name].type):
            text = f"{of} is of type {tool.args[name].type}, but {source.constant!r} is not"
            yield Misfit(at, text)
    for place, name in enumerate(tool.free):
        if name not in tool.args or name in tool.critical:
            text = f"{what}: free names {name!r}, which is no argument, or is critical"
            yield Misfit((*path, "free", place), text)
    if tool.money is not None:
        yield from _money_misfits(tool, tool.money)


def _money_misfits(tool: Tool, money: Money) -> Iterator[Misfit]:
    for key, name, kinds in (
        ("amount", money.amount, ("integer", DECIMAL)),
        ("currency", money.currency, ("string",)),
    ):
        at, spec = ("tools", tool.name, "money", key), tool.args.get(name)
        text = f"tool {tool.name}: money: {key} = {name!r}"
        if name and (spec is None or spec.type not in kinds):
            yield Misfit(at, f"{text} is no {kinds[0]} argument of the tool")
        elif spec and spec.may_lack:
            yield Misfit(at, f"{text} may be left out: {_DEFAULT}")
        elif spec and spec.type == DECIMAL and spec.currency != money.currency_is:
            why = f"is in {spec.currency or 'no currency'}: let it and currency_is be one currency"
            yield Misfit(at, f"{text} {why}")


def _grant_misfits(grant: Grant, parts: Parts) -> Iterator[Misfit]:
    path, what = ("grants", grant.tool), f"the grant of {grant.tool}"
    tool = parts.tools.get(grant.tool)
    if tool is None:
        yield Misfit((*path, "tool"), f"{what}: there is no such tool; add [tools.{grant.tool!r}]")
        return
    for name, limit in grant.where.items():
        at = (*path, "where", name)
        if name not in tool.args:
            yield Misfit(at, f"{what}: {name!r} is no argument; it has {_listed(tool.args)}")
            continue
        source = tool.critical.get(name, Source())
        args = (f"{what}: {name}", limit, tool.args[name], source, parts.slots)
        yield from _limit_misfits(at, *args)
    for name in tool.args:
        limit = grant.where.get(name, Constraint())
        pinned = limit.one_of is not None or limit.equals_slot is not None
        if not (pinned or name in tool.critical or name in tool.free):
            yield Misfit(
                path,
                f"{what}: nothing says where {name!r} must come from: make it critical, pin it "
                "here with equals_slot or one_of, or list it in the tool's free",
            )


def _limit_misfits(
    at: Path, what: str, limit: Constraint, spec: ArgSpec, source: Source, slots: Mapping[str, Slot]
) -> Iterator[Misfit]:
    """A bound that no value of the argument's type meets."""
    for key, value, kinds in (
        ("min", limit.min, ("integer", DECIMAL)),
        ("max", limit.max, ("integer", DECIMAL)),
        ("prefix", limit.prefix, ("string",)),
    ):
        if value is not None and spec.item and spec.item not in kinds:
            yield Misfit((*at, key), f"{what} is of type {spec.item}; {key} bounds a {kinds[0]}")
    yield from _bound_misfits(at, what, limit, spec)
    if limit.equals_slot is not None:
        yield from _slot_misfits((*at, "equals_slot"), what, limit.equals_slot, spec.item, slots)
    for slot in (limit.equals_slot, source.slot):
        yield from _demand_misfits((*at, "origin"), what, slot or "", limit.origin or "", slots)
    if limit.origin and not limit.equals_slot and not source.slot and source.constant is None:
        text = f"{what}: only what must equal a slot has an origin: add equals_slot"
        yield Misfit((*at, "origin"), text)


def _bound_misfits(
    at: Path, what: str, bound: ArgSpec | Constraint, spec: ArgSpec
) -> Iterator[Misfit]:
    if isinstance(bound, ArgSpec) and bound.default is not None and bound.item:
        try:
            reader(str(at[-1]), bound, "")(bound.default, NOTHING)
        except RefusedError as error:
            yield Misfit((*at, "default"), f"{what}: default {bound.default!r}: {error.text}")
    for value in bound.one_of or ():
        if not _is_of(value, spec.item):
            yield Misfit((*at, "one_of"), f"{what} is of type {spec.item}, but {value!r} is not")
    if bound.min is not None and bound.max is not None and bound.min > bound.max:
        yield Misfit((*at, "min"), f"{what}: no integer is over {bound.min} and under {bound.max}")


def _slot_misfits(
    at: Path, what: str, slot: str, kind: str, slots: Mapping[str, Slot]
) -> Iterator[Misfit]:
    """A slot that is unknown, or of another type than the argument."""
    if slot not in slots:
        yield Misfit(at, f"{what} names the unknown slot {slot!r}; add it to [slots]")
    elif slots[slot].type and kind and slots[slot].type != ("integer" if kind == DECIMAL else kind):
        yield Misfit(at, f"{what} is of type {kind}, the slot {slot!r} of type {slots[slot].type}")


def _demand_misfits(
    at: Path, what: str, slot: str, demanded: str, slots: Mapping[str, Slot]
) -> Iterator[Misfit]:
    """A slot that may hold what is less trusted than demanded."""
    if slot in slots and demanded and not meets(slots[slot].origin, demanded):
        text = f"{what} demands the origin {demanded}, and the slot {slot!r} declares"
        found = slots[slot].origin or "none"
        yield Misfit(at, f"{text} {found}: say origin = {demanded!r} in [slots]")


def _is_of(value: Scalar, kind: str) -> bool:
    return not kind or type(value) is KINDS.get(kind)  # no constant is a list


def _listed(names: Mapping[str, object]) -> str:
    return ", ".join(names) or "none"


# --- one step --------------------------------------------------------------------------------


def _step_misfits(step: Step, parts: Parts, judged: frozenset[str]) -> Iterator[Misfit]:
    path, what = ("steps", step.name), f"step {step.name}"
    yield from _target_misfits(step, parts.steps)
    for key, names in (("fills", step.fills), ("drops", step.drops)):
        for place, slot in enumerate(names):
            yield from _slot_misfits((*path, key, place), f"{what} {key}:", slot, "", parts.slots)
    for place, name in enumerate(step.accepts):
        if name not in parts.grants:
            yield Misfit(
                (*path, "accepts", place), f"{what} accepts {name!r}, which is not granted"
            )
    if step.kind == MODEL and not step.accepts:
        yield Misfit(path, f"{what} accepts no tool, so nothing could be proposed: name one")
    if step.tokens_max > parts.limits.tokens_max:
        text = f"{what} needs {step.tokens_max} tokens, a run has {parts.limits.tokens_max}"
        yield Misfit((*path, "tokens_max"), text)
    if step.call or step.tool in parts.tools:
        tool = None if step.call else parts.tools[step.tool]
        yield from _args_misfits(step, tool, judged, parts.slots)
    elif step.tool:
        text = f"{what} uses the unknown tool {step.tool!r}; add [tools.{step.tool!r}]"
        yield Misfit((*path, "tool"), text)


def _origin_misfits(
    step: Step, parts: Parts, origins: Mapping[str, str], callable_: tuple[str, ...]
) -> Iterator[Misfit]:
    """A slot that the step fills with what is less trusted than the slot may hold.

    Every slot holds at least what it declares, so an answer made of slots does, too: by induction
    over a run's steps, nothing but an endorsement raises an origin.
    """
    path, what = ("steps", step.name), f"step {step.name}"
    found = answer_origin(step, parts.tools, parts.grants, origins, callable_)
    for place, slot in enumerate(step.fills):
        least = origins.get(slot, ADVISOR)
        if slot not in step.endorses and not meets(found, least):
            text = f"{what} fills {slot!r}, of the origin {least}, with what may be of the {found}"
            text += f": where it checks the value, say endorses = {{ {slot} = {least!r} }}"
            yield Misfit((*path, "fills", place), text)
    for slot, origin in step.endorses.items():
        at = (*path, "endorses", slot)
        if slot not in step.fills:
            yield Misfit(at, f"{what} endorses {slot!r}, which it does not fill")
        elif not meets(origin, origins.get(slot, ADVISOR)):
            yield Misfit(at, f"{what} endorses {slot!r} as {origin}, less than [slots] demands")


def _target_misfits(step: Step, steps: Mapping[str, Step]) -> Iterator[Misfit]:
    path, what = ("steps", step.name), f"step {step.name}"
    for place, branch in enumerate(step.next):
        if branch.to != COMPLETED and branch.to not in steps:
            text = f"{what} leads to {branch.to!r}: no such step; name one, or {COMPLETED!r}"
            yield Misfit((*path, "next", place, "to"), text)
    if step.on_error != FAILED and step.on_error not in steps:
        text = f"{what} fails to {step.on_error!r}: no such step; name one, or {FAILED!r}"
        yield Misfit((*path, "on_error"), text)


def _args_misfits(
    step: Step, tool: Tool | None, judged: frozenset[str], slots: Mapping[str, Slot]
) -> Iterator[Misfit]:
    """Arguments that the step's tool does not have, that are missing, or of another type.

    Without a tool of its own a step adds to the authorized call, and may replace none of that.
    """
    path, what = ("steps", step.name, "args"), f"step {step.name}"
    for name, slot in step.args.items():
        at = (*path, name)
        if tool and name not in tool.args:
            text = f"{what}: {name!r} is no argument of {tool.name}; it has {_listed(tool.args)}"
            yield Misfit(at, text)
            continue
        kind = tool.args[name].type if tool else ""
        yield from _slot_misfits(at, f"{what}: {name}", slot, kind, slots)
        if not tool and name in judged:
            text = f"{what}: args would replace {name!r} of the judged call: leave it out"
            yield Misfit(at, text)
    for name in tool.args if tool else ():
        if tool and name not in step.args and not tool.args[name].optional:
            text = f"{what}: {tool.name} needs {name!r}; say from which slot"
            yield Misfit(path, f"{text}: args = {{ {name} = … }}")


# --- conditions ------------------------------------------------------------------------------


def _condition_misfits(parts: Parts, known: Advice) -> Iterator[Misfit]:
    """Guards and rules that read unknown names, or values of another type.

    They are not checked while a declared type is itself at fault.
    """
    specs = [spec.item for tool in parts.tools.values() for spec in tool.args.values()]
    if not all((*specs, *(slot.type for slot in parts.slots.values()))):
        return
    slots = {name: slot.type for name, slot in parts.slots.items()}
    granted = tuple(parts.grants)
    effects = tuple(name for name, step in parts.steps.items() if step.kind == EFFECT)
    both = parts.windows, parts.facts
    scope = Scope(slots, parts.tools, granted, *both, parts.budgets, effects, known)
    types = scope.guard_types()
    for step in parts.steps.values():
        for place, branch in enumerate(step.next):
            found = unfit(branch.when, types) if branch.when else None
            if found:
                path = ("steps", step.name, "next", place, "when")
                text = f"step {step.name}: this guard does not fit: {found[0]}"
                yield Misfit(path, text, "PRG-004", found[1])
    yield from rule_misfits(parts.rules, parts.windows, scope)


def rule_misfits(
    rules: tuple[PolicyRule, ...], windows: tuple[Window, ...], scope: Scope
) -> Iterator[Misfit]:
    """Windows, rules and facts that do not fit their program, with their places in the file."""
    for what, text, key, code, inside in misread(rules, windows, scope):
        part, _, name = what.partition(" ")
        yield Misfit((f"{part}s", name, key), f"{what}: {text}", code, inside)
