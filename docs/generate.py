"""Writes the pages of documentation that are drawn from the code: ``make docs``."""

import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from docs import api
from nanovm_core import agents
from nanovm_core.core import lifecycle as life

FOLDER = Path(__file__).parent
MEANING: Mapping[str, str] = {
    "start_clock": "the run's clock starts",
    "stop_clock": "the run's clock stops: no limit and no deadline runs on",
    "go_on_with_clock": "the clock goes on where it stopped, deadlines move by the pause",
    "drop_warrant": "the warrant of what is owed is dropped; it is made anew or not at all",
    "revoke_authority": "nothing is owed or awaited any more, and no warrant is left",
    "release_budgets": "what was reserved is given back, unless nobody knows whether it was spent",
}

BOUND = """# What an approval is bound to

A person's yes counts for one call of one run, on the terms that the page showed: the policy and the
program in force, the supplier's entry in the register, the stored document. The form carries the
hold's id and these terms; the runtime compares them with what it reads under the log's lock. It
counts until the call is made, and for 7 days at most (`approval_ttl_ms` in `[limits]`). The
envelope of the approval seals the terms as `agreed`.

Terms are read again for each intent that follows the yes. In every case below nothing is paid by
the approval. `tests/crash/test_approvals.py` plays each one and kills the process at each commit.
"""


def lifecycle() -> str:
    """The table of states as a chart and as tables, in Markdown."""
    return "\n".join(_lifecycle()) + "\n"


def _lifecycle() -> Iterator[str]:
    yield "# Lifecycle of a run\n"
    yield "Drawn from the one table in `nanovm_core/core/lifecycle.py`. A pair of state and event"
    yield "that is not here is refused (FSM-002). A terminal state absorbs all but an erasure.\n"
    yield "```mermaid"
    yield "stateDiagram-v2"
    for group in dict.fromkeys(life.GROUP.values()):
        yield f"    state {group} {{"
        yield from (
            f"        {_name(state)}" for state in life.STATES if life.GROUP[state] == group
        )
        yield "    }"
    yield f"    [*] --> {_name(life.NEGOTIATION)}"
    arrows: dict[tuple[str, str], list[str]] = {}
    for (state, event), targets in life.TABLE.items():
        for target in targets:
            arrows.setdefault((state, target), []).append(event)
    for (state, target), events in arrows.items():
        yield f"    {_name(state)} --> {_name(target)}: {', '.join(events)}"
    yield from (f"    {_name(state)} --> [*]" for state in life.STATES if state in life.TERMINAL)
    yield "```\n"
    yield "## What entering and leaving a group does\n"
    yield "| group | on leaving | on entering |"
    yield "| --- | --- | --- |"
    for group in dict.fromkeys(life.GROUP.values()):
        yield f"| {group} | {_meant(life.EXIT, group)} | {_meant(life.ENTRY, group)} |"
    yield "\n## The table\n"
    yield from _rows(life.TABLE)
    yield "\n## Agents\n"
    yield "An agent has states of its own (`nanovm_core/agents.py`); another pair is refused"
    yield "(AGT-001). What suspends an agent, and what that stops: [suspension.md](suspension.md)."
    yield "`manage.py lifecycle run --scxml` and `lifecycle agent --scxml` write both"
    yield "tables for tools that read SCXML.\n"
    yield from _rows(agents.TABLE)


def _rows(table: Mapping[tuple[str, str], tuple[str, ...]]) -> Iterator[str]:
    yield "| from | event | may lead to |"
    yield "| --- | --- | --- |"
    for (state, event), targets in table.items():
        yield f"| {state} | {event} | {', '.join(targets)} |"


def _name(state: str) -> str:
    return state.partition(".")[2]


def _meant(effects: Mapping[str, tuple[str, ...]], group: str) -> str:
    return "; ".join(MEANING[name] for name in effects.get(group, ())) or "–"


def approval_cases() -> Sequence[Mapping[str, str]]:
    """What an approval does not do, in the order of the page: name, when, code, becomes."""
    found = tomllib.loads((FOLDER / "approvals.toml").read_text("utf-8"))
    cases: Sequence[Mapping[str, str]] = found["cases"]
    return cases


def approvals() -> str:
    """What an approval is bound to, in Markdown."""
    rows = (f"| {each['when']} | {each['becomes']} | {each['code']} |" for each in approval_cases())
    return "\n".join(
        (BOUND, "| an approval | what happens | code |", "| --- | --- | --- |", *rows, "")
    )


PAGES: Mapping[str, Callable[[], str]] = {
    "api.md": api.page,
    "approvals.md": approvals,
    "lifecycle.md": lifecycle,
}

if __name__ == "__main__":
    for name, page in PAGES.items():
        (FOLDER / name).write_text(page(), "utf-8")
