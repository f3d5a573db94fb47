"""The two ways to perform a call at an upstream: by MCP, and by plain HTTP."""

import asyncio
import hashlib
import json
import logging
from decimal import Decimal
from typing import Any, NamedTuple
from urllib.parse import quote

import mcp_types as types
import orjson
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError

from engine.errors import EffectError, NotSentError, OutcomeUnknownError, PermanentError
from gate.upstreams.line import FAILED, RESULT_BYTES_MAX, UNREADABLE, Line
from gate.upstreams.listed import Upstream

log = logging.getLogger(__name__)
PIN = "GAT-008"
PAGES_MAX = 20  # of a list of tools
_PINNED = b"nanovm/pinned-tool/v1\0"
_JSON = {"Content-Type": "application/json"}


class Call(NamedTuple):
    """A tool's name, the hash that its description must have, its arguments, the effect's key."""

    tool: str
    pinned: str
    args: bytes  # a JSON object, its numbers exact
    key: str
    pays: bool = False  # it moves money: no word of its upstream frees the budget
    repeats: bool = False  # it may be sent again


def perform(upstream: Upstream, call: Call) -> bytes:
    """Make a call, at most once; its result as JSON.

    Raises:
        EffectError: as ``gate.upstreams.perform``.
    """
    line, exchange = Line(upstream, call.key), _by_mcp if upstream.kind == "mcp" else _by_http
    found: list[bytes | EffectError] = []  # which counts, even where closing the session fails
    try:
        asyncio.run(asyncio.wait_for(exchange(line, call, found), upstream.timeout_ms / 1000))
    except EffectError:
        raise  # before anything was sent
    except Exception as error:  # noqa: BLE001 - of two libraries, in groups; some quote the answer
        log.warning("an upstream's exchange ended: %s", type(error).__name__)
    answer = found[0] if found else line.fault()
    if line.sent and isinstance(answer, PermanentError | NotSentError):
        if call.pays:
            text = f"{answer.text} It moves money: look there, then decide."
            raise OutcomeUnknownError(answer.code, text)
        answer = answer if call.repeats else PermanentError(FAILED, answer.text)
    if isinstance(answer, EffectError):
        raise answer
    return _checked(answer)


async def _by_http(line: Line, call: Call, found: list[bytes | EffectError]) -> None:
    """POST the arguments to the upstream's address and the tool's name; the answer as it came."""
    if call.pinned:
        text = "Plain HTTP describes no tool, so none can be pinned: remove pinned, or use MCP."
        raise PermanentError(PIN, text)
    url = f"{line.upstream.url.rstrip('/')}/{quote(call.tool, safe='')}"
    async with line.client() as http:
        answer = await http.post(url, content=call.args, headers=_JSON)
    found.append((answer.content or b"null") if answer.is_success else line.fault())


async def _by_mcp(line: Line, call: Call, found: list[bytes | EffectError]) -> None:
    """Call the tool by MCP, if it is the pinned one."""
    args = json.loads(call.args, parse_float=_exact)
    async with line.client() as http:
        way = streamable_http_client(line.upstream.url, http_client=http)
        async with Client(way, cache=None) as client:
            found.append(await _called(line, call, args, client))


async def _called(
    line: Line, call: Call, args: dict[str, Any], client: Client
) -> bytes | EffectError:
    """Compare the tool with its pin, then call it."""
    hashes = await _hashes(call.tool, client)
    if not call.pinned or hashes != [call.pinned]:
        there = ", ".join(hashes) or "nothing: it lists no such tool"
        text = f"The upstream's tool hashes to {there}. The program pins {call.pinned or 'nothing'}"
        return PermanentError(PIN, f"{text}; nothing was sent.")
    meta: Any = {"nanovm/request": call.key}
    params = types.CallToolRequestParams(name=call.tool, arguments=args, _meta=meta)
    try:  # not by call_tool, which compares the answer with a schema of theirs, without a limit
        answer = await client.session.send_request(
            types.CallToolRequest(params=params), types.CallToolResult
        )
    except MCPError as error:
        return line.fault(error.code in (types.INVALID_PARAMS, types.METHOD_NOT_FOUND))
    if answer.is_error:
        return PermanentError(FAILED, "The upstream's tool says that it failed.")
    said: Any = answer.structured_content
    if said is None:
        blocks = [each.model_dump(mode="json", exclude_none=True) for each in answer.content]
        said = blocks[0]["text"] if [each["type"] for each in blocks] == ["text"] else blocks
    return json.dumps(said, ensure_ascii=False).encode()


async def _hashes(tool: str, client: Client) -> list[str]:
    """The hash of each tool of this name in the whole list: name, description and schemas."""
    found, params = [], None
    for _ in range(PAGES_MAX):
        page = await client.session.list_tools(params=params)
        for each in page.tools:
            if each.name == tool:
                said = [each.name, each.description, each.input_schema, each.output_schema]
                text = json.dumps(said, sort_keys=True, separators=(",", ":"))
                found.append(hashlib.sha256(_PINNED + text.encode()).hexdigest())
        if page.next_cursor is None:
            return found
        params = types.PaginatedRequestParams(cursor=page.next_cursor)
    return []  # it has no end, so the tool may be there twice


def _exact(text: str) -> float:
    """A decimal as the library can send it: a float whose shortest form is this decimal."""
    if Decimal(repr(number := float(text))) != Decimal(text):
        raise PermanentError(FAILED, "A decimal has more digits than MCP's library sends exactly.")
    return number


def _checked(raw: bytes) -> bytes:
    """A result that can be sealed, and answered again: JSON of at most RESULT_BYTES_MAX."""
    try:
        orjson.dumps([[[[[[[[orjson.loads(raw)]]]]]]]])  # which no answer nests deeper
    except (ValueError, TypeError):  # it is none, or has over 246 levels
        raw = b""
    if not 0 < len(raw) <= RESULT_BYTES_MAX:
        text = (
            f"The upstream was called. Its result is no JSON, or over {RESULT_BYTES_MAX:,} bytes."
        )
        raise OutcomeUnknownError(UNREADABLE, f"{text} Look there, then decide.")
    return raw
