"""The MCP door over real HTTP: the official client in both revisions, and raw messages."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import pytest
from django.test import AsyncRequestFactory
from mcp.client import Client, ClientRequestContext
from mcp.client.streamable_http import streamable_http_client
from mcp_types import CallToolResult, ElicitRequestParams, ElicitResult

from engine.application import of_program
from engine.store import programs
from gate.doors import http, mcp
from tests.gate.conftest import Desk, Door

REVISIONS = ("legacy", "2026-07-28", "auto")
CALL = {"jsonrpc": "2.0", "id": 1, "method": "tools/call"}


@asynccontextmanager
async def client_of(door: Door, mode: str, **more: Any) -> AsyncIterator[Client]:
    headers = {"Authorization": f"Bearer {door.token}"}
    async with httpx2.AsyncClient(headers=headers, timeout=60) as web:
        transport = streamable_http_client(f"{door.url}/gate/mcp", http_client=web)
        async with Client(transport, mode=mode, **more) as client:
            yield client


async def call(client: Client, request: str, tool: str, **args: Any) -> CallToolResult:
    meta: Any = {"nanovm/request": request}
    return await client.call_tool(tool, args, meta=meta)


def said(result: CallToolResult) -> tuple[bool, str, str]:
    """Whether it is an error, the verdict, and the code."""
    found = result.structured_content
    assert result.content[0].type == "text"
    assert json.loads(result.content[0].text) == found
    error = found.get("error", {})
    return result.is_error, found.get("verdict", ""), found.get("rule") or error.get("code", "")


async def story(door: Door, mode: str) -> None:
    async with client_of(door, mode) as agent:
        tools = (await agent.list_tools()).tools
        assert [tool.name for tool in tools] == ["mail", "send", "nanovm.report"]
        assert tools[1].input_schema["required"] == ["to", "cents"]
        assert [str(tool.description)[:5] for tool in tools[:2]] == ["Mail.", "Send."]
        about = f"{agent.instructions} {agent.server_info}"  # of a client that asks
        assert mode == "2026-07-28" or ("hold.page" in about and "version=''" not in about)
        one = f"{mode} 1"
        allowed = await call(agent, one, "mail", to="ada", body="Hello")
        assert said(allowed) == (False, "allowed", "any-mail")
        assert allowed.structured_content["warrant"]
        assert said(await call(agent, one, "mail", to="ada", body="Hello"))[0::2] == (
            True,
            "GAT-004",
        )
        assert said(await call(agent, one, "mail", to="bob", body="Hello"))[0::2] == (
            True,
            "GAT-002",
        )
        unknown = {"request": one, "outcome": "unknown"}  # a later word counts
        assert said(await agent.call_tool("nanovm.report", unknown)) == (True, "unknown", "GAT-016")
        kept = {"id": 7, "deep": json.loads("[" * 58 + "]" * 58)}
        report = {"request": one, "outcome": "done", "result": kept}
        assert said(await agent.call_tool("nanovm.report", report))[:2] == (False, "done")
        again = await call(agent, one, "mail", to="ada", body="Hello")
        assert (again.is_error, again.structured_content["result"]) == (False, kept)
        assert said(await agent.call_tool("nanovm.report", report)) == (True, "", "GAT-007")
        refused = await call(agent, f"{mode} 2", "send", to="a", cents=60_000)
        assert said(refused) == (True, "refused", "desk-limit")
        assert said(await agent.call_tool("rob", {}))[:2] == (True, "refused")
        assert said(await agent.call_tool("mail", {"to": "ada"}))[:2] == (True, "refused")
        held = [await call(agent, f"{mode} 3", "send", to="a", cents=20_000) for _ in range(2)]
        assert said(held[0]) == said(held[1]) == (False, "held", "look-first")
        hold = held[0].structured_content["hold"]
        assert hold == held[1].structured_content["hold"]
        assert f"/runs/{hold['run']}" in hold["page"]


@pytest.mark.parametrize("mode", REVISIONS)
def test_both_revisions_list_call_and_read_what_became_of_it(door: Door, mode: str) -> None:
    asyncio.run(story(door, mode))


def test_a_held_call_asks_for_a_person_where_the_client_can_open_a_page(door: Door) -> None:
    opened: list[Any] = []

    async def open_page(_: ClientRequestContext, asked: ElicitRequestParams) -> ElicitResult:
        opened.append(asked)
        return ElicitResult(action="accept")

    async def ask() -> CallToolResult:
        async with client_of(door, "2026-07-28", elicitation_callback=open_page) as agent:
            return await agent.call_tool("send", {"to": "b", "cents": 20_000})

    held = asyncio.run(ask())
    assert said(held) == (False, "held", "look-first")
    [asked] = opened  # once, though nobody decided: its second answer is the handle
    assert asked.url == held.structured_content["hold"]["page"]


def test_copies_of_a_call_at_once_hand_out_one_warrant(door: Door) -> None:
    async def ask(mode: str) -> CallToolResult:
        async with client_of(door, mode) as agent:
            return await call(agent, "at once", "mail", to="ada", body="Hello")

    async def all_at_once() -> list[CallToolResult]:
        return await asyncio.gather(*(ask(REVISIONS[each % 3]) for each in range(12)))

    found = sorted(said(each) for each in asyncio.run(all_at_once()))
    assert found == [(False, "allowed", "any-mail")] + [(True, "", "GAT-004")] * 11


ARGS = {
    "NaN": b'{"to":"a","cents":NaN}',
    "too great": b'{"to":"a","cents":1' + b"0" * 30 + b"}",
    "twice": b'{"to":"a","cents":1,"cents":2}',
    "deep": b'{"to":' + b"[" * 40 + b"]" * 40 + b"}",
}


@pytest.mark.parametrize("fault", ARGS)
def test_arguments_that_readers_disagree_on_are_refused_in_an_answer(
    door: Door, fault: str
) -> None:
    params = b'{"name":"send","arguments":%b}' % ARGS[fault]
    body = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":%b}' % params
    status, answer = door.post(body)
    assert (status, answer["result"]["isError"]) == (200, True)
    assert answer["result"]["structuredContent"]["error"]["code"] == "GAT-005"


LISTING = b'{"jsonrpc":"2.0","id":1,"method":"tools/list"}'
REQUESTS: dict[str, tuple[bytes, dict[str, Any], int, str]] = {
    "no token": (LISTING, {"Authorization": None}, 401, "GAT-003"),
    "another's": (LISTING, {"Authorization": "Bearer nvm1.a.b.c.d"}, 401, "GAT-003"),
    "in the address": (LISTING, {"path": "/gate/mcp?token=x"}, 400, "GAT-005"),
    "no JSON": (LISTING, {"Content_Type": "text/plain"}, 415, "GAT-011"),
    "another site": (LISTING, {"Origin": "https://evil.example"}, 403, "GAT-018"),
    "2 MB": (b" " * 2_000_000, {}, 413, "GAT-006"),
    "half": (b'{"jsonrpc":', {}, 400, "GAT-005"),
    "deep": (b"[" * 1_000 + b"]" * 1_000, {}, 400, "GAT-005"),
    "very deep": (b"[" * 30_000, {}, 400, "GAT-005"),
    "no text": (b'{"jsonrpc":"\xff"}', {}, 400, "GAT-005"),
    "no message": (b'{"id":1}', {}, 400, "GAT-005"),
    "a byte order mark": (b"\xef\xbb\xbf" + LISTING, {}, 400, "GAT-005"),
    "a list of parameters": (LISTING[:-1] + b',"params":[]}', {}, 400, "GAT-005"),
    "several": (b"[%b]" % LISTING, {}, 400, "GAT-005"),
    **{
        f"the id {each.decode()}": (LISTING.replace(b"1,", each + b","), {}, 400, "GAT-005")
        for each in (b"null", b"1.5", b"[]", b"{}", b"true", b"1e400")
    },
    "no id": (LISTING.replace(b'"id":1,', b""), {}, 400, "GAT-005"),
}


@pytest.mark.parametrize("fault", REQUESTS)
@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28", "1900-01-01"])
def test_a_request_that_is_none_has_a_code_and_is_no_error_of_the_server(
    door: Door, fault: str, revision: str
) -> None:
    body, headers, expected, code = REQUESTS[fault]
    status, answer = door.post(body, MCP_Protocol_Version=revision, **headers)
    assert (status, answer["error"]["code"]) == (expected, code)


@pytest.mark.parametrize("body", [b'{"jsonrpc":"2.0","id":1,"method":"tools/call"}', LISTING])
@pytest.mark.parametrize("accept", [None, "text/event-stream"])
def test_a_message_is_answered_by_the_protocol(door: Door, body: bytes, accept: Any) -> None:
    for revision in ("2025-11-25", "2026-07-28", "1900-01-01"):
        status, answer = door.post(body, MCP_Protocol_Version=revision, Accept=accept)
        assert status in (200, 400)
        assert "result" in answer or answer["error"]["code"] < 0


def test_no_message_keeps_the_server_from_others(door: Door) -> None:
    about = {"protocolVersion": "2026-07-28", "clientCapabilities": {}}
    meta = {f"io.modelcontextprotocol/{key}": said for key, said in about.items()}
    asked = {"notifications": {"toolsListChanged": True}, "_meta": meta}
    listen = {**CALL, "method": "subscriptions/listen", "params": asked}
    headers = {"MCP_Protocol_Version": "2026-07-28", "Mcp_Method": "subscriptions/listen"}
    status, answer = door.post(json.dumps(listen).encode(), **headers)
    assert (status, answer["error"]["code"]) == (404, -32601)
    assert door.post(LISTING)[0] == 200


@pytest.mark.parametrize("breaks", [False, True])
def test_a_request_leaves_no_task_behind_and_tells_no_error_of_ours(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, breaks: bool
) -> None:
    asking = (desk.holder, programs.current(of_program("desk")))
    monkeypatch.setattr(http, "asking", lambda _: asking)
    monkeypatch.setattr(mcp, "granted", lambda _: int("card 4111") if breaks else [])
    takes = {"Accept": "application/json"}
    made = AsyncRequestFactory().post("/gate/mcp", LISTING, "application/json", headers=takes)

    async def ask() -> str:
        answer = await mcp.serve(made)
        assert (answer.status_code, asyncio.all_tasks()) == (200, {asyncio.current_task()})
        return answer.content.decode()

    found = asyncio.run(ask())
    assert ("4111" in found, "GAT-019" in found, '"tools"' in found) == (False, breaks, not breaks)
