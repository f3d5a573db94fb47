"""The live socket and its stand-in: a cursor into the database, and nothing missed."""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from channels.testing import WebsocketCommunicator
from django.core.management import call_command

from config.asgi import application
from config.origin import is_same_origin
from dashboard.runs import frames
from dashboard.web import broadcast
from dashboard.web.workspace import COOKIE
from pipeline.runtime import api
from pipeline.worker import drive
from tests.dashboard.visitor import Visitor, by_code, numbers

WAIT_S = 20


@pytest.fixture
def committed(own_database: None, django_db_blocker: Any, counterpart: None) -> Iterator[Visitor]:
    """A visitor whose rows are really committed: a socket reads on another connection."""
    with django_db_blocker.unblock():
        yield Visitor()


def socket(visitor: Visitor, code: str, query: str, host: str = "testserver") -> Any:
    cookie = f"{COOKIE}={visitor.cookies[COOKIE].value}" if COOKIE in visitor.cookies else ""
    headers = [
        (b"cookie", cookie.encode()),
        (b"origin", b"http://localhost"),
        (b"host", b"localhost"),
    ]
    return WebsocketCommunicator(application, f"/ws/runs/{code}/?{query}", headers=headers)


async def heard(link: Any, until: str = "") -> tuple[list[dict[str, Any]], list[str]]:
    """Everything the socket says up to ``until`` and then until it is silent, by kind of frame."""
    control: list[dict[str, Any]] = []
    pages: list[str] = []
    while until not in "".join(pages) or not await link.receive_nothing(timeout=0.3):
        text = await link.receive_from(timeout=WAIT_S)
        if text.startswith("{"):
            control.append(json.loads(text))
        else:
            pages.append(text)
    return control, pages


@pytest.mark.asyncio
async def test_a_viewer_who_missed_rows_gets_exactly_those(committed: Visitor) -> None:
    run = await sync_to_async(committed.make)()
    link = socket(committed, run.code, "after=3")
    assert (await link.connect())[0]
    control, pages = await heard(link, f'data-seq="{run.length}"')
    assert control == [{"kind": "hello", "run": run.code, "seq": run.length, "server_build": "1"}]
    assert numbers("".join(pages)) == list(range(4, run.length + 1))
    assert f'data-seq="{run.length}" data-after="3"' in pages[-1]
    await link.disconnect()


@pytest.mark.asyncio
async def test_a_viewer_who_missed_nothing_gets_nothing(committed: Visitor) -> None:
    run = await sync_to_async(committed.make)()
    mark = await sync_to_async(frames.seen)(run)
    link = socket(committed, run.code, f"after={run.length}&mark={mark}")
    await link.connect()
    control, pages = await heard(link)
    assert [frame["kind"] for frame in control] == ["hello"]
    assert pages == []
    await link.disconnect()


@pytest.mark.asyncio
async def test_what_happens_is_sent_as_it_happens_without_a_gap(committed: Visitor) -> None:
    run = await sync_to_async(committed.make)(hold=True)
    link = socket(committed, run.code, f"after={run.length}")
    await link.connect()
    await heard(link)
    await sync_to_async(api.start)(run.id, "visitor")
    await sync_to_async(drive.drive_patiently)(run.id)
    _, pages = await heard(link, "SUCCESS")
    last = (await sync_to_async(by_code)(run.code)).length
    assert numbers("".join(pages)) == list(range(run.length + 1, last + 1))
    assert "SUCCESS" in pages[-1]
    await link.disconnect()


@pytest.mark.asyncio
async def test_a_cursor_beyond_the_run_is_told_to_start_anew(committed: Visitor) -> None:
    run = await sync_to_async(committed.make)(hold=True)
    link = socket(committed, run.code, "after=999")
    await link.connect()
    control, pages = await heard(link)
    assert [frame["kind"] for frame in control] == ["hello", "resync"]
    assert pages == []
    await link.disconnect()


@pytest.mark.asyncio
async def test_a_stranger_is_closed_with_4404(committed: Visitor) -> None:
    run = await sync_to_async(committed.make)(hold=True)
    for other in (Visitor(), Visitor()):
        link = socket(other, run.code, "after=0")
        await link.connect()
        closed = await link.receive_output(timeout=WAIT_S)
        assert (closed["type"], closed["code"]) == ("websocket.close", 4404)


@pytest.mark.asyncio
async def test_a_foreign_origin_is_not_let_in(committed: Visitor) -> None:
    run = await sync_to_async(committed.make)(hold=True)
    link = socket(committed, run.code, "after=0")
    link.scope["headers"] = [(b"origin", b"https://evil.example"), *link.scope["headers"][:1]]
    assert not (await link.connect())[0]


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("origin", "host"),
    [
        (b"http://127.0.0.1:1", b"127.0.0.1:8000"),
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
    ],
)
async def test_an_origin_of_another_port_or_none_is_not_let_in(
    origin: bytes | None, host: bytes
) -> None:
    named = [(b"origin", origin)] if origin is not None else []
    link = WebsocketCommunicator(
        application, "/ws/runs/AAAA-01/", headers=[*named, (b"host", host)]
    )
    assert await link.connect() == (False, 1000)


