"""Asks a nanovm gate before a tool of an agent runs (docs/connect.md). Standard library alone."""

import json
import time
from asyncio import to_thread
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from enum import Enum
from functools import wraps
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from inspect import isasyncgenfunction, iscoroutinefunction, isgeneratorfunction, signature
from threading import Timer
from typing import Any, TypeVar
from urllib.parse import quote, urlsplit
from uuid import UUID, uuid4

ANSWER_BYTES_MAX, SECONDS_MAX = 1 << 20, 40  # of one exchange; the gate itself waits up to 25 s
PAUSE_SECONDS, DIGITS_MAX = 2, 100  # before the gate is asked again; of a number written out
OPEN, BUSY, UNREAD = ("held", "running"), ("GAT-013", "GAT-017"), ("GAT-005", "GAT-006")
PLAIN, TEXTS = {str, int, float, bool, type(None)}, {Decimal, UUID, date, datetime}
request_id: ContextVar[str] = ContextVar("request_id", default="")  # else the tool call's own
CONTEXTS = {("agents", "ToolContext"), ("langgraph", "ToolRuntime"), ("pydantic_ai", "RunContext")}
F = TypeVar("F", bound=Callable[..., Any])
OnError = Callable[["CallError"], Any] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What became of a call, by the names of the gate's OpenAPI document; times are UTC."""

    verdict: str  # allowed, done, refused, held, running, failed or unknown
    request: str
    run: str
    rule: str = ""
    why: str = ""
    next: str = ""  # what to do
    checks: dict[str, str] = field(default_factory=dict)
    result: Any = None
    warrant: str = field(default="", repr=False)  # given once
    report_by_ms: int = 0
    hold: dict[str, Any] = field(default_factory=dict)  # page, until_ms and more
    replayed: bool = False  # the request had been made before


class CallError(Exception):
    """A call without a result. Its text is for a model too: what happened, why, what to do next."""

    what, todo = "The gate did not take the report or question", ""
    result: Any = None  # of a tool that ran, and could not be reported

    def __init__(self, code: str, why: str, request: str, todo: str = "", verdict: Any = None):
        self.code, self.why, self.request, self.next = code, why, request, self.todo or todo
        self.verdict: Verdict | None = verdict
        super().__init__(f"{self.what} [{code}]: {why} {self.next} (request {request})")


# fmt: off
class Refused(CallError):
    what = "Nothing was performed"
class Held(CallError):
    what, todo = "Held for a person, not performed yet", "Do not repeat it; say that it waits."
class Unknown(CallError):
    what, todo = "The outcome is unknown", "It may have been performed: do not call it again."
class GateDown(Unknown):
    what = "The gate gave no answer"
# fmt: on


