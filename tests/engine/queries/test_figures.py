"""Figures of logs: what they count, what they leave out, and what they read anew."""

import json
import threading
import time
from datetime import UTC, datetime
from typing import Any

import pytest
from django.db import connections

from engine.models import Envelope, Run, Workspace
from engine.queries import figures
from engine.runtime import api, chains
from nanovm_core.core import lifecycle as life
from nanovm_core.core.envelope import canonical_hash
from pipeline.labels import CHARGE
from pipeline.steps import approvals
from tests.kit.clock import Leap
from tests.kit.house import House, invoice, sql

AT_MS = 1_700_000_000_000
DAY = datetime.fromtimestamp(AT_MS / 1000, UTC).date()
HELD = {"from": life.ACTIVE, "to": life.APPROVAL, "event": "ProposalReceived"}
YES = {"from": life.APPROVAL, "to": life.ACTIVE, "event": "Approved"}
NO = {"from": life.APPROVAL, "to": life.FAILED, "event": "Declined"}
ASKED: dict[str, Any] = {"kind": "intent", "tool": CHARGE, "idempotency_key": "k"}
ASKED |= {"in": {"amount_minor": 500, "currency": "EUR"}}
PAID: dict[str, Any] = {"kind": "result", "tool": CHARGE, "idempotency_key": "k"}
PAID |= {"outcome": "done", "out": {"payment_status": "succeeded"}}


def put(log: Workspace, *said: dict[str, Any] | bytes, stored: str = "") -> None:
    """Store envelopes behind the last one, as somebody with the database could."""
    rows = []
    for each in said:
        body = {"run": f"run-{log.size % 7}", "at_ms": AT_MS} | (each if type(each) is dict else {})
        data = each if type(each) is bytes else json.dumps(body, separators=(",", ":")).encode()
        found = {"run": "x", "kind": "x", "bytes": data, "hash": stored or canonical_hash(data)}
        rows.append(Envelope(workspace=log, seq=log.size, n=log.size, **found))
        log.size += 1
    Envelope.objects.bulk_create(rows)
    Workspace.objects.filter(id=log.id).update(size=log.size)


def test_they_count_what_runs_say(house: House, leap: Leap) -> None:
    held = house.run(invoice("Total  EUR 12,000.00"))
    log = held.workspace
    first = figures.of_log(log)
    assert [*first.held] == [held.name]
    assert first.oldest_ms is not None
    assert first.oldest_ms >= held.created_ms
    assert first.median_decide_ms is None
    leap(60_000)
    approvals.approve(held.name, "visitor")
    house.drive(held)
    declined = house.run(invoice("Total  EUR 13,000.00"), workspace=log)
    api.decline(declined.name, "visitor")
    house.run(model="compromised", workspace=log)
    asked = house.run(invoice("Total  EUR 14,000.00"), workspace=log)
    found = figures.of_log(log)
    today = datetime.fromtimestamp(time.time(), UTC).date()
    assert found.of("decided") == {"approved": 1, "declined": 1}
    assert sum(found.newest_ms) == found.of("took_ms").total() >= 60_000
    assert found.counts["refused", today, "CAP-001"] == found.of("refused").total() == 3
    assert found.of("paid") == {"EUR": 1}
    assert found.counts["minor", today, "EUR"] == 1_200_000
    assert found.of("ended") == {life.COMPLETED: 1, life.FAILED: 2}
    assert [*found.held] == [run.name for run in Run.objects.filter(state=life.APPROVAL)]
    figures._KNOWN.clear()
    assert figures.of_log(log) == found == figures.of_all(), "read on, or anew: the same"
    api.kill(asked.name, "visitor")
    assert not figures.of_log(log).held
    assert figures.of_log(log).of("decided") == {"approved": 1, "declined": 1}


