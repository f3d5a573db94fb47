"""Our web server before an application whose answer is large: ``python -m ... PORT SECONDS``."""

import asyncio
import runpy
import sys
from typing import Any

import config.asgi  # noqa: F401 - sets Django up, which the next one needs
from config.web import connections

PIECE = b"%" * 65_536
PIECES = 1_024
given: list[int] = []  # of each answer, the pieces so far
ended: list[str] = []


async def app(scope: Any, receive: Any, send: Any) -> None:
    """``/large`` is the answer; any other page says how much of it was made, and how it ended."""
    await receive()
    await send({"type": "http.response.start", "status": 200, "headers": []})
    if scope["path"] != "/large":
        said = f"{given} {ended}".encode()
        await send({"type": "http.response.body", "body": said})
        return
    gone, number = asyncio.ensure_future(receive()), len(given)
    given.append(0)
    while given[number] < PIECES and not gone.done():
        await send({"type": "http.response.body", "body": PIECE, "more_body": True})
        given[number] += 1
        await asyncio.sleep(0)  # as a real one, which waits for its database
    ended.append("cut off" if gone.done() else "whole")
    await send({"type": "http.response.body"})
    gone.cancel()


if __name__ == "__main__":
    connections.READING_SECONDS_MAX = int(sys.argv.pop(2))
    sys.argv[1:] = ["--port", sys.argv[1], "tests.house.web.large_answers:app"]
    runpy.run_module("config.web", run_name="__main__", alter_sys=True)
