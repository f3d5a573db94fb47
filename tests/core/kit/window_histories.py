"""Histories of calls, and what windows count of them, by the definition and nothing else."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from random import Random
from typing import Any, NamedTuple

from nanovm_core.core.authority.capabilities import Grant, Tool
from nanovm_core.core.authority.windows import COUNTS, Rate, Window
from nanovm_core.loading import load_program
from tests.core.kit.desk import DESK

PAY, TELL, OTHER = "refunds.pay", "refunds.tell", "orders.look_up"
CLERK = "clerk"  # who tells, whoever's the run is
AGENTS = ("ann", "bob")
TIMES_MS = (1, 7, 40, 1_000)
COUNTED = {"calls": "called", "failures": "failed", "refusals": "refused"}
WORDS = {"intent": "called", "result": "done", "failed": "failed", "refused": "refused"}


def windows() -> tuple[Window, ...]:
    """Each kind of count, of all and of each scope, over several times."""
    found: list[Window] = []
    for counts in COUNTS:
        for scope in ("workspace", "agent"):
            for tool in ("", PAY) if counts != "refusals" else ("",):
                for within_ms in TIMES_MS if counts != "failures_in_a_row" else (0,):
                    currency = "EUR" if counts == "spent" else ""
                    name = f"w{len(found)}"
                    given = {"within_ms": within_ms, "tool": tool, "currency": currency}
                    found.append(Window(name=name, counts=counts, scope=scope, **given))  # type: ignore[arg-type]
    return tuple(found)


_DESK = load_program(DESK.encode())
PROGRAM = replace(
    _DESK,
    rules=(),
    windows=windows(),
    tools={**_DESK.tools, TELL: Tool(name=TELL, agent=CLERK)},
    grants={
        PAY: replace(_DESK.grants[PAY], rate=Rate(calls=3, within_ms=40)),
        TELL: Grant(tool=TELL),
    },
)


class Happened(NamedTuple):
    """An envelope of a run: whose, when, and what it says."""

    at_ms: int
    agent: str
    kind: str
    body: Mapping[str, Any]


def drawn(dice: Random, last_ms: int) -> Happened:
    """What happens next, by a clock that is sometimes behind; it may be no call at all."""
    at_ms = max(last_ms, last_ms + dice.choice((0, 0, 1, 1, 6, 7, 8, 40, 41, 1_000, -50)))
    kind = dice.choice(("intent", "result", "failed", "refused", "resumed"))
    body: dict[str, Any] = {"tool": dice.choice((PAY, PAY, TELL, OTHER))}
    if kind == "refused":
        body["state"] = {"event": dice.choice(("ProposalReceived", "EffectDone"))}
    if kind == "result":
        body["outcome"] = dice.choice(("done", "done", "waiting"))
    if body.get("outcome") == "done" and body["tool"] == PAY:
        amount, unit = dice.choice((1, 500, 99_999)), dice.choice(("EUR", "USD"))
        accounts = (f"workspace/{unit}", f"agent/{unit}@ann", f"global/{unit}", "agent/calls@ann")
        body["budget"] = {"spent": dict.fromkeys(accounts, amount)}
    return Happened(at_ms, dice.choice(AGENTS), kind, body)


def naive(window: Window, past: Sequence[Happened], agent: str, at_ms: int) -> int:
    """What a window counts at a time, by what happened: every event is looked at."""
    count = 0
    for at, whose, kind, body in past:
        refused, tool = kind == "refused", body["tool"]
        if refused and body["state"]["event"] != "ProposalReceived":
            continue
        if not refused and (tool not in (PAY, TELL) or body.get("outcome") == "waiting"):
            continue
        by = CLERK if tool == TELL and not refused else whose
        if (window.scope == "agent" and by != agent) or (window.tool and window.tool != tool):
            continue
        word = WORDS.get(kind)
        if window.counts == "failures_in_a_row":
            count = count + 1 if word == "failed" else 0 if word == "done" else count
        elif window.within_ms and at < at_ms - window.within_ms:
            continue
        elif window.counts == "spent":
            spent = body.get("budget", {}).get("spent", {})
            count += spent.get(f"workspace/{window.currency}", 0)
        else:
            count += word == COUNTED[window.counts]
    return count


def expected(past: Sequence[Happened], agent: str, at_ms: int) -> dict[str, int]:
    """The counts of a context for a run of an agent."""
    found = {}
    for window in PROGRAM.windows:
        for by in (agent, CLERK) if window.scope == "agent" else ("",):
            name = f"{window.name}@{by}" if by else window.name
            found[name] = naive(window, past, by, at_ms)
    rate = Window(name="rate", counts="calls", within_ms=40, tool=PAY)
    return {**found, f"rate/{PAY}": naive(rate, past, "", at_ms)}
