"""Writes the pages of documentation that are drawn from code and tables: ``make docs``."""

import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

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


def owasp() -> str:
    """What answers each risk of OWASP's list, and what is open, in Markdown."""
    return "\n".join(_owasp(tomllib.loads((FOLDER / "owasp.toml").read_text("utf-8")))) + "\n"


def _owasp(table: Mapping[str, Any]) -> Iterator[str]:
    yield f"# {table['title']}\n"
    yield from (f"{each}\n" for each in table["intro"])
    yield f"[The risks in OWASP's words]({table['source']}).\n"
    yield "| risk | answered | attacks |"
    yield "| --- | --- | --- |"
    for risk in table["risks"]:
        attacks = ", ".join(each["name"] for each in risk["attacks"]) or "none"
        yield f"| {risk['id']} {risk['title']} | {risk['answered']} | {attacks} |"
    for risk in table["risks"]:
        yield from _risk(risk)


def _risk(risk: Mapping[str, Any]) -> Iterator[str]:
    yield f"\n## {risk['id']} {risk['title']}\n"
    yield f"**Answered: {risk['answered']}.** {risk['does']}\n"
    yield "Open:\n"
    yield from (f"- {each}" for each in risk["open"])
    yield "\nTo look at:\n"
    yield f"- Rules: {', '.join(risk['rules'])}"
    fired = (f"{each['name']} at `{each['at']}`" for each in risk["attacks"])
    yield f"- Attacks to fire: {', '.join(fired) or 'none'}"
    if "see" in risk:
        yield f"- Pages: {', '.join(f'`{at}`' for at in risk['see'])}"
    yield "- Held by:"
    yield from (f"  - `{test}`" for test in risk["tests"])


STATES: Mapping[str, str] = {
    "refused": "no run begins",
    "waits": "stays owed, nothing begins",
    "held": "held for a person",
    "exhausted": "budget exhausted",
    "failed": "failed, nothing was sent",
    "unknown": "outcome unknown, a person decides",
}
SAID: Mapping[str, str] = {
    "reason": "the run's reason",
    "advice": "the run's advice, as its source",
    "refusal": "the refusal",
    "error": "the worker's log, and each page that needs it",
    "alert": "the alert of the log",
}


def fail_closed() -> str:
    """The matrix of broken parts, in Markdown; the tests walk the same table."""
    return "\n".join(_fail_closed()) + "\n"


def _fail_closed() -> Iterator[str]:
    cells = tomllib.loads((FOLDER / "fail_closed.toml").read_text("utf-8"))["cells"]
    parts = dict.fromkeys(each["part"] for each in cells)
    yield "# What happens where a part is broken\n"
    yield f"Generated from `docs/fail_closed.toml`: {len(parts)} parts of the decision path, each"
    yield "broken in four ways. The tests break each part so on SQLite, and again on PostgreSQL"
    yield "where a server differs. In each cell no further effect begins; then the part is mended,"
    yield "and the run, or the one that is begun for it, pays exactly once. *May have left*: bytes"
    yield "of the payment may have left the process. Then the run does not fail, and the amount"
    yield "stays held."
    for part in parts:
        yield f"\n## {part[0].upper()}{part[1:]}\n"
        yield "| broken | how | the run | named in | amount | may have left | how it goes on |"
        yield "| --- | --- | --- | --- | --- | --- | --- |"
        for each in (cell for cell in cells if cell["part"] == part):
            code = f" ({each['code']})" if each["code"] else ""
            said = SAID.get(each["said"], f"`/healthz`, `{each['said']}`")
            row = (each["break"], each["what"], STATES[each["state"]] + code, said, each["budget"])
            left = "yes" if each["left"] else "no"
            yield f"| {' | '.join(row)} | {left} | {each['mended']} |"


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
    "fail_closed.md": fail_closed,
    "lifecycle.md": lifecycle,
    "owasp.md": owasp,
}

if __name__ == "__main__":
    for name, page in PAGES.items():
        (FOLDER / name).write_text(page(), "utf-8")
