"""Reads config/agents.toml: the tree of processes that the supervisor runs."""

import re
from collections.abc import Collection, Mapping
from dataclasses import MISSING
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from nanovm_core.agents import NAME
from nanovm_core.loading.readers import Reader, integer, names, text
from nanovm_core.loading.strict_toml import Row, Sheet
from nanovm_core.supervision import (
    RESTARTS,
    RESTARTS_MAX,
    SIMPLE_ONE_FOR_ONE,
    STRATEGIES,
    TRANSIENT,
    Child,
    Spec,
    problems,
)

FILE: Final = Path(__file__).with_name("agents.toml")
CODE, VERSION = "AGT-005", "nanovm-agents/1"
SIZE_MAX = 65_536  # bytes
ROWS_MAX = 64  # supervisors, and children
MS_MAX = 3_600_000
FIRST: Final = ("queue", "stripe")  # workers and the web server are given their addresses
MADE: Final = re.compile(r"readers|reader-[0-9]+")  # by NANOVM_READERS


class _Read(NamedTuple):
    """What a supervisor (which has ``children``) or child says of itself, and where."""

    row: Row
    values: Mapping[str, Any]


_NEEDED = ("name", "children")
_COMMON: Mapping[str, Reader] = {"name": text(NAME), "restart": text(among=RESTARTS)}
_SUPERVISOR = {
    **_COMMON,
    "strategy": text(among=STRATEGIES),
    "max_restarts": integer(0, RESTARTS_MAX),
    "within_s": integer(1, 86_400),
    "children": names,
}
_CHILD = {**_COMMON, "shutdown_ms": integer(0, MS_MAX), "agent": text(NAME)}


class Tree(NamedTuple):
    """The root, the agent of each child, and the instances of each simple_one_for_one."""

    root: Spec
    agents: Mapping[str, str]
    instances: Mapping[str, Collection[str]] = MappingProxyType({})


def load(source: bytes, programs: Collection[str], agents: Collection[str]) -> Tree:
    """The tree that a file describes.

    Args:
        source: the file's bytes.
        programs: the children that bear no agent.
        agents: those of the installed programs; each needs a child that bears it.

    Raises:
        ProgramError: AGT-005, with line and column.
    """
    sheet = Sheet(source, code=CODE, what="tree of processes", size_max=SIZE_MAX)
    sheet.root.only({"v", "supervisors", "children"})
    text(among=(VERSION,))(sheet.root, "v", MISSING)
    found: dict[Any, _Read] = {}
    for key, fields in (("supervisors", _SUPERVISOR), ("children", _CHILD)):
        for row in sheet.root.rows(key, key, ROWS_MAX):
            _read(row, fields, found)
    sheet.close()
    if not found or "children" not in next(iter(found.values())).values:
        sheet.root.fault("supervisors", "there is no supervisor")
        sheet.close()
    used = [next(iter(found))]
    root = _supervisor(found[used[0]], found, used)
    for name, read in found.items():
        if name not in used:
            read.row.fault("name", f"no supervisor below {used[0]} names it")
        _check(name, read, programs, agents)
    borne = {name: values.get("agent", "") for name, (_, values) in found.items()}
    for agent in sorted({*agents} - {*borne.values()}):
        sheet.root.fault("children", f"no child bears the agent {agent!r}")
    _check_order(used, found, borne)
    sheet.close()
    for name, wrong in problems(root):
        found[name].row.fault("shutdown_ms", wrong)
    sheet.close()
    return Tree(root, borne)


def _check(name: str, read: _Read, programs: Collection[str], agents: Collection[str]) -> None:
    """Note a fault where a child can be no process, or its name will be another's."""
    agent = read.values.get("agent")
    if MADE.fullmatch(name):
        read.row.fault("name", f"{name!r} is a name that NANOVM_READERS makes: rename it")
    if agent and name in programs:
        read.row.fault("agent", "it is a program, which bears no agent")
        return
    known = agent in agents if agent else name in programs or "children" in read.values
    if not known:
        read.row.fault("agent", "it is no program, and bears no agent of an installed one")


def _check_order(order: list[str], found: Mapping[str, _Read], borne: Mapping[str, str]) -> None:
    """Note a fault where what others need is started after one of them."""
    needing = next((name for name in order if borne[name] or name == "web"), order[-1])
    for name in order[order.index(needing) + 1 :]:
        if name in FIRST:
            found[name].row.fault("name", f"it must stand left of {needing!r}, which needs it")


def _read(row: Row, fields: Mapping[str, Reader], found: dict[Any, _Read]) -> None:
    row.only(fields)
    values = {
        key: read(row, key, MISSING)
        for key, read in fields.items()
        if key in row.table or key in _NEEDED
    }
    if values["name"] in found:
        row.fault("name", f"another one is called {values['name']!r}: rename one")
    found[values["name"]] = _Read(row, values)


def _supervisor(read: _Read, found: Mapping[str, _Read], used: list[str]) -> Spec:
    """A supervisor with all below it; ``used``: what was named already."""
    below: list[Child | Spec] = []
    for place, name in enumerate(read.values["children"]):
        path, child = (*read.row.path, "children", place), found.get(name)
        if child is None or name in used:
            why = "it is in the tree already" if child else "there is none"
            read.row.sheet.fault(path, f"{read.row.what}: {name!r} cannot be its child: {why}")
            continue
        used.append(name)
        if "children" in child.values:
            below.append(_supervisor(child, found, used))
        else:
            own = {key: value for key, value in child.values.items() if key in Child._fields}
            below.append(Child(**own))
    return Spec(**{**read.values, "children": tuple(below)})


def fitted(tree: Tree, outside: Collection[str], name: str, count: int) -> Tree:
    """The tree without the children that others run, and with ``count`` instances of a child.

    They are below a supervisor of their own, which stays down once it gave up, as theirs does.
    """
    many = f"{name}s" if count > 1 and name in tree.agents else ""

    def fit(spec: Spec) -> Spec:
        below: list[Child | Spec] = []
        for each in spec.children:
            if isinstance(each, Spec):
                below.append(fit(each))
            elif many and each.name == name:
                limits = (spec.max_restarts, spec.within_s)
                below.append(Spec(many, SIMPLE_ONE_FOR_ONE, *limits, (each,), TRANSIENT))
            elif each.name not in outside:
                below.append(each)
        return spec._replace(children=tuple(below))

    instances = tuple(f"{name}-{n}" for n in range(1, count + 1)) if many else ()
    agents = {**tree.agents, **dict.fromkeys(instances, tree.agents.get(name, ""))}
    return Tree(fit(tree.root), agents, {many: instances} if many else {})
