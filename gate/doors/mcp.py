"""The MCP door: the same calls and answers, through the official library, in both revisions.

Each request has a server and a session manager of its own: no task outlives it, and no server of
pages has to start one. The library's reader makes floats, so arguments are taken from the body.
"""

import asyncio
import json
import re
from collections.abc import MutableMapping
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

import mcp_types as types
import orjson
from asgiref.sync import sync_to_async
from django.http import HttpRequest, HttpResponse
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.shared.exceptions import MCPError

from gate import calls
from gate.application import granted
from gate.doors import errors, http, openapi, wire
from gate.identity import Holder
from gate.replies import ALLOWED, FAILED, HELD, REFUSED, UNKNOWN, GateError, Reply
from nanovm_core.core.authority.capabilities import Tool
from nanovm_core.core.canonical import DEPTH_MAX, UNTRUSTED_DEPTH_MAX
from nanovm_core.core.program import Program
from nanovm_core.core.proposals import written as proposal

REPORT = "nanovm.report"
REQUEST = "nanovm/request"  # of a call's _meta: its request id
ERRORS = (REFUSED, FAILED, UNKNOWN)
ACCEPT = (b"accept", b"application/json, text/event-stream")
_PERFORMED = {
    True: "Judged by nanovm, then performed by it.",
    False: f"Judged by nanovm. Where it answers with a warrant, perform it; then {REPORT}.",
}
_REPORT = types.Tool(
    name=REPORT,
    description="Says what became of a call that you performed under a warrant.",
    input_schema={
        **openapi.SCHEMAS["Report"],
        "properties": {"request": {"type": "string"}, **openapi.SCHEMAS["Report"]["properties"]},
        "required": ["request", "outcome"],
    },
)


async def serve(request: HttpRequest) -> HttpResponse:
    """One message of a client, and its answer in JSON; GAT-005 for what the library would quote."""
    exchange = _Exchange(request, *await sync_to_async(http.asking)(request), http.body_of(request))
    if not _is_message(exchange.body):
        wire.read(exchange.body)  # where it is no strict JSON, this says what is wrong with it
        raise GateError("GAT-005")
    info = openapi.document(exchange.program, "")["info"]
    about: Any = {"version": info["version"], "instructions": info["description"]}
    server = Server("nanovm", **about, on_list_tools=exchange.tools, on_call_tool=exchange.call)
    manager = StreamableHTTPSessionManager(server, json_response=True, stateless=True)
    scope: dict[str, Any] = {**request.scope}  # type: ignore[attr-defined]
    scope["headers"] = [ACCEPT, *scope["headers"]]  # the first one counts
    async with manager.run():
        await manager.handle_request(scope, exchange.receive, exchange.send)
    if exchange.answer.status_code >= 400:
        wire.read(exchange.body)  # its reader is another one: what it refuses has a code here
    return exchange.answer


@dataclass
class _Exchange:
    """A request of an agent while the library handles it."""

    request: HttpRequest
    holder: Holder
    program: Program
    body: bytes
    answer: HttpResponse = field(default_factory=HttpResponse)
    is_read: bool = False

    async def receive(self) -> dict[str, Any]:
        """The body, once; then nothing: the library asks on until a client has gone."""
        if self.is_read:
            await asyncio.Future[None]()  # ends with the task that waits for it
        self.is_read = True
        return {"type": "http.request", "body": self.body, "more_body": False}

    async def send(self, message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            headers = {name.decode(): value.decode() for name, value in message["headers"]}
            kind = headers.get("content-type", "application/json")
            self.answer = HttpResponse(status=message["status"], content_type=kind)
            self.answer.headers["Cache-Control"] = "no-store"
        else:
            self.answer.content += message.get("body", b"")

    async def tools(self, _: Any, __: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        """The tools that the agent may call, and the report where it performs one."""
        try:
            tools = granted(self.program)
            report = [] if all(tool.at for tool in tools) else [_REPORT]
            return types.ListToolsResult(tools=[*map(_listed, tools), *report])
        except Exception as error:  # noqa: BLE001 - the library would tell it in its own words
            told = errors.told(error)
            raise MCPError(types.INTERNAL_ERROR, str(told), told.as_json()) from None

    async def call(
        self, context: ServerRequestContext[Any], params: types.CallToolRequestParams
    ) -> types.CallToolResult | types.InputRequiredResult:
        """What became of a call; nothing is raised, since the library says no word of an error."""
        try:
            depth_max = DEPTH_MAX if params.name == REPORT else UNTRUSTED_DEPTH_MAX
            said = wire.read(self.body, depth_max=depth_max)["params"]
            args, meta = said.get("arguments") or {}, said.get("_meta") or {}
            if params.name == REPORT:
                return await self._reported(args)
            name = _id(meta.get(REQUEST, params.request_state or str(uuid4())))
            reply = await self._asked(name, proposal(said["name"], args))
        except Exception as error:  # noqa: BLE001 - the library would tell it in its own words
            return _result(errors.told(error).as_json(), is_error=True)
        answer = http.said_of(self.request, name, reply)
        able = context.session.client_capabilities
        opens = bool(able and able.elicitation and able.elicitation.url)
        if reply.verdict == HELD and opens and params.request_state is None:
            page = types.ElicitRequestURLParams(message=reply.why, url=answer["hold"]["page"])
            asked: dict[str, Any] = {"person": types.ElicitRequest(params=page)}
            return types.InputRequiredResult(input_requests=asked, request_state=name)
        return _result(answer, is_error=reply.verdict in ERRORS)

    async def _asked(self, name: str, call: bytes) -> Reply:
        """What became of a call by now; asked again, also of one that is under way."""
        try:
            reply = await sync_to_async(calls.ask)(self.holder, name, call)
        except GateError as error:
            if error.code != "GAT-004":
                raise
            reply = await sync_to_async(calls.answer)(self.holder, name)
            if reply.verdict == ALLOWED:  # its warrant is out, and must not be used twice
                raise
        return await http.outcome(self.holder, name, reply, openapi.WAIT_S_MAX)

    async def _reported(self, args: dict[str, Any]) -> types.CallToolResult:
        name = _id(args.pop("request", None))
        said = wire.reported(wire.written(args))
        reply = await sync_to_async(calls.report)(self.holder, name, **said)
        return _result(http.said_of(self.request, name, reply), is_error=reply.verdict in ERRORS)


def _listed(tool: Tool) -> types.Tool:
    words, schema = re.sub("[._]+", " ", tool.name).capitalize(), openapi.schema_of(tool)
    said = f"{words}. {_PERFORMED[bool(tool.at)]}"
    return types.Tool(name=tool.name, description=said, input_schema=schema)


def _is_message(body: bytes) -> bool:
    """Whether a body is one message of JSON-RPC that can be answered, or needs no answer."""
    try:
        said: Any = json.loads(body) if len(body) <= wire.BODY_BYTES_MAX else None
        kind = types.JSONRPCRequest if "id" in said else types.JSONRPCNotification
        method = kind.model_validate(said).method
    except (ValueError, TypeError, RecursionError):
        return False
    return "id" in said or method.startswith("notifications/")


def _id(said: object) -> str:
    if not isinstance(said, str):
        raise GateError("GAT-005", "A request id is text.")
    return said


def _result(said: dict[str, Any], *, is_error: bool = False) -> types.CallToolResult:
    """The answer twice: in words, exact, and as the structure that the library's numbers hold."""
    raw = wire.written(said)
    text, same = types.TextContent(text=raw.decode()), orjson.loads(raw)
    return types.CallToolResult(content=[text], structured_content=same, is_error=is_error)
