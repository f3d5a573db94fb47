"""The live socket and its stand-in: a cursor into the database, and nothing missed."""

import asyncio
import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from asgiref.sync import sync_to_async
from channels.testing import WebsocketCommunicator
from channels_redis.pubsub import RedisPubSubChannelLayer

from config.asgi import application
from config.sockets import is_same_origin
from dashboard.runs import frames, run_view, screens
from dashboard.runs.changes import stamps
from dashboard.web import broadcast
from dashboard.web.workspace import COOKIE
from engine.models import Run
from engine.ops.processes import redis_server
from engine.queries.runs import RunHead
from engine.runtime import api
from engine.worker import drive
from sabotage.models import Attack
from tests.dashboard.visitor import Visitor, by_code, numbers

WAIT_S = 60


def socket(visitor: Visitor, code: str, query: str, others: str = "") -> Any:
    cookie = f"{COOKIE}={visitor.cookies[COOKIE].value}" if COOKIE in visitor.cookies else ""
    cookie = others + cookie
    named = {b"cookie": cookie.encode(), b"origin": b"http://localhost", b"host": b"localhost"}
    return WebsocketCommunicator(application, f"/ws/runs/{code}/?{query}", headers=[*named.items()])


def mark_of(run: RunHead) -> str:
    """The mark that the run's page would bear now."""
    return frames.mark_of(frames.marks_of(run_view.read(run)))


async def heard(link: Any, until: str) -> tuple[list[dict[str, Any]], list[str]]:
    """Everything the socket says up to ``until`` and then until it is silent, by kind of frame."""
    control, pages, met = list[dict[str, Any]](), list[str](), False
    while not met or not await link.receive_nothing(timeout=0.3):
        text = await link.receive_from(timeout=WAIT_S)
        met = met or until in text
        if text.startswith("{"):
            control.append(json.loads(text))
        else:
            pages.append(text)
    return control, pages


@pytest.mark.asyncio
async def test_a_viewer_who_missed_rows_gets_exactly_those(owner: Visitor, paid: RunHead) -> None:
    link = socket(owner, paid.code, "after=3")
    assert (await link.connect())[0]
    control, pages = await heard(link, f'data-seq="{paid.length}"')
    hello = {"kind": "hello", "run": paid.code, "seq": paid.length, "server_build": "1"}
    assert control == [hello]
    assert numbers("".join(pages)) == list(range(4, paid.length + 1))
    assert f'data-seq="{paid.length}" data-after="3"' in pages[-1]
    await link.disconnect()


@pytest.mark.asyncio
async def test_cookies_of_others_hide_no_workspace(owner: Visitor, ready: RunHead) -> None:
    for others in ("a@b=1; path=/; ", "=; ;;; ", 'q="; '):
        link = socket(owner, ready.code, "", others)
        assert (await link.connect())[0], others
        assert (await link.receive_json_from(timeout=WAIT_S))["kind"] == "hello", others
        await link.disconnect()


@pytest.mark.asyncio
@pytest.mark.parametrize("resync", [False, True], ids=["nothing-missed", "beyond-the-run"])
async def test_a_viewer_who_missed_nothing_gets_no_rows(
    owner: Visitor, ready: RunHead, resync: bool
) -> None:
    mark = await sync_to_async(mark_of)(ready)
    after = "after=999" if resync else f"after={ready.length}&mark={mark}"
    link = socket(owner, ready.code, after)
    await link.connect()
    control, pages = await heard(link, "resync" if resync else "hello")
    assert [frame["kind"] for frame in control] == ["hello", *(["resync"] if resync else [])]
    assert pages == []
    await link.send_to(text_data='{"kind": "start"}')  # what a browser sends is not read
    assert await link.receive_nothing(timeout=0.3)
    assert (await sync_to_async(by_code)(ready.code)).label == "READY"
    await link.disconnect()


@pytest.mark.asyncio
async def test_what_happens_is_sent_as_it_happens_without_a_gap(owner: Visitor) -> None:
    run = await sync_to_async(owner.make)(hold=True)
    link = socket(owner, run.code, f"after={run.length}")
    await link.connect()
    await heard(link, "hello")
    await sync_to_async(api.start)(run.id, "visitor")
    await sync_to_async(drive.drive_patiently)(run.id)
    _, pages = await heard(link, "SUCCESS")
    last = (await sync_to_async(by_code)(run.code)).length
    assert numbers("".join(pages)) == list(range(run.length + 1, last + 1))
    assert "SUCCESS" in pages[-1]
    await sync_to_async(owner.erase)(run)  # and another tab is redacted
    _, pages = await heard(link, "[REDACTED_TOMBSTONE]")
    assert 'id="facts"' in "".join(pages)
    assert "".join(pages).count("[REDACTED_TOMBSTONE]") >= 8
    assert "Nordlicht" not in pages[-1]
    await link.disconnect()


