"""What /metrics answers, to whom, and how many series it can have."""

import json
import re
from collections.abc import Callable
from http import HTTPStatus
from typing import Any
from uuid import uuid4

import pytest
from django.conf import settings
from django.db import DatabaseError
from django.test import Client
from prometheus_client.parser import text_string_to_metric_families

from config import metrics
from engine.evidence import published
from engine.models import Envelope, Run
from engine.ops import process_file, said
from engine.ops.process_file import Process, Processes
from engine.queries import figures
from engine.runtime import chains, queue
from engine.store.turns import waiting_ms
from nanovm_core.core import lifecycle as life
from nanovm_core.errors import VerificationError
from pipeline.after_payment import webhooks
from pipeline.steps.reasons import REASONS, RULES
from reader.currencies import DECIMALS
from tests.engine.queries.test_figures import ASKED, HELD, PAID, put
from tests.house.repository import ROOT, source_of
from tests.kit.house import House, invoice

TOKEN = "a-token-of-22-characters"
SERIES_MAX = 500


def get(token: str | None = TOKEN, method: str = "get", **headers: str) -> Any:
    """The answer to a scrape with this token."""
    sent = headers if token is None else {"Authorization": f"Bearer {token}", **headers}
    return getattr(Client(headers=sent), method)("/metrics")


def scraped() -> dict[str, dict[str, float]]:
    """The samples of a scrape, by metric and by the value of its one label."""
    answer = get()
    assert answer.status_code == HTTPStatus.OK, answer.content
    found: dict[str, dict[str, float]] = {}
    for family in text_string_to_metric_families(answer.content.decode()):
        assert family.documentation
        for sample in family.samples:
            assert sample.name not in found or "".join(sample.labels.values()) not in found
            found.setdefault(sample.name, {})["".join(sample.labels.values())] = sample.value
    return found


@pytest.fixture
def token(house: House, monkeypatch: pytest.MonkeyPatch) -> House:
    """The pipeline, with a token for its metrics."""
    monkeypatch.setattr(settings, "NANOVM_METRICS_TOKEN", TOKEN)
    return house


