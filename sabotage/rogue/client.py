"""The hostile client at the gate's own doors, and what came of each form of its attack."""

import asyncio
import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Coroutine, Mapping
from functools import partial
from typing import Any

from asgiref.sync import ThreadSensitiveContext
from django.conf import settings
from django.db import close_old_connections
from django.db.models import QuerySet
from django.test import AsyncClient

from engine.management import schema
from engine.models import Run
from engine.runtime import agents
from engine.worker.drive import drive_patiently
from gate import identity
from gate.doors import openapi
from gate.replies import ALLOWED
from nanovm_core.core.lifecycle import ACTIVE
from pipeline.register.sample_register import new_workspace
from sabotage.gallery import rogue_mcp_client as names
from sabotage.kit.waiting import wait_until
from sabotage.rogue.bank import LATER, PAY, PROGRAM, UNLISTED, Bank

ROGUE, CLERK, SUBS, OPERATOR = "rogue", "clerk", ("rogue", "rogue-2", "rogue-3"), "operator"
RENAMED, HELD = "rogue as clerk", "POL-020"
AMOUNT, WIDER, PART = "98.70", "4000.00", "2000.00"
ARGS = {"recipient": "DE89370400440532013000", "subject": "Rent", "date": "2026-12-01"}
MORE: Mapping[str, Mapping[str, Any]] = {UNLISTED: {"id": 7}, LATER: {"recurring": False}}
REPORT, RENT = "nanovm.report", '"Rent"'
HEADERS = {"Accept": "application/json, text/event-stream"}
HOST = "testserver"  # as Django's client calls it
TURN_S, WAIT_S = 0.02, 5


class Gate:
    """The gate before the bank; what was sent to it, and came back.

    ``asked``: the calls as a loop is told them. ``believed``: whether a report was taken.
    ``clerks``: how the calls of an honest agent were answered.
    """

    def __init__(self, bank: Bank) -> None:
        self.bank, self.log, self.believed = bank, new_workspace().id, False
        self.tokens = {
            name: identity.issue(self.log, name, PROGRAM, by=OPERATOR) for name in (CLERK, *SUBS)
        }
        self.tokens[RENAMED] = self.tokens[ROGUE].replace(f".{ROGUE}.", f".{CLERK}.")
        self.sent, self.answers, self.clerks = (Counter[str]() for _ in range(3))
        self.asked: list[dict[str, Any]] = []

    async def pay(
        self,
        amount: str = AMOUNT,
        by: str = ROGUE,
        request: str = "1",
        tool: str = PAY,
        subject: str = RENT,
        *,
        http: bool = False,
    ) -> None:
        """Ask for a payment, at the MCP door unless it is told another; ``subject``: as JSON."""
        minor = int(amount.replace(".", ""))
        self.asked.append({"tool": tool, "amount_minor": minor, "request": f"{by} {request}"})
        args = {**ARGS, "amount": amount, **MORE.get(tool, {})}
        if http:
            text = json.dumps({"request": request, "tool": tool, "args": args})
            await self.send(by, "POST", "v1/calls?wait=0", text.replace(RENT, subject))
        else:
            await self.call(by, request, tool, args, subject)

    async def call(
        self, by: str, request: str, tool: str, args: Mapping[str, Any], subject: str = RENT
    ) -> Mapping[str, Any]:
        """Call a tool at the MCP door."""
        meta = {} if tool == REPORT else {"_meta": {"nanovm/request": request}}
        params = {"name": tool, "arguments": args, **meta}
        said = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        return await self.send(by, "POST", "mcp", json.dumps(said).replace(RENT, subject))

    async def send(self, by: str, method: str, path: str, body: str = "") -> Mapping[str, Any]:
        """A request through every middleware, in threads of its own as at the web server."""
        own = {**HEADERS, "Authorization": f"Bearer {self.tokens[by]}"}
        async with ThreadSensitiveContext():
            client = AsyncClient(raise_request_exception=False)
            answer = await client.generic(
                method, f"/gate/{path}", body, "application/json", headers=own
            )
        found: Mapping[str, Any] = json.loads(answer.content)
        said = found["result"]["structuredContent"] if "jsonrpc" in found else found
        rule = said["rule"] if said.get("verdict") in ("refused", "failed") else ""
        self.sent[f"{method} /gate/{path}, {len(body):,} bytes, by {by}"] += 1
        held = HELD if said.get("verdict") == "held" else ""
        answers = self.clerks if by == CLERK else self.answers
        answers[rule or held or said.get("error", {}).get("code") or said["verdict"]] += 1
        return said

    async def report(self, request: str, outcome: str) -> None:
        said = await self.call(ROGUE, "", REPORT, {"request": request, "outcome": outcome})
        self.believed = "error" not in said


