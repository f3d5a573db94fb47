"""The signer's sign of life, and what /healthz makes of it and of its refusals."""

import json
import time
from concurrent.futures import ThreadPoolExecutor
from unittest.mock import Mock

import pytest
import redis
from django.conf import settings
from django.test import RequestFactory
from kombu.exceptions import LimitExceeded, OperationalError

from config import health
from config.celery import app
from engine import clock
from engine.evidence import published, signer
from engine.evidence.signer import keys
from engine.models import Run
from engine.ops import process_file
from engine.ops.process_file import Node, Process, Processes
from engine.runtime import chains
from engine.store import turns
from reader import ReaderLostError, sandbox
from tests.kit.house import House
from tests.kit.trees import truncated


def asked() -> tuple[int, dict[str, object]]:
    answer = health.healthz(RequestFactory().get("/healthz"))
    return answer.status_code, json.loads(answer.content)


def test_health_says_that_no_signer_ran_that_it_lives_and_that_it_fell_silent(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "no signer ever ran" in str(asked()[1]["signer"])
    published.report_alive()
    assert asked()[1]["signer"] == "ok"
    late = clock.now_ms() + published.SILENT_MS_MAX + 1_000
    monkeypatch.setattr(clock, "now_ms", lambda: late)
    status, said = asked()
    assert (status, said["ok"]) == (503, False)
    assert "no sign of life for 16 s" in str(said["signer"])


def test_a_beat_is_written_once_a_second(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    start = clock.now_ms()
    for later, silent in ((0, 0), (999, 999), (1_000, 0), (1_500, 500), (-5_000, 0)):
        monkeypatch.setattr(clock, "now_ms", lambda later=later: start + later)
        published.report_alive()
        assert published.silent_ms() == silent


def test_health_counts_the_logs_that_are_not_signed(house: House) -> None:
    log = house.once(House.run).workspace
    signer.checkpoint(log.id)
    assert asked()[1]["refusals"] == 0
    truncated(log, 2)
    with pytest.raises(Exception, match="does not continue"):
        signer.checkpoint(log.id)
    assert [each.origin for each in published.unsigned_logs()] == [log.origin]
    said = asked()[1]
    assert said["refusals"] == 1
    assert "run manage.py restore" in str(said["refused"])


def test_health_says_which_walls_the_reader_has_and_fails_for_none(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    published.report_alive()
    monkeypatch.setattr(health, "WALLS_SECONDS_MAX", 60)
    walls = sandbox.confinement()
    asking = Mock(side_effect=ReaderLostError("was not ready"), wraps=sandbox.confinement)
    monkeypatch.setattr(sandbox, "confinement", asking)
    monkeypatch.setattr(health, "_reader", health._ask_for_walls)
    health._walls.cache_clear()
    before = asked()
    assert before[1]["reader"] == {"missing": "was not ready"}
    server, asking.side_effect = sandbox._server(), None
    assert [asked()[1]["reader"], asked()[1]["reader"]] == [walls, walls]
    assert (asking.call_count, server.has_ended) == (2, False)  # a comparison reads, too
    missing = {"missing": "landlock (Function not implemented)"}
    monkeypatch.setattr(health, "_reader", lambda: missing)
    free = {"confined": "", "files": [], "ports": [], **missing}
    runs, gone = (Process(pid=pid, walls=free) for pid in (7, 0))
    process_file.write(Processes(processes={"reader": runs, "payer": gone}))
    code, said = asked()
    assert (code, said["ok"], said["reader"]) == (before[0], before[1]["ok"], missing)
    assert said["walls"] == {"reader": missing}


def test_the_page_knows_the_public_key_that_signs_and_no_other(house: House) -> None:
    log = chains.create()
    assert published.verifier(log.origin) is None
    signer.checkpoint(log.id)
    before = published.verifier(log.origin)
    assert [before] == signer.verifiers(log.origin)
    signer.rotate("operator")
    after = published.verifier(log.origin)
    assert [after] == signer.verifiers(log.origin) != [before]
    private = (keys.folder() / keys.CURRENT).read_bytes()
    assert private.hex().encode() not in (house.folder / "log_key.pub").read_bytes()


def test_health_says_how_long_a_run_waits_for_a_worker(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert asked()[1]["oldest_waiting_ms"] == 0
    run = house.started()
    start = clock.now_ms()
    monkeypatch.setattr(turns, "now_ms", lambda: start + 90_000)
    assert int(str(asked()[1]["oldest_waiting_ms"])) >= 90_000
    Run.objects.filter(id=run.id).update(until_ms=start + 100_000)
    assert asked()[1]["oldest_waiting_ms"] == 0  # a worker drives it
    Run.objects.update(until_ms=0)
    Run.objects.filter(id=run.id).update(ended_ms=start)
    assert asked()[1]["oldest_waiting_ms"] == 0


@pytest.mark.parametrize("error", [redis.ConnectionError, OperationalError, LimitExceeded])
def test_a_queue_that_breaks_off_while_the_worker_is_asked_is_said(
    monkeypatch: pytest.MonkeyPatch, error: type[Exception]
) -> None:
    def broken(**_: object) -> None:
        raise error("of the server that was there before")

    monkeypatch.setattr(app.control, "ping", broken)
    assert f"the queue broke off ({error.__name__})" in health._ask_workers()


def test_health_says_what_to_do_once_a_supervisor_gave_up(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(app.control, "ping", lambda **_: [])
    for at_ms, says in ((0, "start one with celery"), (9, "supervisor agents gave up: see")):
        node = Node("one_for_one", 5, 60, [], gave_up_ms=at_ms)
        process_file.write(Processes({"agents": node}))
        assert says in health._ask_workers()


def test_health_says_so_where_the_queue_server_has_no_address(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(settings, "REDIS_URL", "127.0.0.1:6379")
    status, said = asked()
    assert (status, said["queue"]) == (
        503,
        "no answer (ValueError): start the server that REDIS_URL names",
    )
    assert "queue_length" not in said


def test_of_many_who_ask_at_once_one_asks_the_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[float] = []

    def ask() -> str:
        asked.append(time.monotonic())
        return f"answer {len(asked)}"

    lately = health.BriefCache(ask)
    monkeypatch.setattr(health, "ANSWER_HOLDS_SECONDS", 600.0)
    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(lambda _: lately(), range(40))) == {"answer 1"}
    lately.answer = (time.monotonic(), "answer 1")
    assert lately() == "answer 2"
