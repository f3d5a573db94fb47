"""The HTTP door: calls, their answers, reports of them, and what a token may call."""

import re
from time import monotonic
from typing import Any
from uuid import UUID

from asgiref.sync import sync_to_async
from django.db import close_old_connections
from django.http import HttpRequest, HttpResponse
from django.urls import reverse

from engine.models import Run
from engine.runtime import warrants
from engine.store import programs
from gate import calls, identity
from gate.application import of_name
from gate.doors import openapi, turns, wire
from gate.doors.errors import as_json
from gate.identity import Holder
from gate.replies import HELD, RUNNING, GateError, Reply
from nanovm_core.core.program import Program
from nanovm_core.core.signed import key_id

WAITERS_MAX = 256  # at once: each keeps a thread and three files; the next one is not waited for
_waiters: set[object] = set()
POLL_S_MIN, POLL_S_MAX = 0.02, 0.25  # between two looks at the row of a call that is waited for


async def call(request: HttpRequest) -> HttpResponse:
    """Ask for one tool call: 200 with what became of it, 202 where it is held or under way."""
    holder = await sync_to_async(holder_of)(request)
    seconds, (name, proposal) = _seconds(request), wire.asked(body_of(request))
    reply = await sync_to_async(calls.ask)(holder, name, proposal)
    return _answer(request, name, await outcome(holder, name, reply, seconds))


async def made(request: HttpRequest, name: str) -> HttpResponse:
    """The answer of a call; with POST to its ``/report``, what became of an allowed one."""
    holder = await sync_to_async(holder_of)(request)
    if request.method == "GET":
        return _answer(request, name, await sync_to_async(calls.answer)(holder, name))
    name, _, rest = name.rpartition("/")
    if rest != "report":
        raise GateError("GAT-018")
    said = wire.reported(body_of(request))
    reply = await sync_to_async(calls.report)(holder, name, **said)
    return _answer(request, name, reply)


async def tools(request: HttpRequest) -> HttpResponse:
    """The tools that the token's agent may call, with the JSON Schema of each."""
    _, program = await sync_to_async(asking)(request)
    return as_json({"tools": openapi.tools_of(program)})


async def description(request: HttpRequest) -> HttpResponse:
    """The gate as OpenAPI 3.1, for the token's program."""
    _, program = await sync_to_async(asking)(request)
    return as_json(openapi.document(program, request.build_absolute_uri("/")))


async def key(_request: HttpRequest) -> HttpResponse:
    """The public key that checks warrants, for whoever performs calls."""
    found = await sync_to_async(warrants.public_key)()
    public = found.public_bytes_raw().hex()
    return as_json({"algorithm": "Ed25519", "public_key": public, "key_id": key_id(found)})


def holder_of(request: HttpRequest) -> Holder:
    """Who sent a request, by its header alone; the log is asked once a request.

    Raises:
        GateError: GAT-003; GAT-005 for a parameter of the address, which is not looked at.
    """
    known: Holder | None = getattr(request, "gate_holder", None)
    if known is None:
        scheme, _, token = request.headers.get("Authorization", "").partition(" ")
        if scheme.lower() != "bearer":
            raise GateError("GAT-003", "The request has no token in its header Authorization.")
        if request.GET.keys() - {"wait"}:
            text = "An address has the parameter wait alone, and never a token."
            raise GateError("GAT-005", text)
        known = request.gate_holder = identity.holder(token.strip())  # type: ignore[attr-defined]
    return known


def asking(request: HttpRequest) -> tuple[Holder, Program]:
    """``holder_of``, and the program whose tools they may call; GateError GAT-014: it is broken."""
    holder = holder_of(request)
    return holder, programs.current(of_name(holder.program))


def body_of(request: HttpRequest) -> bytes:
    """The body of a request that says it is JSON (GAT-011); ``wire`` bounds its size."""
    if request.content_type != "application/json":
        raise GateError("GAT-011")
    return request.body


async def outcome(holder: Holder, name: str, reply: Reply, seconds: float) -> Reply:
    """What became of a call that is under way, or how it is when the time is over."""
    if reply.verdict != RUNNING or len(_waiters) >= WAITERS_MAX:
        return reply
    end, pause, seen = monotonic() + seconds, POLL_S_MIN, None
    _waiters.add(waiter := object())
    try:
        while reply.verdict == RUNNING and (left := end - monotonic()) > 0:
            await turns.pause(min(pause, left))
            pause = min(2 * pause, POLL_S_MAX)
            before, seen = seen, await sync_to_async(_length)(calls.run_of(holder, name))
            if seen != before:
                found = await sync_to_async(calls.answer)(holder, name)
                reply = found._replace(replayed=reply.replayed)
        return reply
    finally:
        _waiters.discard(waiter)


def _length(run: UUID) -> int | None:
    """How long a run's chain is; the connection is not kept while the caller waits."""
    try:
        return Run.objects.filter(id=run).values_list("length", flat=True).first()
    finally:
        close_old_connections()


def said_of(request: HttpRequest, name: str, reply: Reply) -> dict[str, Any]:
    """A reply as a door says it: the fields that have a value."""
    cause: dict[str, Any] = {"run": reply.run, "rule": reply.rule, "why": reply.why}
    said = {"request": name, **cause, "checks": {**reply.checks}, "warrant": reply.warrant}
    said |= {"verdict": reply.verdict, "tool": reply.tool, "seq": reply.seq, "next": reply.next}
    if reply.verdict == HELD:
        page = request.build_absolute_uri(reverse("run", args=(reply.run,)))
        until = {"until_ms": reply.until_ms} if reply.until_ms else {}
        said["hold"] = {**cause, "page": page, **until}
    elif reply.warrant:
        said["report_by_ms"] = reply.until_ms
    present = {key: value for key, value in said.items() if value}
    return present if reply.result is None else {**present, "result": reply.result}


def _answer(request: HttpRequest, name: str, reply: Reply) -> HttpResponse:
    present = said_of(request, name, reply)
    response = as_json(present, 202 if reply.verdict in (HELD, RUNNING) else 200)
    if reply.replayed:
        response.headers["Idempotency-Replayed"] = "true"
    return response


def _seconds(request: HttpRequest) -> int:
    text = request.GET.get("wait", str(openapi.WAIT_S_MAX))
    if not re.fullmatch("[0-9]{1,2}", text) or int(text) > openapi.WAIT_S_MAX:
        raise GateError("GAT-005", f"wait is 0 to {openapi.WAIT_S_MAX} whole seconds.")
    return int(text)
