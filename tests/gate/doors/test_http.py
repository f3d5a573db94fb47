"""The HTTP door: calls, what became of them, and what a token may call."""

import asyncio
import json
import logging
import re
import subprocess
from base64 import urlsafe_b64decode
from dataclasses import replace
from functools import reduce
from operator import getitem
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from django.db import OperationalError
from jsonschema import Draft202012Validator
from pytest_django.fixtures import Settings

from dashboard.web import counters, quotas
from engine.clock import now_ms
from engine.ops import disk
from engine.runtime import api, chains
from engine.worker.drive import drive_patiently
from gate import calls, identity
from gate.doors import http, openapi
from nanovm_core.core.authority.capabilities import ArgSpec, Tool
from nanovm_core.core.envelope import decode_snapshot
from nanovm_core.core.warrants import binding, check
from nanovm_core.errors import RefusedError
from tests.gate.conftest import Desk, Door
from tests.gate.doors.caller import CALL, Caller
from tests.kit.clock import Leap


@pytest.fixture
def caller(desk: Desk) -> Caller:
    return Caller(desk)


def test_an_allowed_call_is_handed_out_once_and_reported(caller: Caller) -> None:
    asked = caller.call("a/b c").said
    assert (asked["verdict"], asked["request"], asked["tool"]) == ("allowed", "a/b c", "mail")
    assert asked["report_by_ms"] > 0
    again = caller.call("a/b c")
    assert (again.status, again.said["error"]["code"]) == (409, "GAT-004")
    known = caller.get("calls/a%2Fb%20c").said
    assert known == {key: asked[key] for key in asked if key not in ("warrant", "report_by_ms")}
    result = {"id": 7, "paid": 98.7, "sent": {}}
    said = caller.send({"outcome": "done", "result": result}, "calls/a%2Fb%20c/report").said
    assert (said["verdict"], said["result"]) == ("done", result)
    assert caller.get("calls/a%2Fb%20c").said == said
    late = caller.send({"outcome": "failed"}, "calls/a%2Fb%20c/report")
    assert (late.status, late.said["error"]["code"]) == (409, "GAT-007")


def test_a_repeat_says_so_and_another_call_under_its_id_is_refused(caller: Caller) -> None:
    first = caller.call("1", "send", cents=60_000)
    assert (first.status, first.said["verdict"], first.said["rule"]) == (
        200,
        "refused",
        "desk-limit",
    )
    again = caller.call("1", "send", cents=60_000)
    assert again.said == first.said
    assert [each.headers.get("Idempotency-Replayed") for each in (first, again)] == [None, "true"]
    other = caller.call("1", "send", cents=60_001)
    assert (other.status, other.said["error"]["code"]) == (422, "GAT-002")


def test_a_held_call_is_a_handle(caller: Caller) -> None:
    held = caller.call("1", "send", cents=20_000, wait=25)
    hold = held.said["hold"]
    assert (held.status, held.said["verdict"], hold["rule"]) == (202, "held", "look-first")
    assert hold["page"] == f"http://testserver/runs/{held.said['run']}/"
    assert hold["until_ms"] > 0
    assert caller.call("1", "send", cents=20_000).said == held.said
    caller.call("2", to="all")
    api.approve(str(caller.desk.run("2").id), "visitor")
    assert "warrant" not in caller.get("calls/2").said
    assert caller.get("calls/2").said["next"].startswith("Send the call again")
    assert caller.call("2", to="all").said["warrant"]
    assert caller.call("2", to="all").status == 409