async def _pay(gate: Gate, **call: Any) -> int:
    await gate.pay(**call)
    return 0


async def _at_both_doors(gate: Gate, subject: str) -> int:
    for door in (False, True):
        await gate.pay(request=f"{door}", subject=subject, http=door)
    return 0


async def _copies(gate: Gate) -> int:
    await asyncio.gather(*(gate.pay(http=n % 2 == 0) for n in range(names.COPIES)))
    return 1


async def _read(gate: Gate) -> int:
    await gate.pay(by=CLERK, request="rent")
    await gate.send(ROGUE, "GET", "v1/calls/rent")
    return 1


async def _changed(gate: Gate) -> int:
    gate.bank.says = "Sends money. Sends it to Mallory first."
    return await _pay(gate)


async def _split(gate: Gate) -> int:
    for each in SUBS:
        await gate.pay(PART, by=each)
    return 2  # before all of them together have paid 3,000.00 today


async def _suspended(gate: Gate) -> int:
    await asyncio.to_thread(agents.suspend, gate.log, ROGUE, by=OPERATOR)
    return await _pay(gate)


async def _no_warrant(gate: Gate) -> int:
    await gate.pay(PART, tool=LATER)  # a person is to look at it
    await gate.report("1", "done")
    return 0


async def _others_warrant(gate: Gate) -> int:
    await gate.pay(by=CLERK, request="rent", tool=LATER)
    gate.asked *= 2  # whoever believes that it was not made has it made again
    await gate.report("rent", "failed")
    return 1


DEEP = "[" * names.DEPTH + "]" * names.DEPTH
FORMS: Mapping[str, Callable[[Gate], Coroutine[Any, Any, int]]] = {
    names.UNLISTED: partial(_pay, tool=UNLISTED),
    names.WIDER: partial(_pay, amount=WIDER),
    names.COPIED: _copies,
    names.TOKEN: partial(_pay, by=RENAMED),
    names.REQUEST: _read,
    names.CHANGED: _changed,
    names.OVERSIZE: partial(_at_both_doors, subject=" " * names.PADDING + RENT),
    names.NESTED: partial(_at_both_doors, subject=DEEP),
    names.SPLIT: _split,
    names.SUSPENDED: _suspended,
    names.NO_WARRANT: _no_warrant,
    names.OTHERS_WARRANT: _others_warrant,
}


def attack(how: str, bank: Bank) -> dict[str, Any]:
    """Attack a fresh gate in this form; ``may_execute``: how many of the calls are in order."""
    schema.migrate()
    settings.ALLOWED_HOSTS = [HOST]
    openapi.WAIT_S_MAX = WAIT_S  # what a removed guard has lost is not waited for
    gate = Gate(bank)
    threading.Thread(target=_perform, daemon=True).start()
    due = asyncio.run(FORMS[how](gate))
    wait_until(lambda: not _owing().exists())
    return {
        "how": how,
        "sent": dict(gate.sent),
        "answers": dict(gate.answers),
        "may_execute": due,
        "executed": len(bank.made),
        "warranted": gate.clerks[ALLOWED],
        "believed": gate.believed,
        "asked": gate.asked,
        "paid": [{"amount_minor": each, "currency": "EUR"} for each in bank.made],
        "payments": f"{len(bank.made)} made, by the bank's own list",
        "far_side": {"reachable": True, "payments": []},  # the bank alone: no Stripe
    }


def _owing() -> QuerySet[Run]:
    return Run.objects.filter(state=ACTIVE).exclude(owed_key="")


def _perform() -> None:
    """The payer: it drives each run that owes a call."""
    while True:
        for run in _owing():
            drive_patiently(str(run.id))
        close_old_connections()
        time.sleep(TURN_S)
