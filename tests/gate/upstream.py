"""An upstream by MCP and by plain HTTP: ``python -m tests.gate.upstream PORT FOLDER``.

Each run of a tool is a line in FOLDER/ran: the tool, the effect's key, its arguments. Whose process
id FOLDER/arrived or FOLDER/booked names is killed before that line is written, or after it.
"""

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import uvicorn
from mcp.server.lowlevel import Server
from mcp_types import (
    CallToolRequestParams,
    CallToolResult,
    ListToolsResult,
    PaginatedRequestParams,
    TextContent,
    Tool,
)
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Route

TOOLS = ("pay", "hang", "die", "big", "fails", "lies", "twice", "moves")
TOTAL = {"type": "object", "properties": {"total": {"type": "integer"}}, "required": ["total"]}
folder = Path(sys.argv[2])
listed = 0


def kill(moment: str) -> None:
    if (file := folder / moment).exists():
        victim = int(file.read_text())
        file.unlink()
        os.kill(victim, signal.SIGKILL)


def ran(tool: str, key: str, args: Any) -> int:
    kill("arrived")
    with (folder / "ran").open("a") as lines:
        lines.write(json.dumps([tool, key, args]) + "\n")
    kill("booked")
    return len((folder / "ran").read_text().splitlines())


async def listing(_: Any, __: PaginatedRequestParams | None) -> ListToolsResult:
    global listed
    listed += 1
    said = {each: each for each in TOOLS} | {"moves": f"moves {listed}"}
    tools = [
        Tool(
            name=each,
            description=said[each],
            input_schema={"type": "object"},
            output_schema=TOTAL if each == "lies" else None,
        )
        for each in (*TOOLS, "twice")
    ]
    return ListToolsResult(tools=tools)


async def called(context: Any, asked: CallToolRequestParams) -> CallToolResult:
    key = (context.meta or {}).get("nanovm/request", "")
    is_same = key == context.request.headers.get("Idempotency-Key")
    number = ran(asked.name, key if is_same else "", asked.arguments)
    await misbehave(asked.name)
    text = TextContent(text="x" * 2_000_000 if asked.name == "big" else "card 4111")
    if asked.name in ("big", "fails"):
        return CallToolResult(content=[text], is_error=asked.name == "fails")
    said = {"total": "many"} if asked.name == "lies" else {"number": number}
    return CallToolResult(content=[text], structured_content=said)


async def misbehave(tool: str) -> None:
    if tool == "die":
        os._exit(1)
    if tool == "hang":
        await asyncio.sleep(60)


async def plain(request: Request) -> Response:
    tool = request.path_params["tool"]
    if tool == "mcp":
        return RedirectResponse("/mcp", status_code=307)
    if tool == "elsewhere":
        return RedirectResponse("/plain/pay", status_code=307)
    number = ran(tool, request.headers["Idempotency-Key"], (await request.body()).decode())
    if tool.isdecimal():
        return Response(b"NaN", status_code=int(tool))
    await misbehave(tool)
    if tool == "deep":
        return Response(b"[" * 250 + b"]" * 250)
    if tool == "big":
        return StreamingResponse(endless(), media_type="application/json")
    return JSONResponse({"number": number, "text": "x"})


async def endless() -> AsyncIterator[bytes]:
    for _ in range(100_000):
        await asyncio.sleep(0.001)  # else nobody hears that the client left
        yield b" " * 65_536


if __name__ == "__main__":
    server = Server("upstream", on_list_tools=listing, on_call_tool=called)
    routes = [Route("/plain/{tool}", plain, methods=["POST"])]
    app = server.streamable_http_app(custom_starlette_routes=routes)
    uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[1]), log_level="warning")