def test_a_call_that_is_performed_here_is_waited_for(
    caller: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    started = caller.call("0", "send")
    assert (started.status, started.said["verdict"]) == (202, "running")
    assert caller.call("0", "send").status == 409
    waits: list[float] = []

    async def sleep(seconds: float) -> None:
        waits.append(seconds)
        if len(waits) == 5:
            await sync_to_async(lambda: drive_patiently(str(caller.desk.run("1").id)))()

    monkeypatch.setattr(asyncio, "sleep", sleep)
    done = caller.call("1", "send", wait=25)
    assert (done.status, done.said["verdict"], done.said["result"]) == (200, "done", {"ok": True})
    assert waits == [0.02, 0.04, 0.08, 0.16, 0.25]
    assert "Idempotency-Replayed" not in done.headers
    monkeypatch.setattr(http, "WAITERS_MAX", 0)  # as where as many wait as may
    assert (caller.call("2", "send", wait=25).said["verdict"], len(waits)) == ("running", 5)
    assert len(caller.desk.sent) == 1


@pytest.mark.parametrize("to", ["ada", "all"])  # all: an approved one, taken five minutes later
def test_the_published_key_checks_a_warrant_until_its_report_is_due(
    caller: Caller, leap: Leap, to: str
) -> None:
    asked = caller.call("1", to=to).said
    if to == "all":
        api.approve(str(caller.desk.run("1").id), "visitor")
        leap(300_000)
        asked = caller.call("1", to=to).said
    token, until_ms = urlsafe_b64decode(asked["warrant"]), asked["report_by_ms"]
    key = caller.get("key", Authorization="").said
    public = Ed25519PublicKey.from_public_bytes(bytes.fromhex(key["public_key"]))
    now = decode_snapshot(bytes(caller.desk.run("1").snapshot))
    assert now.owed is not None
    bound = binding(now.run, now.program, now.owed)
    check(token, bound, public, at_ms=until_ms - 1)
    with pytest.raises(RefusedError, match="CAP-021"):
        check(token, bound, public, at_ms=until_ms)
    assert now_ms() < until_ms <= now.deadline_ms


@pytest.mark.parametrize("counted", [0, 1])
@pytest.mark.parametrize(
    ("place", "error"),
    [
        ((calls, "ask"), RuntimeError("4711 of a value")),
        ((calls, "ask"), OperationalError("database is locked")),
        ((identity, "holder"), OperationalError("database is locked")),
    ],
)
def test_an_error_of_the_server_is_answered_in_words_and_logs_no_value(
    caller: Caller, settings: Settings, monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture, place: Any, error: Exception, counted: int,
) -> None:  # fmt: skip
    settings.NANOVM_QUOTA_FACTOR = counted

    def broken(*_: object) -> None:
        raise error

    monkeypatch.setattr(*place, broken)  # type: ignore[call-overload]
    with caplog.at_level(logging.ERROR):
        answer = caller.send()
    assert (answer.status, answer.said["error"]["code"]) == (503, "GAT-019")
    assert "with GET" in answer.said["error"]["next"]
    assert type(error).__name__ in caplog.text
    assert "4711" not in caplog.text
    monkeypatch.undo()
    assert caller.done_nothing()


def test_a_token_is_counted_by_its_log_and_a_forged_one_by_its_address_alone(
    caller: Caller, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.NANOVM_QUOTA_FACTOR = 1
    monkeypatch.setattr(counters, "_here", counters.LocalCounters())
    limit = replace(quotas.CALLS, workspace=3, address=50)
    monkeypatch.setitem(quotas.INSTEAD, "gate", limit)

    def statuses(token: str, count: int) -> list[int]:
        own = {"Authorization": f"Bearer {token}"}
        return [caller.get("tools", **own).status for _ in range(count)]

    token = caller.desk.token
    assert statuses(token[:-1] + "~", 9) + statuses(token[:-4] + "AAAA", 9) == [401] * 18
    assert statuses(token, 4) == [200, 200, 200, 429]
    assert statuses(identity.issue(chains.create().id, "one", "desk", by="test"), 1) == [200]
    full = caller.send()
    assert full.said["error"]["code"] == "GAT-017"
    assert "One workspace may send 3 requests a minute to the gate" in full.said["error"]["what"]
    assert int(full.headers["Retry-After"]) > 0
    monkeypatch.setitem(quotas.INSTEAD, "gate", replace(limit, address=1))
    assert caller.get("key", Authorization="").status == 429
    assert caller.done_nothing()


def test_without_room_no_call_is_taken_and_one_under_way_is_reported(
    caller: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    caller.call("1")
    monkeypatch.setattr(disk, "FULL_BYTES", 1 << 62)
    full = caller.call("2")
    assert (full.status, full.said["error"]["code"]) == (507, "GAT-017")
    assert caller.send({"outcome": "done"}, "calls/1/report").said["verdict"] == "done"


KINDS = {
    "text": ArgSpec(type="string", length_max=5),
    "word": ArgSpec(type="string", one_of=("a", "b"), optional=True, default="b"),
    "count": ArgSpec(type="integer", min=1, max=9),
    "flag": ArgSpec(type="boolean", optional=True),
    "paid": ArgSpec(type="decimal", currency="EUR", min=1, max=500_000),
    "yen": ArgSpec(type="decimal", currency="JPY", optional=True, default=100),
    "names": ArgSpec(type="list", of="string", items_max=2, length_max=5),
    "hidden": ArgSpec(type="ref"),
    "fee": ArgSpec(type="decimal", currency="EUR", one_of=(50, 100), optional=True),
    "fees": ArgSpec(type="list", of="decimal", currency="EUR", optional=True, default=(50,)),
    "iban": ArgSpec(type="string", plain=True, optional=True, default=""),
}
FITS = {"text": "abcde", "count": 9, "paid": "98.70", "names": ["a"], "hidden": "any"}


def test_the_schema_of_a_tool_takes_what_fits_and_refuses_the_rest() -> None:
    schema = openapi.schema_of(Tool(name="t", args=KINDS))
    Draft202012Validator.check_schema(schema)
    takes = Draft202012Validator(schema).is_valid
    fitting: Any = ({"word": None}, {"yen": 7}, {"paid": 0.01}, {"paid": 5000}, {"names": []})
    fitting += ({"fee": 0.5}, {"fee": "0.5"}, {"iban": "DE 1"}, {"iban": ""})
    for more in fitting:
        assert takes({**FITS, **more}), more
    for bad in (
        {"text": "abcdef"}, {"word": "c"}, {"count": 0}, {"count": "9"}, {"flag": 1},
        {"paid": "98.701"}, {"paid": 5000.01}, {"paid": "1e3"}, {"yen": "7.5"},
        {"names": ["a", "b", "c"]}, {"names": [1]}, {"hidden": 1}, {"other": 1}, {"count": None},
        {"iban": "DE1 "}, {"iban": "ＤＥ1"},
    ):  # fmt: skip
        assert not takes({**FITS, **bad}), bad
    defaults = [schema["properties"][name]["default"] for name in ("yen", "fees")]
    assert defaults == ["100", ["0.50"]]
    assert not takes({key: FITS[key] for key in FITS if key != "text"})


def example(schema: Any) -> Any:
    """A value that fits a schema of the gate."""
    if "const" in schema or "enum" in schema:
        return schema.get("const") or schema["enum"][0]
    if "anyOf" in schema:
        return example(schema["anyOf"][0])
    if schema["type"] == "object":
        return {name: example(schema["properties"][name]) for name in schema["required"]}
    usual = {"integer": schema.get("minimum", 1), "boolean": True, "array": [], "string": "x"}
    return usual.get(str(schema["type"]), "1")


@pytest.mark.parametrize("program", ["desk", "bank_assistant", "help_desk"])
def test_openapi_is_one_and_a_request_made_from_it_is_accepted(
    caller: Caller, program: str
) -> None:
    own = {"Authorization": f"Bearer {identity.issue(caller.desk.log.id, 'a', program, by='test')}"}
    said = caller.get("openapi.json", **own).said
    assert said["openapi"].startswith("3.1.")
    assert said["servers"] == [{"url": "http://testserver/gate/v1"}]
    for reference in re.findall(r'"#/([^"]*)"', json.dumps(said)):
        reduce(getitem, reference.split("/"), said)
    for schema in openapi.SCHEMAS.values():
        Draft202012Validator.check_schema(schema)
    for path, operations in said["paths"].items():
        assert ("{request}" in path) == ("parameters" in operations)
        (method,) = operations.keys() - {"parameters"}
        there, status = path[1:].replace("{request}", "none"), 200 if path == "/key" else 401
        asked = caller.send({}, there, method.upper(), Authorization="")
        assert asked.status == status, path
    assert f'"maximum": {openapi.WAIT_S_MAX}' in json.dumps(said["paths"]["/calls"])
    content = said["paths"]["/calls"]["post"]["requestBody"]["content"]["application/json"]
    calls = {each["properties"]["tool"]["const"]: each for each in content["schema"]["oneOf"]}
    listed = {each["name"]: each["args"] for each in caller.get("tools", **own).said["tools"]}
    assert listed == {name: each["properties"]["args"] for name, each in calls.items()} != {}
    for name, schema in calls.items():
        Draft202012Validator.check_schema(schema)
        answer = caller.send({**example(schema), "request": name}, "calls?wait=0", **own)
        assert answer.said["checks"]["schema"] == "passed", answer.said


def test_curl_makes_a_call_at_the_real_server(door: Door) -> None:
    def curl(*words: str, body: bytes = b"") -> Any:
        command = ["curl", "-sS", "-w", "\n%{http_code}", *words]
        ran = subprocess.run(command, input=body, capture_output=True, check=True)
        said, _, status = ran.stdout.decode().rpartition("\n")
        return int(status), json.loads(said)

    own = ["-H", f"Authorization: Bearer {door.token}", "-H", "Content-Type: application/json"]
    at = f"{door.url}/gate/v1/calls"
    status, said = curl(*own, "-d", json.dumps(CALL), at)
    assert (status, said["verdict"], bool(said["warrant"])) == (200, "allowed", True)
    status, said = curl(*own, "-d", '{"outcome": "done"}', f"{at}/1/report")
    assert (status, said["verdict"]) == (200, "done")
    assert curl(*own, f"{at}/1")[1] == said
    for words, body, refused in (
        ((*own, "--data-binary", "@-"), b" " * 2_000_000, (413, "GAT-006")),
        ((*own, "-X", "DELETE"), b"", (405, "GAT-018")),
        (("-H", "Host: evil.example"), b"", (400, "GAT-005")),
    ):
        status, said = curl(*words, at, body=body)
        assert (status, said["error"]["code"]) == refused