class Gate:
    """One agent's way to its gate at ``https://host:port/path``, which threads may share."""

    def __init__(self, url: str, token: str) -> None:
        at = urlsplit(url)
        kind = {"http": HTTPConnection, "https": HTTPSConnection}.get(at.scheme)
        if kind is None or not at.hostname or at.port == 0 or {*"@?#"} & {*url}:
            raise ValueError("A gate's address is https://host, with no user, token or query.")
        if not token.startswith("nvm1.") or not token.isascii() or token.split() != [token]:
            raise ValueError("A token begins with nvm1. and has no spaces: copy it whole.")
        self._connect: Callable[[], HTTPConnection] = lambda: kind(at.netloc, timeout=SECONDS_MAX)
        self._token, self._calls = token, at.path.rstrip("/") + "/gate/v1/calls"

    def call(self, tool: str, args: dict[str, Any], request: str = "") -> Verdict:
        """Ask for a call, the same under the same ``request``; TypeError where ``plain`` says."""
        known = (401, 403, 408, 409, 410, 429) if request else (409, 410)  # it may have been made
        request = request or str(uuid4())
        said = {"request": request, "tool": tool, "args": plain("", args)}
        try:
            return self._ask(request, "", said, known)
        except GateDown:  # if it did arrive, it is not made again
            time.sleep(PAUSE_SECONDS)
            return self._ask(request, "", said, range(500))  # nor does any error say of the first

    def answer(self, request: str) -> Verdict:
        """What became of a call by now, without its warrant."""
        return self._ask(request, "/" + quote(request, safe=""))

    def report(self, request: str, outcome: str, result: Any = None, code: str = "") -> Verdict:
        """Say what became of an allowed call: done, failed (nothing happened) or unknown."""
        said = {"outcome": outcome, "result": result, "code": code}
        return self._ask(request, f"/{quote(request, safe='')}/report", said)

    def _reported(self, request: str, outcome: str, result: Any, code: str = "") -> None:
        try:
            self.report(request, outcome, result, code)
        except CallError as first:
            if first.code not in BUSY and not isinstance(first, GateDown):
                raise
            time.sleep(PAUSE_SECONDS)
            try:
                self.report(request, outcome, result, code)
            except CallError as late:  # the first one may have arrived
                if late.code != "GAT-007" or self.answer(request).verdict != outcome:
                    raise

    def wait(self, request: str, until_ms: int) -> Verdict:
        """Ask every two seconds until the call neither is held nor runs, or it is ``until_ms``."""
        while (found := self.answer(request)).verdict in OPEN and time.time() * 1000 < until_ms:
            time.sleep(PAUSE_SECONDS)
        return found

    def guarded(
        self, tool: str, no_effect: tuple[type[Exception], ...] = (), on_error: OnError = None
    ) -> Callable[[F], F]:
        """Ask for each call of a function, async ones too, as ``tool`` with all its arguments.

        The body runs once, under the warrant, unless the gate performs the tool. Its result is
        reported, or its exception: failed for ``no_effect``, else unknown. ``on_error`` gives what
        to return where the call did not run, or its outcome is not known: ``str``, for a model.
        """
        if type(tool) is not str:
            raise TypeError('Write @gate.guarded("refund.issue"), with the name of the tool.')

        def guard(body: F) -> Any:
            is_lazy = isgeneratorfunction(body) or isasyncgenfunction(body)
            if is_lazy or not hasattr(body, "__code__"):  # of functions and methods alone
                raise TypeError("Put @gate.guarded right above a def that yields nothing.")

            def now(*args: Any, **kwargs: Any) -> Any:
                request, result = self._asked(tool, body, on_error, args, kwargs)
                try:
                    result, error = body(*args, **kwargs) if request else result, None
                except Exception as raised:  # noqa: BLE001 - raised again
                    result, error = None, raised
                return self._ended(request, on_error, no_effect, result, error)

            async def later(*args: Any, **kwargs: Any) -> Any:
                request, result = await to_thread(self._asked, tool, body, on_error, args, kwargs)
                try:
                    result, error = await body(*args, **kwargs) if request else result, None
                except Exception as raised:  # noqa: BLE001 - raised again
                    result, error = None, raised
                return await to_thread(self._ended, request, on_error, no_effect, result, error)

            return wraps(body)(later if iscoroutinefunction(body) else now)

        return guard

    def _asked(self, tool: str, body: Any, on_error: OnError, args: Any, kwargs: Any) -> Any:
        bound, request = signature(body).bind(*args, **kwargs), request_id.get()
        bound.apply_defaults()  # what is judged is what the body runs with
        for name, value in [*bound.arguments.items()]:
            if (type(value).__module__.partition(".")[0], type(value).__name__) in CONTEXTS:
                request = request or value.tool_call_id or ""
                del bound.arguments[name]
        try:
            found = self.call(tool, bound.arguments, request)
            if found.warrant or found.verdict == "done":
                return found.request if found.warrant else "", found.result
            kind = {"refused": Refused, "failed": Refused, "held": Held}.get(found.verdict, Unknown)
            why = f"{found.why} {found.hold.get('page', '')}".strip()
            raise kind(found.rule, why, found.request, found.next, found)
        except CallError as error:
            if on_error is None:
                raise
            return "", on_error(error)

    def _ended(self, request: str, on_error: Any, no_effect: Any, result: Any, error: Any) -> Any:
        outcome = "failed" if isinstance(error, no_effect) else "unknown" if error else "done"
        if request and isinstance(result, (Awaitable, Iterator, AsyncIterator)):
            result, outcome = None, "unknown"
            error = TypeError("It returned what has yet to run: write async def.")
        code = type(error).__name__ if error else ""
        lost = Unknown(code, "The function raised it.", request) if outcome == "unknown" else None
        if lost:
            lost.__cause__ = error
        try:
            try:
                if request:
                    self._reported(request, outcome, result, code)
            except (CallError, TypeError, ValueError, RecursionError) as refused:
                why = getattr(refused, "code", type(refused).__name__)
                if isinstance(refused, CallError) and why not in UNREAD:
                    raise
                kept = {"not_kept": f"It was performed; its result could not be kept: {why}"}
                self._reported(request, outcome, kept if outcome == "done" else None)
        except CallError as unsent:
            if error:
                error.add_note(f"It could not be reported. {unsent}")
            else:
                why = f"The function ran, and its report failed: {unsent.why}"
                error = lost = Unknown("CLI-002", why, request)
                lost.result, lost.__cause__ = result, unsent
        if error and not (lost and on_error):
            raise error
        return on_error(lost) if error else result

    def _ask(self, request: str, path: str, said: Any = None, known: Any = ()) -> Verdict:
        sent, connection = json.dumps(said, default=str) if said else None, self._connect()
        limit = Timer(SECONDS_MAX, lambda: connection.sock and connection.sock.shutdown(2))
        headers = {"Authorization": f"Bearer {self._token}", "Content-Type": "application/json"}
        try:
            limit.start()  # however slowly an answer drips
            connection.request("POST" if said else "GET", self._calls + path, sent, headers)
            with connection.getresponse() as answer:
                if "json" not in answer.headers.get("Content-Type", ""):
                    raise HTTPException(f"HTTP {answer.status} without JSON")  # redirects, proxies
                found = json.loads(answer.read(ANSWER_BYTES_MAX))
            if "error" not in found and found["request"] == request:
                given = {key: found[key] for key in Verdict.__slots__ if key in found}
                return Verdict(**given, replayed="Idempotency-Replayed" in answer.headers)
            told = found["error"]
            kind = CallError if path else Unknown if answer.status in known else Refused
            kind = GateDown if answer.status >= 500 else kind
            raise kind(told["code"], f"{told['what']} {told['why']}", request, told["next"])
        except (OSError, HTTPException, ValueError, KeyError, TypeError, RecursionError) as error:
            raise GateDown("CLI-001", f"{type(error).__name__}: {error}.", request) from error
        finally:
            limit.cancel()
            connection.close()


def plain(name: str, value: Any) -> Any:
    """An argument as JSON that says all of it; TypeError where less would be judged than runs."""
    value = value.value if isinstance(value, Enum) else value
    if type(value) in (list, tuple):
        return [plain(name, each) for each in value]
    if type(value) is dict and {str} >= {*map(type, value)}:
        return {key: plain(name or key, each) for key, each in value.items()}
    if type(value) not in PLAIN | TEXTS:
        raise TypeError(f"{name!r} is a {type(value).__name__}: pass JSON, Decimal, UUID or date.")
    is_short = type(value) is Decimal and abs(value.adjusted()) < DIGITS_MAX  # unlike 1E+999999
    return format(value, "f" if is_short else "") if type(value) in TEXTS else value
