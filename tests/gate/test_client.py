"""The client: what it asks, runs and reports, at the real gate; and servers that are no gate."""

import asyncio
import inspect
import json
import re
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import date
from decimal import Decimal
from functools import partial
from http import HTTPMethod
from http.client import HTTPConnection, HTTPResponse
from socketserver import BaseRequestHandler, ThreadingTCPServer
from typing import Any

import pytest

import nanovm_client
from engine.runtime import api
from engine.worker.drive import drive_patiently, take_turns
from nanovm_client import CallError, Gate, GateDown, Held, Refused, Unknown, plain, request_id
from tests.gate.conftest import Desk, Door, served
from tests.kit.house import ROOT

TOKEN = f"nvm1.{'0' * 32}.teller.desk.{'s' * 32}"
AGENTS = ROOT / ".venv-agents" / "bin" / "python"
COPIES = range(8)


def named(request: str, call: Callable[[], Any]) -> Any:
    """What a call under this request id gives, or its error."""
    mark = request_id.set(request)
    try:
        return call()
    except CallError as error:
        return error
    finally:
        request_id.reset(mark)


def guarded(gate: Gate, ran: list[str]) -> tuple[Any, Any, Any]:
    """Two functions that mail and one that its upstream performs; ``ran`` notes what mailed."""

    @gate.guarded("mail", no_effect=(LookupError,))
    def mail(to: str, body: str = "Hello") -> dict[str, Any]:
        """Send mail."""
        ran.append(to)
        given: dict[str, Any] = {"ada": {"to": to}, "all": {}, "eva": {}}
        return {**given, "nan": {"cost": float("nan")}}[to]  # type: ignore[no-any-return]

    @gate.guarded("mail")
    async def later(to: str, body: str) -> int:
        await asyncio.sleep(0)
        ran.append(to)
        return len(to) // (to != "bob")

    @gate.guarded("send", on_error=str)
    def send(to: str, cents: int) -> str:
        raise AssertionError("its upstream performs it")

    return mail, later, send


def test_a_guarded_function_runs_once_and_only_where_the_gate_allows(desk: Desk) -> None:
    ran: list[str] = []
    desk.ask("done", "send")
    drive_patiently(desk.run("done").name)
    with served(desk) as url:
        gate = Gate(url, desk.token)
        mail, later, send = guarded(gate, ran)
        assert (mail.__doc__, str(inspect.signature(mail))[:10]) == ("Send mail.", "(to: str, ")
        assert named("1", lambda: mail("ada")) == {"to": "ada"} == gate.answer("1").result
        assert named("1", lambda: mail("ada")) == {"to": "ada"}
        assert named("1", lambda: mail("eva")).code == "GAT-002"
        assert asyncio.run(later("bert", body="Hi")) == 4
        assert named("done", lambda: send("ada", 120)) == {"ok": True}
        assert re.search("desk-limit.* Change the call, or ask", send("ada", 60_000))
        assert named("nan", lambda: mail("nan")).keys() == {"cost"}  # which is not in JSON
        assert "performed; its result could not be kept: GAT-005" in str(gate.answer("nan").result)
        assert "did not take the report" in str(named("", lambda: gate.report("1", "done")))
        assert ran == ["ada", "bert", "nan"]
        with pytest.raises(KeyError, match="nobody"):
            named("2", lambda: mail("nobody"))
        assert gate.answer("2").verdict == "failed"
        with pytest.raises(ZeroDivisionError):
            named("3", lambda: asyncio.run(later("bob", "Hi")))
        unknown = gate.answer("3")
        assert (unknown.rule, unknown.why[-17:]) == ("GAT-016", "ZeroDivisionError")
        assert type(named("3", lambda: asyncio.run(later("bob", "Hi")))) is Unknown
        held = named("4", lambda: mail("all"))
        assert (type(held), "all" in ran) == (Held, False)
        assert held.verdict.hold["page"] in str(held)
        api.approve(str(desk.run("4").id), "visitor")
        take_turns()
        assert gate.wait("4", held.verdict.hold["until_ms"]).verdict == "allowed"
        assert named("4", lambda: mail("all")) == {}
        with ThreadPoolExecutor(len(COPIES)) as threads:
            copies = [*threads.map(lambda _: named("5", lambda: mail("eva")), COPIES)]
        assert {each.code for each in copies if isinstance(each, CallError)} <= {"GAT-004"}
        assert (ran.count("all"), ran.count("eva"), ran.count("bob")) == (1, 1, 1)