def test_without_a_token_there_are_no_metrics(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    for given in (None, "", TOKEN):
        answer = get(given)
        assert answer.status_code == HTTPStatus.NOT_FOUND
        assert "set NANOVM_METRICS_TOKEN" in answer.content.decode()
    monkeypatch.setattr(settings, "NANOVM_METRICS_TOKEN", TOKEN)
    refused = [None, "", "wrong", TOKEN[:-1], f"{TOKEN}x", TOKEN.upper(), "é", f"{TOKEN} {TOKEN}"]
    for given in refused:
        answer = get(given)
        assert (given, answer.status_code) == (given, HTTPStatus.UNAUTHORIZED)
        assert answer.headers["WWW-Authenticate"].startswith("Bearer")
        assert b"nanovm_" not in answer.content
        assert "no-store" in answer.headers["Cache-Control"]
    for path in (f"/metrics?token={TOKEN}", f"/metrics?access_token={TOKEN}"):
        assert Client().get(path).status_code == HTTPStatus.UNAUTHORIZED
    assert get(None, Authorization=f"Basic {TOKEN}").status_code == HTTPStatus.UNAUTHORIZED
    assert get(None, Authorization=f"bearer {TOKEN}").status_code == HTTPStatus.OK
    assert get(method="head").content == b""
    for method in ("post", "put", "delete"):
        assert get(method=method).status_code == HTTPStatus.METHOD_NOT_ALLOWED
    assert get(Accept="é").headers["Content-Type"].startswith("text/plain; version=0.0.4")


def everything(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every part of the page have something to say."""
    monkeypatch.setattr(settings, "REDIS_URL", "redis://127.0.0.1:1/0")
    monkeypatch.setattr(queue, "counts", lambda _: (3, 2))
    process_file.write(Processes({}, {"reader-1": Process(restarts=2), "reader-2": Process()}))
    published.report_alive()
    error = VerificationError("LOG-006", "The log went back.", at=0)
    published.report("nanovm.localhost/none", error)
    said.say("follow", behind=7, exported=90)
    said.say("controller", "Stripe does not answer.", compared=4, open={"REC-001": 2, "REC-999": 5})
    webhooks.counted(webhooks.REFUSED)


def test_the_figures_are_those_of_the_runs(token: House, monkeypatch: pytest.MonkeyPatch) -> None:
    everything(token, monkeypatch)
    token.run(invoice("Total  EUR 12,000.00"))
    token.run(model="compromised")
    token.run()
    found = scraped()
    assert found["nanovm_held_oldest_seconds"][""] > 0
    assert found["nanovm_refusals_total"] == {"CAP-001": 3}
    assert found["nanovm_payments_minor_total"] == {"EUR": 12_000}
    states = dict.fromkeys(life.STATES, 0) | {life.APPROVAL: 1, life.COMPLETED: 1, life.FAILED: 1}
    assert found["nanovm_runs"] == states
    assert found["nanovm_restarts_total"] == {"reader": 2}
    assert found["nanovm_controller_open"] == {"REC-001": 2, "REC-002": 0, "REC-003": 0}
    assert found["nanovm_webhooks_total"] == webhooks.counts() != {}
    numbers = {"queue_length": 3, "dropped_total": 2, "follow_behind": 7, "unsigned_logs": 1}
    numbers |= {"follow_exported": 90, "controller_fault": 1, "follow_fault": 0}
    numbers |= {"held_runs": 1, "envelopes_total": Envelope.objects.count()}
    assert {name: found[f"nanovm_{name}"][""] for name in numbers} == numbers
    assert found["nanovm_up"] == dict.fromkeys(metrics.PARTS, 1)
    assert {f"nanovm_{name}" for name in metrics.TEXTS} == {*found}, "each has its row"
    board = json.loads(source_of(ROOT / "docs" / "grafana.json"))
    asked = [target["expr"] for panel in board["panels"] for target in panel.get("targets", ())]
    drawn = {name for each in asked for name in re.findall(r"nanovm_\w+", each)}
    assert drawn <= {*found}
    assert len(drawn) > len(found) / 2


def test_a_part_that_does_not_answer_is_left_out(
    token: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    everything(token, monkeypatch)

    def broken(*_: object) -> None:
        raise DatabaseError("no such table")

    whole = scraped()
    monkeypatch.setattr(figures, "of_all", broken)
    monkeypatch.setattr(webhooks, "counts", broken)
    said.say("follow", behind=[], exported=1)
    said.say("controller", "It begins.")
    found = scraped()
    lost = dict.fromkeys(("logs", "load", "follow", "controller"), 0)
    assert found["nanovm_up"] == dict.fromkeys(metrics.PARTS, 1) | lost
    gone = {*whole} - {*found}
    assert {"nanovm_runs", "nanovm_webhooks_total", "nanovm_follow_behind"} <= gone
    assert found["nanovm_oldest_waiting_seconds"] == {"": waiting_ms() / 1000}
    for left in ("", "{", "5", '["x","",{}]', "[1]"):  # of a crash of the machine
        (token.folder / "follow.said").write_text(left)
        assert Client().get("/healthz").json()["follow"].startswith("not in use")
        assert "nanovm_follow_silent_seconds" not in scraped()


def test_ten_thousand_runs_and_hostile_names_stay_within_the_series(
    token: House, monkeypatch: pytest.MonkeyPatch, record_property: Callable[[str, object], None]
) -> None:
    everything(token, monkeypatch)
    names = [f'x"}}\n{number}\\' for number in range(2_000)]
    process_file.write(Processes({}, {name: Process(restarts=1) for name in names}))
    said.say("controller", compared=4, open=dict.fromkeys(names, 1))
    rules = [*RULES, *REASONS, *names]
    log, row = chains.create(), {"policy_hash": "", "snapshot": b"", "created_ms": 0}
    refused = ({"kind": "refused", "rule": rule} for rule in rules)
    held = ({"kind": "x", "state": HELD, "run": name} for name in names)
    money = [{"in": {"amount_minor": 500, "currency": each}} for each in [*DECIMALS, "XX\n"]]
    paid = ({**each, "run": "r"} for said in money for each in (ASKED | said, PAID))
    put(log, *refused, *held, *paid)
    Run.objects.bulk_create(
        Run(id=uuid4(), code=f"{n}", workspace=log, state=names[n % 2_000], **row)
        for n in range(10_000)
    )
    found = scraped()
    series = sum(map(len, found.values()))
    assert Run.objects.count() == 10_000
    record_property("series of /metrics at 10,000 runs", f"{series}")
    assert series <= SERIES_MAX
    assert not re.search('x"|\\\\n', json.dumps([*map(list, found.values())]))
    assert found["nanovm_refusals_total"]["other"] >= len(names)
    assert found["nanovm_restarts_total"] == {"other": 2_000}
    assert found["nanovm_runs"]["other"] == 10_000
    assert len(found["nanovm_payments_total"]) == metrics.CURRENCIES_MAX
