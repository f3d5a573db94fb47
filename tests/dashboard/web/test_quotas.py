"""Quotas: everything that is sent is counted at the door, the next one is told, none is sealed."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from types import SimpleNamespace
from urllib.parse import urlencode
from uuid import UUID

import pytest
from django.urls import URLPattern, get_resolver, reverse
from pytest_django.fixtures import Settings
from redis import Redis

from config import health, sockets
from dashboard import urls
from dashboard.web import counters, quotas
from dashboard.web.counters import LocalCounters, RateCharge
from engine.models import Run, Workspace
from engine.ops import disk
from engine.ops.processes import redis_server
from engine.queries import storage_used
from engine.queries.runs import RunHead
from gate import urls as gate_urls
from tests.dashboard.runs.test_live import socket
from tests.dashboard.visitor import FORM, Visitor, by_code, words

pytestmark = pytest.mark.usefixtures("db")

PERIOD_S = 50
HTML = {"Accept": "text/html"}
VALUES = {
    "code": "ZZZZ-99", "number": 1, "place": 0, "form": "csv", "slug": "log",
    **dict.fromkeys(("attack_id", "plan_id", "supplier_id", "link_id"), UUID(int=1)),
    "token": "none", "agent": "clerk", "hour": "2026-01-01T00",
}  # fmt: skip
# What a request is counted as besides a command. Whoever adds an address that starts a run or
# makes a copy finds it counted as a command alone, and says more here.
STARTING = {
    *("runs", "demo", "plain", "again", "arena_start", "arena_poison", "gallery_fire"),
    "foreign",  # one press, some seven calls
    "tour",  # its first stop; the others use the run
}
COPYING = {"unguarded", "gallery_unguarded"}
INSTEAD = {"arena_check": "checks", "stripe_webhook": "deliveries"}
GATE = [f"gate:{each.name}" for each in gate_urls.urlpatterns]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A queue server."""
    with redis_server(tmp_path_factory.mktemp("queue")) as url:
        yield url


@pytest.fixture(params=["in this process", "in the queue server"])
def counted(
    request: pytest.FixtureRequest, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> Callable[[str], None]:
    """Counters where nothing is counted yet; a call lets the time of one charge pass."""
    if request.param == "in the queue server":
        settings.REDIS_URL = request.getfixturevalue("server")
        redis = Redis.from_url(settings.REDIS_URL)
        redis.flushall()

        def passed(key: str) -> None:
            name = counters.PREFIX + key
            redis.set(name, int(redis.get(name)) - PERIOD_S * 1_000_000 // 5)  # type: ignore[arg-type]

        return passed
    here = LocalCounters()
    now_us = 1_000_000_000
    monkeypatch.setattr(counters, "_here", here)
    monkeypatch.setattr(counters, "time", SimpleNamespace(time_ns=lambda: now_us * 1000))

    def later(_: str) -> None:
        nonlocal now_us
        now_us += PERIOD_S * 1_000_000 // 5

    return later


@pytest.fixture
def limited(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Quotas that count from nothing, and give a workspace or an address so many."""
    settings.NANOVM_QUOTA_FACTOR = 1
    monkeypatch.setattr(counters, "_here", LocalCounters())

    def limit(name: str, **most: int) -> None:
        narrowed = replace(getattr(quotas, name), **most)
        for address, quota in quotas.INSTEAD.items():
            if quota.name == narrowed.name:
                monkeypatch.setitem(quotas.INSTEAD, address, narrowed)
        monkeypatch.setattr(quotas, name, narrowed)

    return limit


def size_of(run: RunHead) -> int:
    """How many envelopes the run's log has."""
    return Workspace.objects.get(id=run.workspace).size


def five(key: str, cost: int = 1) -> RateCharge:
    return RateCharge(key=key, most=5, period_s=PERIOD_S, cost=cost)


def test_as_many_as_there_are_at_once_and_one_more_with_each_part_of_the_period(
    counted: Callable[[str], None],
) -> None:
    assert [counters.charge_all([five("a")]) for _ in range(5)] == [None] * 5
    full = counters.charge_all([five("a")])
    assert full is not None
    place, wait_s = full
    assert place == 0
    assert 0 < wait_s <= PERIOD_S / 5
    assert counters.charge_all([five("b", 5)]) is None
    assert counters.charge_all([five("c", 6)]) is not None
    counted("a")
    assert counters.charge_all([five("a")]) is None


@pytest.mark.usefixtures("counted")
def test_all_charges_are_taken_or_none() -> None:
    assert counters.charge_all([five("full", 5)]) is None
    for _ in range(5):
        full = counters.charge_all([five("other"), five("full")])
        assert full is not None
        assert full[0] == 1
    assert counters.charge_all([five("other", 5)]) is None


@pytest.mark.usefixtures("counted")
def test_simultaneous_requests_take_no_more_than_there_are() -> None:
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: counters.charge_all([five("a")]), range(40)))
    assert found.count(None) == 5


def test_while_the_queue_server_is_away_this_process_counts(
    limited: Callable[..., None], settings: Settings
) -> None:
    settings.REDIS_URL = "redis://127.0.0.1:1/0"
    assert [counters.charge_all([five("a")]) is None for _ in range(6)] == [True] * 5 + [False]


def test_this_process_forgets_what_is_empty_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counters, "KEYS_MAX", 1)
    here = LocalCounters()
    for key in ("a", "b"):
        here.charge_all([five(key)], 0)
    here.charge_all([five("c")], PERIOD_S * 1_000_000)
    assert [*here._empty] == ["c"]