@dataclass(slots=True)
class Drawn:
    """How often a run's page was drawn."""

    times: int = 0


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> Drawn:
    counted, real = Drawn(), frames._frame

    def counting(*given: Any) -> frames.Frame:
        counted.times += 1
        return real(*given)

    monkeypatch.setattr(frames, "_frame", counting)
    return counted


async def watching(visitor: Visitor, run: RunHead, viewers: int) -> list[Any]:
    """Sockets whose viewers have seen everything."""
    mark = await sync_to_async(mark_of)(run)
    links = [socket(visitor, run.code, f"after={run.length}&mark={mark}") for _ in range(viewers)]
    for link in links:
        await link.connect()
        await heard(link, "hello")
    while (task := screens.here().by_run[run.id].drawing) is not None:
        await asyncio.wait([task])
        await asyncio.sleep(0)  # to the callback that notes its end
    return links


@pytest.mark.asyncio
async def test_what_changed_is_drawn_once_for_all_viewers_and_not_kept(
    owner: Visitor, drawn: Drawn
) -> None:
    run = await sync_to_async(owner.make)(hold=True)
    links = await watching(owner, run, 4)
    await sync_to_async(Run.objects.filter(id=run.id).update)(quarantined=True)
    before = drawn.times
    await broadcast.send(run.id)
    pages = [await link.receive_from(timeout=WAIT_S) for link in links]
    assert 'id="title"' in pages[0]
    assert pages == [pages[0]] * 4
    assert drawn.times == before + 1
    screen = screens.here().by_run[run.id]
    kept = [vars(screen)["stamp"], *(viewer.cursor for viewer in screen.viewers)]
    assert "<" not in repr(kept)  # no page
    for link in links:
        await link.disconnect()
    assert screens.here().by_run == {}


@pytest.mark.asyncio
async def test_a_heartbeat_draws_nothing_but_what_nobody_was_told_of(
    owner: Visitor, drawn: Drawn
) -> None:
    run = await sync_to_async(owner.make)(hold=True)
    [link] = await watching(owner, run, 1)
    before = drawn.times
    await screens.here().beat()
    control, pages = await heard(link, "heartbeat")
    assert (control, pages) == ([{"kind": "heartbeat", "seq": run.length}], [])
    assert drawn.times == before
    await sync_to_async(Run.objects.filter(id=run.id).update)(quarantined=True)
    await screens.here().beat()
    assert "heartbeat" in await link.receive_from(timeout=WAIT_S)
    assert 'id="title"' in await link.receive_from(timeout=WAIT_S)
    assert drawn.times == before + 1
    await link.disconnect()


def test_a_comparison_that_nobody_was_told_of_changes_the_stamp(paid: RunHead) -> None:
    given = {"workspace_id": paid.workspace, "run_id": paid.id, "created_ms": 1}
    attack = Attack.objects.create(id=uuid4(), verdict="BLOCKED", idempotency_key="a", **given)
    before = stamps([paid.id])
    attack.control = {"ran": True}
    attack.save()
    assert stamps([paid.id]) != before
    attack.delete()


@pytest.mark.asyncio
async def test_a_viewer_who_leaves_takes_no_screen_from_one_who_is_coming(
    owner: Visitor, ready: RunHead, monkeypatch: pytest.MonkeyPatch
) -> None:
    let_go, listen = asyncio.Event(), screens.Screen.listen

    async def late(screen: screens.Screen) -> None:
        await let_go.wait()
        await listen(screen)

    monkeypatch.setattr(screens.Screen, "listen", late)
    first, second = (socket(owner, ready.code, "") for _ in range(2))
    for link in (first, second):  # the first one's screen cannot hear yet
        await link.connect()
        assert (await link.receive_json_from(timeout=WAIT_S))["kind"] == "hello"
    await second.receive_from(timeout=WAIT_S)  # it is drawn for the second, who then leaves
    await second.disconnect()
    let_go.set()
    await heard(first, "cursor")
    screen = screens.here().by_run[ready.id]
    assert screen.hearing is not None
    await first.disconnect()
    assert screens.here().by_run == {}
    assert screen.hearing.cancelling()
    await asyncio.wait([screen.hearing])


@pytest.mark.asyncio
async def test_a_screen_closed_while_it_began_to_listen_hears_nothing(ready: RunHead) -> None:
    screen = screens.Screen(ready.id)
    screen.close()
    await screen.listen()
    assert screen.hearing is not None
    assert screen.hearing.cancelling()
    await asyncio.wait([screen.hearing])