def test_a_handshake_has_one_origin_and_one_host() -> None:
    origin, host = (b"origin", b"http://localhost"), (b"host", b"localhost")
    assert is_same_origin([origin, host])
    for headers in ([], [origin], [host], [origin, origin, host], [origin, host, host]):
        assert not is_same_origin(headers)


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("origin", "host"),
    [
        (b"http://127.0.0.1:8000", b"127.0.0.1:8000"),
        (b"http://localhost", b"localhost:80"),
        (b"https://LOCALHOST:443", b"localhost"),
        (b"http://[::1]:8000", b"[::1]:8000"),
    ],
)
async def test_the_servers_own_origin_is_let_in(
    committed: Visitor, origin: bytes, host: bytes
) -> None:
    run = await sync_to_async(committed.make)(hold=True)
    link = socket(committed, run.code, "after=0")
    link.scope["headers"] = [(b"origin", origin), (b"host", host), *link.scope["headers"][:1]]
    assert (await link.connect())[0]
    assert await heard(link)
    await link.disconnect()


@pytest.mark.asyncio
async def test_another_tab_is_redacted_when_the_run_is_erased(committed: Visitor) -> None:
    run = await sync_to_async(committed.make)()
    link = socket(committed, run.code, f"after={run.length}")
    await link.connect()
    await heard(link)
    await sync_to_async(committed.erase)(run)
    _, pages = await heard(link, "[REDACTED_TOMBSTONE]")
    sent = "".join(pages)
    assert 'id="facts"' in sent
    assert sent.count("[REDACTED_TOMBSTONE]") >= 8
    assert "Nordlicht" not in pages[-1]
    await link.disconnect()


@pytest.mark.asyncio
async def test_what_a_browser_sends_is_not_read(committed: Visitor) -> None:
    run = await sync_to_async(committed.make)(hold=True)
    mark = await sync_to_async(frames.seen)(run)
    link = socket(committed, run.code, f"after={run.length}&mark={mark}")
    await link.connect()
    await heard(link)
    await link.send_to(text_data='{"kind": "start"}')
    assert await link.receive_nothing(timeout=0.3)
    assert (await sync_to_async(by_code)(run.code)).label == "READY"
    await link.disconnect()


def test_polling_gives_the_rows_after_a_cursor(visitor: Visitor) -> None:
    run = visitor.make()
    page = visitor.read(f"/runs/{run.code}/events?after=5")
    assert numbers(page) == list(range(6, run.length + 1))
    mark = re.search(r'data-mark="([0-9a-f]{16})"', page)
    assert mark
    assert visitor.read(f"/runs/{run.code}/events?after={run.length}&mark={mark[1]}") == ""


def test_polling_beyond_the_run_asks_for_a_new_page(visitor: Visitor) -> None:
    run = visitor.make(hold=True)
    assert visitor.get(f"/runs/{run.code}/events?after=999")["X-Resync"] == "1"


@pytest.mark.parametrize("after", ["", "-1", "x", "9" * 40, "1e3"])
def test_a_nonsense_cursor_reads_as_having_seen_nothing(visitor: Visitor, after: str) -> None:
    run = visitor.make(hold=True)
    assert numbers(visitor.read(f"/runs/{run.code}/events?after={after}")) == [1]


def test_a_page_carries_the_mark_of_what_it_shows(visitor: Visitor) -> None:
    run = visitor.make()
    mark = re.search(r'data-mark="([0-9a-f]{16})"', visitor.read(f"/runs/{run.code}/"))
    assert mark
    assert frames.frame(run.id, run.length, mark[1], {}).html == ""


def test_an_attack_without_an_envelope_reaches_the_viewers_too(visitor: Visitor) -> None:
    run = visitor.make()
    visitor.fire(run, "tool_injection")
    seen, length = frames.seen(run), by_code(run.code).length
    visitor.fire(run, "tool_injection")
    assert by_code(run.code).length == length  # a repeat is only counted
    assert 'id="score"' in frames.frame(run.id, length, seen, {}).html


def test_every_fragment_has_one_root_with_its_own_id(visitor: Visitor) -> None:
    context = frames.context_of(visitor.make())
    for name in frames.FRAGMENTS:
        html = frames.render(name, context, oob=True)
        if name not in ("planning", "shots"):  # one for each injector
            assert re.match(rf'\s*<[a-z]+ id="{name}"[^>]*hx-swap-oob="true"', html), name


@pytest.mark.asyncio
async def test_a_lost_channel_layer_fails_no_commit(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    class Lost:
        async def group_send(self, *_: object) -> None:
            raise ConnectionRefusedError

    monkeypatch.setattr("dashboard.web.broadcast.get_channel_layer", Lost)
    await broadcast.tell("0190a0e0-0000-7000-8000-000000000000")
    assert "were not told" in caplog.text


def test_the_migrations_are_the_models(db: None) -> None:
    call_command("makemigrations", "dashboard", check=True, dry_run=True, verbosity=0)