def addresses() -> list[str]:
    found = [each for each in get_resolver().url_patterns if isinstance(each, URLPattern)]
    return [str(each.name) for each in (*found, *urls.urlpatterns) if each.name] + GATE


def path_of(name: str) -> str:
    if name in ("stripe_webhook", "metrics", *GATE):
        return reverse(name, args=("1",) if name == "gate:made" else ())
    [pattern] = [each for each in urls.urlpatterns if each.name == name]
    values = {
        **VALUES,
        "name": "kill" if name in ("command", "inbox_decide") else "log",
        "event": "kill",
    }
    return reverse(name, kwargs={key: values[key] for key in pattern.pattern.converters})


def test_whatever_is_sent_is_counted_before_its_view_begins(
    limited: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    charged: list[str] = []

    def full(charges: Sequence[RateCharge]) -> tuple[int, float]:
        charged.extend(each.key.partition(":")[0] for each in charges)
        return 0, 2.5

    monkeypatch.setattr(quotas, "charge_all", full)
    visitor = Visitor()
    for name in addresses():
        if name == "healthz":
            continue
        charged.clear()
        response = visitor.post(path_of(name))
        assert (response.status_code, response["Retry-After"]) == (429, "3"), name
        first = "calls" if name in GATE else INSTEAD.get(name, "commands")
        more = ["runs"] * (name in STARTING) + ["copies"] * (name in COPYING)
        more += ["imports"] * (name in ("supplier_preview", "supplier_import"))
        assert charged == [first, *more, "uploaded"], name


def test_a_command_too_many_is_told_and_nothing_is_sealed(
    owner: Visitor, ready: RunHead, limited: Callable[..., None]
) -> None:
    limited("COMMANDS", workspace=2)
    before = size_of(ready)
    for _ in range(2):
        owner.command(ready, "approve", hold="none")
    sealed = size_of(ready)
    assert sealed > before
    form = urlencode({"hold": "<none>", "csrfmiddlewaretoken": "old"})
    encoded = "application/x-www-form-urlencoded"
    response = owner.post(f"/runs/{ready.code}/approve/", form, encoded, headers=HTML)
    assert (response.status_code, response["Cache-Control"]) == (429, "no-store")
    assert 1 <= int(response["Retry-After"]) <= 30
    page = response.content.decode()
    text = "One workspace may send 2 forms a minute. Nothing was changed. Try again in"
    assert text in words(page)
    assert '<input type="hidden" name="hold" value="&lt;none&gt;">' in page
    assert 'value="old"' not in page
    assert size_of(ready) == sealed
    stranger = Visitor()  # another workspace at the same address
    assert stranger.post("/theme/").status_code == 303


def test_a_visitor_who_drops_the_cookie_is_counted_by_the_address(
    limited: Callable[..., None],
) -> None:
    limited("COMMANDS", address=2)
    answers = [Visitor().post("/theme/") for _ in range(3)]
    assert [each.status_code for each in answers] == [303, 303, 429]
    assert "from your network address together may send 2 forms" in answers[2].content.decode()
    assert Visitor(REMOTE_ADDR="192.0.2.7").post("/theme/").status_code == 303


@pytest.mark.usefixtures("paid")  # so the owner has a workspace, by which they are counted
def test_a_run_too_many_is_not_made_and_a_run_can_still_be_stopped(
    owner: Visitor, limited: Callable[..., None]
) -> None:
    limited("RUNS", workspace=1)
    run = owner.make(hold=True)
    count = Run.objects.count()
    answers = [owner.post(path) for path in ("/runs/plain/", "/attack/start/", "/tour/1/")]
    assert {each.status_code for each in answers} == {429}
    assert "may start 1 runs a minute" in answers[0].content.decode()
    assert Run.objects.count() == count
    assert owner.command(run, "kill").status_code == 303
    assert by_code(run.code).ended


def test_bytes_are_counted_by_their_length_and_a_body_without_one_is_the_longest(
    limited: Callable[..., None], settings: Settings
) -> None:
    limited("UPLOADED", address=settings.UPLOAD_SIZE_BYTES_MAX)
    sent = partial(Visitor().post, "/theme/", b"x" * 100, "application/octet-stream")
    assert sent().status_code == 303
    answer = sent(CONTENT_LENGTH="")
    assert answer.status_code == 429
    assert "may send 11 MB an hour. Nothing was changed. Try again in" in answer.content.decode()


@pytest.mark.parametrize(
    ("path", "headers", "holds"),
    [
        ("/runs/{}/kill/", {"HX-Request": "true"}, '<div id="flash" hx-swap-oob="true">'),
        ("/runs/{}/attacks/skip_step/", {"HX-Request": "true"}, 'id="error-skip_step"'),
        ("/attack/check/", {"X-Arena-Line": "1"}, 'data-word="WAIT">Not checked.</strong>'),
        ("/runs/{}/kill/", HTML, "<h1>Limit reached</h1>"),
        ("/webhooks/stripe/", {}, "Limit reached. All visitors"),
    ],
)
def test_the_answer_has_the_shape_that_was_asked_for(
    owner: Visitor, ready: RunHead, limited: Callable[..., None],
    path: str, headers: dict[str, str], holds: str,
) -> None:  # fmt: skip
    for name in ("COMMANDS", "CHECKS", "DELIVERIES"):
        limited(name, address=1)
    answers = [owner.post(path.format(ready.code), headers=headers) for _ in range(2)]
    assert answers[1].status_code == 429
    assert holds in answers[1].content.decode()


def test_a_factor_widens_every_quota_and_none_counts_nothing(
    limited: Callable[..., None], settings: Settings
) -> None:
    limited("COMMANDS", address=1)
    settings.NANOVM_QUOTA_FACTOR = 2
    assert [Visitor().post("/theme/").status_code for _ in range(3)] == [303, 303, 429]
    settings.NANOVM_QUOTA_FACTOR = 0
    assert Visitor().post("/theme/").status_code == 303


def test_reading_is_not_counted(owner: Visitor, limited: Callable[..., None]) -> None:
    limited("COMMANDS", address=1)
    for _ in range(3):
        owner.read("/runs/")


def free(patch: pytest.MonkeyPatch, size: int) -> None:
    """Leave that many bytes on the disk."""
    usage = SimpleNamespace(free=size)
    patch.setattr(disk, "shutil", SimpleNamespace(disk_usage=lambda _: usage))


@pytest.mark.parametrize(
    ("size", "warning"),
    [
        (disk.WARNING_BYTES, None),
        (disk.WARNING_BYTES - 1, "new documents are refused below 250 MB: make room"),
        (disk.FULL_BYTES, "new documents are refused below 250 MB: make room"),
        (disk.FULL_BYTES - 1, "new documents are refused: make room"),
    ],
)
def test_a_monitor_is_warned_of_the_disk_before_anything_is_refused(
    monkeypatch: pytest.MonkeyPatch, size: int, warning: str | None
) -> None:
    free(monkeypatch, size)
    for part in ("_queue", "_worker", "_stripe", "_signer"):
        monkeypatch.setattr(health, part, lambda: health.OK)
    answer = Visitor().get("/healthz")
    said = answer.json()
    assert said["disk"]["free_bytes"] == size
    assert said["disk"].get("warning", "None").startswith(str(warning))
    assert said["ok"] == (size >= disk.FULL_BYTES) == (answer.status_code == 200)


@pytest.mark.parametrize("room", [0, 1])
def test_without_room_no_document_is_taken_and_commands_go_on(
    owner: Visitor, ready: RunHead, monkeypatch: pytest.MonkeyPatch, room: int
) -> None:
    free(monkeypatch, disk.FULL_BYTES - 1 + room)
    count = Run.objects.count()
    answer = owner.post("/runs/", {**FORM, "sample": "plain", "hold": "on"}, headers=HTML)
    assert answer.status_code == (303 if room else 507)
    assert room or "The server's disk is nearly full" in words(answer.content.decode())
    assert Run.objects.count() == count + room
    assert owner.post("/suppliers/import/").status_code == (422 if room else 507)
    assert owner.command(ready, "kill").status_code == 303


@pytest.mark.parametrize("room", [0, 1])
def test_a_workspace_that_stores_too_much_starts_no_run(
    visitor: Visitor, limited: Callable[..., None], monkeypatch: pytest.MonkeyPatch, room: int
) -> None:
    run = visitor.make(hold=True)
    used = storage_used.bytes_of(UUID(run.workspace))
    assert used > storage_used.ENVELOPE_BYTES * size_of(run) + 1_000  # with the document
    monkeypatch.setattr(quotas, "STORED_BYTES_MAX", used + room)
    answer = visitor.post("/runs/plain/")
    assert answer.status_code == (303 if room else 507)
    assert room or "Erase the personal data of runs" in answer.content.decode()
    visitor.erase(run)  # the document counts no more, and the log does
    log = storage_used.ENVELOPE_BYTES * size_of(run)
    assert room or storage_used.bytes_of(UUID(run.workspace)) == log


@pytest.mark.asyncio
@pytest.mark.parametrize("whose", ["workspace", "address"])
async def test_a_socket_too_many_is_told_and_closed_and_one_that_ends_makes_room(
    owner: Visitor, paid: RunHead, limited: Callable[..., None],
    monkeypatch: pytest.MonkeyPatch, whose: str,
) -> None:  # fmt: skip
    monkeypatch.setitem(quotas.SOCKETS_MAX, whose, 2)
    first, second, third = (socket(owner, paid.code, "") for _ in range(3))
    for each in (first, second, third):
        await each.connect()
    told = await third.receive_json_from()
    assert told["kind"] == "full"
    assert "2 live pages are open" in told["say"]
    closed = await third.receive_output()
    assert (closed["type"], closed["code"]) == ("websocket.close", sockets.FULL)
    await first.disconnect()
    fourth = socket(owner, paid.code, "")
    await fourth.connect()
    assert (await fourth.receive_json_from())["kind"] == "hello"
    for each in (second, fourth):
        await each.disconnect()