@pytest.mark.asyncio
async def test_a_page_that_cannot_be_drawn_ends_its_sockets(
    owner: Visitor,
    ready: RunHead,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    [link] = await watching(owner, ready, 1)
    monkeypatch.setattr(frames, "FRAGMENTS", {"none": ("run.nothing",)})
    await broadcast.send(ready.id)
    closed = await link.receive_output(timeout=WAIT_S)
    assert (closed["type"], closed["code"]) == ("websocket.close", 4500)
    assert "could not be shown" in caplog.text
    await link.disconnect()


@pytest.mark.asyncio
async def test_a_stranger_is_closed_with_4404(owner: Visitor, ready: RunHead) -> None:
    link = socket(Visitor(), ready.code, "after=0")
    await link.connect()
    closed = await link.receive_output(timeout=WAIT_S)
    assert (closed["type"], closed["code"]) == ("websocket.close", 4404)


FOREIGN = (
    (b"http://127.0.0.1:8001", b"127.0.0.1:8000"),
    (b"http://127.0.0.1", b"127.0.0.1:8000"),
    (b"http://127.0.0.1:8000", b"localhost:8000"),
    (b"https://localhost", b"localhost:80"),
    (b"http://localhost:8000/", b"localhost:8000"),
    (b"http://localhost:no", b"localhost:no"),
    (b"ftp://localhost", b"localhost"),
    (b"null", b"localhost"),
    (b"", b"localhost"),
    (None, b"localhost"),
    (b"http://evil.example", b"evil.example"),
    (b"https://evil.example", b"localhost"),
)
OWN = (
    (b"http://127.0.0.1:8000", b"127.0.0.1:8000"),
    (b"http://localhost", b"localhost:80"),
    (b"https://LOCALHOST:443", b"localhost"),
    (b"http://[::1]:8000", b"[::1]:8000"),
)


@pytest.mark.asyncio
async def test_an_origin_of_another_port_or_none_is_not_let_in() -> None:
    for origin, host in FOREIGN:
        named = [(b"origin", origin)] * (origin is not None) + [(b"host", host)]
        link = WebsocketCommunicator(application, "/ws/runs/AAAA-01/", headers=named)
        assert await link.connect() == (False, 1000), (origin, host)


def test_a_handshake_has_one_host_and_the_servers_own_origin_once() -> None:
    for named in OWN:
        origin, host = zip((b"origin", b"host"), named, strict=True)
        assert is_same_origin([origin, host]), named
        for headers in ([], [origin], [host], [origin, origin, host], [origin, host, host]):
            assert not is_same_origin(headers)


def test_polling_gives_the_rows_after_a_cursor(owner: Visitor, paid: RunHead) -> None:
    news = owner.read(f"/runs/{paid.code}/events?after=5")
    assert numbers(news) == list(range(6, paid.length + 1))
    for page in (news, owner.read(f"/runs/{paid.code}/")):  # each carries the mark of all it shows
        mark = re.search(r'data-mark="([0-9a-f]{16})"', page)
        assert mark
        assert owner.read(f"/runs/{paid.code}/events?after={paid.length}&mark={mark[1]}") == ""


def test_a_cursor_beyond_the_run_asks_for_a_new_page_and_nonsense_has_seen_nothing(
    owner: Visitor, ready: RunHead
) -> None:
    assert owner.get(f"/runs/{ready.code}/events?after=999")["X-Resync"] == "1"
    for after in ("", "-1", "x", "9" * 40, "1e3"):
        assert numbers(owner.read(f"/runs/{ready.code}/events?after={after}")) == [1], after


def test_an_attack_without_an_envelope_reaches_the_viewers_too(owner: Visitor) -> None:
    run = owner.make()
    owner.fire(run, "tool_injection")
    seen, length = mark_of(run), by_code(run.code).length
    owner.fire(run, "tool_injection")
    assert by_code(run.code).length == length  # a repeat is only counted
    [frame] = frames.frames(run.id, [frames.Cursor(after=length, mark=seen)])
    assert 'id="score"' in frame.html
    with pytest.raises(Run.DoesNotExist):
        frames.frames(str(uuid4()), [])


@pytest.mark.asyncio
async def test_a_lost_channel_layer_fails_no_commit(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    class Lost:
        async def group_send(self, *_: object) -> None:
            raise ConnectionRefusedError

    monkeypatch.setattr("dashboard.web.broadcast.get_channel_layer", Lost)
    await broadcast.send("0190a0e0-0000-7000-8000-000000000000")
    assert "were not told" in caplog.text


def test_each_run_that_changed_is_told_once_and_none_is_left(tmp_path: Path) -> None:
    with redis_server(tmp_path) as url:
        layer = RedisPubSubChannelLayer(hosts=[url])

        async def told() -> list[object]:
            heard = [await layer.new_channel() for _ in range(3)]
            for name, channel in zip("abc", heard, strict=True):
                await layer.group_add(broadcast.group_of(name), channel)
            teller = broadcast.Teller(url)
            for name in "aabab":
                teller.announce(name)
            first = [await asyncio.wait_for(layer.receive(each), WAIT_S) for each in heard[:2]]
            teller.announce("c")
            teller.flush()  # as at the end of the process
            assert not teller._changed
            last = await asyncio.wait_for(layer.receive(heard[2]), WAIT_S)
            queues = layer._get_layer().channels
            left = [queues[each].qsize() for each in heard]
            await layer.flush()
            return [*first, last, left]

        changed = {"type": "run.changed"}
        assert asyncio.run(told()) == [changed, changed, changed, [0, 0, 0]]