def test_an_answer_is_closed_at_once(liar: str, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[HTTPResponse] = []

    class Kept(HTTPConnection):
        def getresponse(self) -> HTTPResponse:
            made.append(super().getresponse())
            return made[-1]

    monkeypatch.setattr(nanovm_client, "HTTPConnection", Kept)
    with pytest.raises(GateDown):
        Gate(f"{liar}/page", TOKEN).call("mail", {})
    assert [each.isclosed() for each in made] == [True, True]


def test_numbers_are_sent_exactly(door: Door) -> None:
    @Gate(door.url, door.clerk).guarded("refund.issue")
    def refund(amount: Any, order: str = "1001", reason: str = "late") -> str:
        return str(amount)

    assert [refund(it) for it in (Decimal("12.50"), 12.5, 12)] == ["12.50", "12.5", "12"]
    assert [refund(Decimal("1E+1")), plain("", Decimal("1E+999"))] == ["1E+1", "1E+999"]
    for amount in (0.1 + 0.2, Decimal("0.125"), 1e30, "12,50", float("nan")):
        with pytest.raises(Refused, match=r"CAP-0\d\d|GAT-005"):
            refund(amount)


def test_what_would_be_judged_in_part_is_not_sent(liar: str) -> None:
    guarded = Gate(f"{liar}/unsent", TOKEN).guarded("mail", on_error=str)
    for value in ({1.0}, b"1", object(), date, {"deep": {1: "a"}}, [type("Text", (str,), {})("1")]):
        with pytest.raises(TypeError, match="'to' is a"):
            guarded(lambda to: pytest.fail("it ran"))(value)
    assert "unsent" not in Liar.seen
    given = (Decimal("1.50"), date(2026, 1, 2), HTTPMethod.PUT, {"a": [None, True, 1.5]})
    assert plain("to", given) == ["1.50", "2026-01-02", "PUT", given[-1]]


def test_a_function_is_guarded_by_a_name_and_runs_before_its_report() -> None:
    async def streams() -> Any:
        yield 1

    gate = Gate("https://h", TOKEN)
    for body in (lambda: (yield), streams, partial(print), date, gate):
        with pytest.raises(TypeError, match="right above a def"):
            gate.guarded("mail")(body)  # type: ignore[type-var]
    with pytest.raises(TypeError, match="the name of the tool"):
        gate.guarded(streams)  # type: ignore[arg-type]


def answer(body: Any, *headers: str, status: str = "200 OK", kind: str = "json") -> bytes:
    """An HTTP answer, byte by byte."""
    sent = body if isinstance(body, bytes) else json.dumps(body).encode()
    lines = (f"HTTP/1.1 {status}", f"Content-Type: application/{kind}", *headers, "", "")
    return "\r\n".join(lines).encode() + sent


SAID = {"verdict": "allowed", "request": "1", "run": "r", "warrant": "w"}
ANSWERS = {
    "nothing": b"",
    "noise": b"\x00" * 100,
    "page": answer(b"<h1>502</h1>", status="502 Bad Gateway", kind="html"),
    "moved": answer({}, "Location: /caught/gate/v1/calls", status="307 Temporary Redirect"),
    "half": answer(json.dumps(SAID).encode()[:-9], "Content-Length: 100"),
    "list": answer([]),
    "deep": answer(b"[" * 100_000),
    "large": answer({**SAID, "run": "x" * 2_000_000}),
    "other": answer({**SAID, "request": "2"}),
    "wordless": answer({"error": {"code": "GAT-001"}}, status="404 Not Found"),
}
KINDS = {**dict.fromkeys(("400", "404", "422"), Refused), "503": GateDown}
KINDS |= dict.fromkeys(("401", "403", "408", "409", "410", "429"), Unknown)
CODES = {"400": "GAT-005", "409": "GAT-007", "429": "GAT-017"}
TOLD = {it: {"code": CODES.get(it, "GAT-999"), "what": "", "why": "", "next": ""} for it in KINDS}
ERRORS = {it: answer({"error": TOLD[it]}, status=f"{it} No") for it in KINDS}
GOOD = {"allowed": answer(SAID), "done": answer({**SAID, "verdict": "done"})}


class Liar(BaseRequestHandler):
    """A server that is no gate: it answers as the address says."""

    seen: Counter[str] = Counter()

    def handle(self) -> None:
        asked = self.request.recv(65_536)
        name = asked.split(b"/")[1].decode()
        self.seen[name] += 1
        with suppress(OSError):  # the client has had enough
            if name == "silent":
                self.request.recv(1)
            elif name == "slow":
                for byte in answer(b" " * 1_000):
                    self.request.sendall(bytes([byte]))
                    time.sleep(0.02)
            elif name == "forgetful" and b"/report" not in asked and self.seen[name] > 1:
                self.request.sendall(answer(SAID))
            else:
                each = name.split(".")[: self.seen[name]][-1]  # one after another
                self.request.sendall({**ANSWERS, **ERRORS, **GOOD}.get(each, b""))


@pytest.fixture
def liar(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Its address."""
    monkeypatch.setattr(nanovm_client, "SECONDS_MAX", 1)
    monkeypatch.setattr(nanovm_client, "PAUSE_SECONDS", 0)
    Liar.seen.clear()
    with ThreadingTCPServer(("127.0.0.1", 0), Liar) as server:
        threading.Thread(target=server.serve_forever).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


def test_what_is_no_gate_lets_nothing_run_and_gets_no_further(liar: str) -> None:
    for name in (*ANSWERS, "silent", "slow"):
        gate = Gate(f"{liar}/{name}", TOKEN)
        before = time.monotonic()
        error = named("1", gate.guarded("mail")(lambda: pytest.fail("it ran")))
        assert (type(error), error.code, error.request) == (GateDown, "CLI-001", "1"), name
        assert TOKEN not in f"{gate!r} {error!r}", name
        assert ("HTTP 502" in str(error)) == (name == "page"), name
        assert time.monotonic() - before < 15, name
    assert Liar.seen == dict.fromkeys((*ANSWERS, "silent", "slow"), 2)  # once again, under its id


def test_an_error_says_what_is_known_of_the_call(liar: str) -> None:
    for status, kind in KINDS.items():
        gate = Gate(f"{liar}/{status}", TOKEN)
        error = named("1", gate.guarded("mail")(lambda: pytest.fail("it ran")))
        assert (type(error), error.code) == (kind, CODES.get(status, "GAT-999"))
        assert ("do not call it again" in str(error)) == isinstance(error, Unknown), status
        of_report = named("1", partial(gate.report, "1", "done"))
        assert type(of_report) is (GateDown if kind is GateDown else CallError), status


def test_what_ran_and_could_not_be_reported_is_not_lost(liar: str) -> None:
    guarded, seen = Gate(f"{liar}/forgetful", TOKEN).guarded, list[CallError]()
    lost = named("1", guarded("mail")(lambda: "sent"))
    assert (type(lost), lost.code, lost.result) == (Unknown, "CLI-002", "sent")
    for body in (lambda: "sent", lambda: 1 // 0, lambda: iter("ab")):  # an iterator has not run
        named("1", guarded("mail", (TypeError,), seen.append)(body))
    assert [each.code for each in seen] == ["CLI-002", "ZeroDivisionError", "TypeError"]
    assert all("do not call it again" in str(each) and each.__cause__ for each in seen)
    for once in (guarded("mail"), guarded("mail", (ZeroDivisionError,), str)):
        with pytest.raises(ZeroDivisionError) as raised:
            named("1", once(lambda: 1 // 0))
        assert "could not be reported" in raised.value.__notes__[0]


def test_a_lost_exchange_hides_no_effect(liar: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def report(*said: Any) -> Any:
        told.append(str(said))
        return sent(*said)

    told, sent = list[str](), Gate.report
    monkeypatch.setattr(Gate, "report", report)
    kept = ["allowed.nothing.done", "allowed.429.done", "allowed.nothing.409.done"]
    lost = ["nothing.404", "allowed.401", "allowed.nothing.404", "allowed.nothing.409.allowed"]
    for name in (*kept, "allowed.400.nothing.done", *lost):
        gate = Gate(f"{liar}/{name}", TOKEN)
        found = named("1" * ("allowed" in name), gate.guarded("mail")(lambda: "sent"))
        assert type(found) is Unknown if name in lost else found == "sent", name
        assert Liar.seen[name] == len(name.split(".")), name
    with pytest.raises(ZeroDivisionError):
        named("1", Gate(f"{liar}/allowed.400", TOKEN).guarded("mail")(lambda: 1 // 0))
    assert sum("It was performed" in each for each in told) == 2  # of the function that returned
    assert type(named("", partial(Gate(f"{liar}/401", TOKEN).call, "mail", {}))) is Refused


def test_an_address_with_more_in_it_and_no_token_are_refused() -> None:
    for url in ("ftp://h", "h", "https://", "https://a:b@h", "https://h?t=1", "https://h#t"):
        with pytest.raises(ValueError, match="no user, token or query"):
            Gate(url, TOKEN)
    for token in ("", "x", f"{TOKEN}\n", f"{TOKEN} ", "nvm1.ä"):
        with pytest.raises(ValueError, match="copy it whole") as refused:
            Gate("https://h", token)
        assert TOKEN not in str(refused.value)


OWN_ID = r"\(request ([0-9a-f]{18}|pyd_ai_[0-9a-f]{32})\)"  # the tool call's, as each names it
SHOWN = {"12.50": "Refunded 12.50 for order 1001", "80": OWN_ID, "900": "CAP-006"}
SOAKED = [pytest.param(amount, marks=pytest.mark.soak) for amount in ("12.50", "900")]


@pytest.mark.skipif(not AGENTS.exists(), reason="`make agents` makes the frameworks' environment")
@pytest.mark.parametrize("name", ["langgraph", "openai", "pydantic"])
@pytest.mark.parametrize("amount", ["80", *SOAKED])
@pytest.mark.whole
def test_agents_of_frameworks_work_behind_the_gate(door: Door, name: str, amount: str) -> None:
    env = {"GATE_URL": door.url, "GATE_TOKEN": door.clerk, "PYTHONPATH": str(ROOT)}
    command = [str(AGENTS), f"examples/agents/{name}_agent.py"]
    ran = subprocess.run(command, cwd=ROOT, env={**env, "AMOUNT": amount}, capture_output=True)
    assert re.search(SHOWN[amount], ran.stdout.decode()), ran.stderr.decode()
