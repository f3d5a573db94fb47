"""Turns of agents' requests: one at a time, and no page waits for them."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from config import asgi
from gate.doors import turns

Send = Callable[[str], "asyncio.Future[None]"]


@pytest.fixture(autouse=True)
def one_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "AT_ONCE", 1)
    monkeypatch.setattr(turns, "REST", 0)


def played(work: Callable[[str], Awaitable[object]], play: Callable[[Send], Any]) -> None:
    """``play`` sends requests to what works on each path."""

    async def application(scope: Any, _receive: object, _send: object) -> None:
        await work(scope["path"])

    async def loop() -> None:
        through = turns.Turns(application)
        await play(lambda path: asyncio.ensure_future(through({"path": path}, None, None)))

    asyncio.run(asyncio.wait_for(loop(), 10))


async def settled() -> None:
    """Everything that can go on has."""
    for _ in range(10):
        await asyncio.sleep(0)


def test_the_server_passes_each_request_through_turns() -> None:
    routes = asgi.application.application.application_mapping
    assert isinstance(routes["http"], turns.Turns)


def test_one_works_at_a_time_in_the_order_of_arrival_and_pages_beside_it() -> None:
    begun: list[str] = []
    ends: dict[str, asyncio.Event] = {}

    async def work(path: str) -> None:
        begun.append(path)
        await ends.setdefault(path, asyncio.Event()).wait()

    async def play(send: Send) -> None:
        first, gone, last, page = (send(f"/{each}") for each in ("gate/1", "gate/2", "gate/3", "p"))
        await settled()
        assert begun == ["/gate/1", "/p"]
        gone.cancel()  # it leaves no place behind, and takes none
        ends["/gate/1"].set()
        await settled()
        assert begun == ["/gate/1", "/p", "/gate/3"]
        ends["/gate/3"].set()
        ends["/p"].set()
        await asyncio.gather(first, last, page)

    played(work, play)


@pytest.mark.parametrize("leaves", [False, True])
def test_one_that_waits_gives_its_place_and_takes_one_again(leaves: bool) -> None:
    told: list[str] = []
    end = asyncio.Event()

    async def work(path: str) -> None:
        told.append(path)
        await (turns.pause(0) if path == "/gate/waits" else end.wait())
        told.append(f"{path} ends")

    async def play(send: Send) -> None:
        waits, other, last = (send(f"/gate/{each}") for each in ("waits", "other", "last"))
        await settled()
        assert told == ["/gate/waits", "/gate/other"]
        _ = leaves and waits.cancel()
        await settled()
        assert told == ["/gate/waits", "/gate/other"]
        end.set()
        await asyncio.gather(waits, other, last, return_exceptions=True)
        assert ("/gate/waits ends" in told) is not leaves

    played(work, play)


def test_a_view_that_outlives_its_request_takes_no_place() -> None:
    left: list[asyncio.Future[None]] = []
    begun: list[str] = []

    async def view() -> None:
        await turns.pause(0)
        await turns.pause(0)

    async def work(path: str) -> None:
        begun.append(path)
        left.append(asyncio.ensure_future(view()))

    async def play(send: Send) -> None:
        await send("/gate/gone")
        await asyncio.gather(*left)
        await send("/gate/next")
        assert begun == ["/gate/gone", "/gate/next"]

    played(work, play)


@pytest.mark.parametrize(("later_s", "rests_s"), [(0.5, [0.06]), (turns.OPENED_S + 1, [])])
def test_a_place_rests_while_people_open_pages(
    monkeypatch: pytest.MonkeyPatch, later_s: float, rests_s: list[float]
) -> None:
    now, asked = [100.0], list[float]()
    monkeypatch.setattr(turns, "monotonic", lambda: now[0])
    monkeypatch.setattr(turns, "REST", 2)

    def rests(seconds: float, give: Callable[[], object]) -> None:
        asked.append(round(seconds, 6))
        give()

    async def work(_path: str) -> None:
        now[0] += 0.03

    async def play(send: Send) -> None:
        await send("/runs/")
        now[0] += later_s
        loop: Any = asyncio.get_running_loop()
        monkeypatch.setattr(loop, "call_later", rests)
        await asyncio.gather(send("/gate/1"))
        assert asked == rests_s

    played(work, play)
