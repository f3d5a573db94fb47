"""Actors: the agent that uses each tool, and whose tools this process uses (NANOVM_AGENT)."""

from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

from django.conf import settings

from engine.application import Application, installed
from engine.store import programs


class Actors(NamedTuple):
    """The ``main`` agent, and the agent of each tool that an installed program names."""

    main: str
    tools: Mapping[str, str]


def agents() -> tuple[str, ...]:
    """Every agent of the installed programs, the main one first: each needs a process."""
    main, tools = _of(installed())
    return (main, *sorted({*tools.values()} - {main}))


def main() -> str:
    """The agent of the first application's runs: what no program gives to another is its too."""
    return _of(installed()).main


def of_tool(tool: str) -> str:
    """The agent whose process uses a tool."""
    actors = _of(installed())
    return actors.tools.get(tool, actors.main)


def is_own(tool: str) -> bool:
    """Whether this process uses a tool: one without an agent of its own uses them all."""
    own = settings.NANOVM_AGENT
    return not own or own == of_tool(tool)


def own_in_sql() -> str:
    """What follows a column of tools in SQL, so that this process's own are found."""
    own, (main, tools) = settings.NANOVM_AGENT, _of(installed())
    if not own:
        return "IS NOT NULL"
    named = sorted(tool for tool, agent in tools.items() if (agent == own) != (own == main))
    texts = ", ".join(f"'{each}'" for each in named) or "'-'"  # which no tool is called
    return f"{'NOT IN' if own == main else 'IN'} ({texts})"


@lru_cache(maxsize=16)
def _of(applications: tuple[Application, ...]) -> Actors:
    """Read from the programs once: a process keeps to what they were at its start."""
    found: dict[str, str] = {}
    of_runs = []
    for each in applications:
        program = programs.compiled(each.source())
        of_runs.append(program.agent)
        for tool in program.tools:
            if each.outside(program, tool):
                continue
            found.setdefault(tool, program.acting(tool, program.agent))
    return Actors(of_runs[0] if of_runs else "", found)