Cells = dict[tuple[str, str], int]
CASES: dict[str, tuple[tuple[dict[str, Any], ...], Cells]] = {
    "held twice counts once": (({"state": HELD}, {"state": HELD}), {}),
    "asked again": (({"state": HELD}, {"state": {**YES, "to": life.APPROVAL}}), {}),
    "declined": (
        ({"state": HELD}, {"state": NO}),
        {("decided", "declined"): 1, ("took_ms", ""): 0, ("ended", life.FAILED): 1},
    ),
    "a yes without a hold": (({"state": YES},), {}),
    "a paid call": ((ASKED, PAID), {("paid", "EUR"): 1, ("minor", "EUR"): 500}),
    "a result that comes twice": ((ASKED, PAID, PAID), {("paid", "EUR"): 1, ("minor", "EUR"): 500}),
    "late": (
        (ASKED, {"kind": "ignored", "state": NO}, {**PAID, "kind": "ignored", "state": NO}),
        {("paid", "EUR"): 1, ("minor", "EUR"): 500, ("ended", life.FAILED): 2},
    ),
    "under way": ((ASKED, {**PAID, "outcome": "waiting"}), {}),
    "under another key": ((ASKED, {**PAID, "idempotency_key": "other"}), {}),
    "of no call": ((PAID,), {}),
    "not paid": ((ASKED, {**PAID, "out": {"payment_status": "processing"}}), {}),
    "no currency": (({**ASKED, "in": {"amount_minor": 5, "currency": ["EUR"]}}, PAID), {}),
    "no amount": (({**ASKED, "in": {"amount_minor": 10**40, "currency": "EUR"}}, PAID), {}),
    "no such day": (({"kind": "refused", "rule": "x", "at_ms": 10**30},), {("refused", "x"): 1}),
    "no types": (({"kind": "x", "state": {"to": [life.APPROVAL], "from": {}}, "run": {}},), {}),
}


def test_what_an_envelope_counts_as(house: House) -> None:
    wrong = {}
    for case, (said, expected) in CASES.items():
        log = chains.create()
        put(log, *({"kind": "x", "run": "r"} | each for each in said))
        found = figures.of_log(log)
        shown = {(what, label): n for (what, _, label), n in found.counts.items()}
        if shown != expected:
            wrong[case] = shown
        assert len(found.held) == (case in ("held twice counts once", "asked again"))
    assert wrong == {}


def test_damaged_bytes_count_for_nothing(house: House) -> None:
    log = chains.create()
    put(log, {"kind": "refused", "rule": "CAP-001"}, stored="0" * 64)
    put(log, b'{"kind":"refused","ru\xff', b'["kind":"refused"' * 40, b'"kind":"refused"')
    assert figures.of_log(log) == figures.Figures()


def test_a_log_that_goes_back_is_read_anew(house: House) -> None:
    log, other = chains.create(), chains.create()
    found = {"run": "x", "n": 9, "kind": "x", "bytes": b"", "hash": "x"}
    Envelope.objects.create(workspace=log, seq=2**50, **found)  # hides nothing that comes after
    figures.of_log(log)
    put(log, *[{"kind": "refused", "rule": "CAP-001"}] * 4)
    put(other, {"kind": "refused", "rule": "CAP-001"})
    assert figures.of_all().of("refused") == {"CAP-001": 5}
    sql(("DELETE FROM pipeline_envelope WHERE seq >= %s", [log.size - 2]))
    log.size -= 2
    put(log, *[{"kind": "refused", "rule": "CAP-002"}] * 3)  # and longer than it was
    assert figures.of_log(log).of("refused") == {"CAP-001": 2, "CAP-002": 3}
    sql(("DELETE FROM pipeline_envelope WHERE seq >= %s", [log.size - 4]))
    Workspace.objects.filter(id=log.id).update(size=log.size - 4)
    assert figures.of_log(log).counts == {("refused", DAY, "CAP-001"): 1}


def test_what_a_process_remembers_is_bounded(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ASKED_MAX", "LOGS_MAX", "ROWS_MAX"):
        monkeypatch.setattr(figures, name, 3)
    monkeypatch.setattr(figures, "_KNOWN", {})
    for log in [chains.create() for _ in range(4)]:
        put(log, *({**ASKED, "run": f"r{n}"} for n in range(5)))
        put(log, *({"kind": "refused", "rule": "CAP-001"} for n in range(5)))
    found = figures.of_all()
    assert len(figures._KNOWN) == 3
    assert [len(each.asked) for each in figures._KNOWN.values()] == [3, 3, 3]
    assert found.of("refused") == {"CAP-001": 20}
    assert figures.of_all() == found


def test_threads_that_ask_at_once_count_once(house: House) -> None:
    log = chains.create()
    put(log, *[{"kind": "refused", "rule": "CAP-001"}] * 500)
    found, together = [], threading.Barrier(4)

    def ask() -> None:
        together.wait()
        found.append(figures.of_log(log).counts["refused", DAY, "CAP-001"])
        connections.close_all()

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert found == [500] * 4
