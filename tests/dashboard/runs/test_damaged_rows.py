"""Damaged envelopes whose hashes match: every page of the workspace still answers."""

import json

import pytest
from django.db import connection

from dashboard.templatetags.show import NO_TIME, clock, hour
from nanovm_core.core.envelope import canonical_hash
from pipeline.models import AdapterCall, Envelope
from pipeline.queries.runs import RunHead
from tests.dashboard.visitor import PAGES, TRANSFER, Visitor, by_code, words

pytestmark = pytest.mark.usefixtures("db")

HUGE = 10**40
BODIES: tuple[object, ...] = (
    {},
    [],
    7,
    None,
    "text",
    {"kind": "intent", "step": "charge"},
    {"kind": "intent", "step": "charge", "n": "four", "at_ms": "noon", "warrant": [1]},
    {"kind": "result", "step": "charge", "n": "five", "at_ms": HUGE, "out": []},
    {"kind": "result", "step": "extract", "at_ms": -HUGE, "state": {}, "in": [], "secrets": [{}]},
    {"kind": "intent", "step": [], "idempotency_key": {"a": 1}, "warrant": "w", "in": {"x": HUGE}},
    {"kind": "refused", "rule": ["CAP-001"], "in": {"proposal": 7}, "decision": "BLOCKED"},
    {"kind": "refused", "rule": "CAP-001", "in": {"proposal": ["vault://secret/x"]}},
    {"kind": "ignored", "state": {"from": 1, "to": None, "event": []}, "out": 3, "secrets": 5},
    {"kind": "integrity", "at_ms": 1.5, "expected": 7, "found": {}, "at": "x"},
    {"kind": 3, "actor": None, "tool": {}, "prev": 0, "outcome": [], "n": HUGE},
)  # fmt: skip


@pytest.mark.parametrize("at_ms", [HUGE, -HUGE, 2**62, -(2**62)])
def test_an_absurd_moment_is_not_a_time(at_ms: int) -> None:
    assert (clock(at_ms), hour(at_ms)) == (NO_TIME, NO_TIME)


def test_a_dozen_malformed_bodies_break_no_page(owner: Visitor) -> None:
    run, other = owner.make("over_limit"), owner.make()
    attack = owner.fire(run, "tool_injection", proposal=TRANSFER)
    rows = list(Envelope.objects.filter(run=other.id).order_by("n"))
    assert len(rows) >= len(BODIES)
    for row, body in zip(rows, BODIES, strict=False):
        kind = body.get("kind") if isinstance(body, dict) else None
        forge(row, body, kind if isinstance(kind, str) else row.kind)
    assert NO_TIME in owner.read(f"/runs/{other.code}/audit/")
    assert NO_TIME in owner.read("/audit/")
    for path in every_page(other.code, len(rows)):
        owner.read(path)
    for path in [*every_page(run.code, by_code(run.code).length), attack]:
        owner.read(path)
    assert "DETECTED" in words(owner.post(f"/runs/{other.code}/audit/verify/").content.decode())
    for path in every_page(other.code, by_code(other.code).length):
        owner.read(path)


@pytest.fixture(scope="module")
def paused(owner: Visitor) -> RunHead:
    """A run that goes step by step and was started."""
    run = owner.make(hold=True, pace="step")
    owner.command(run, "start")
    return owner.driven(run.code)


@pytest.mark.usefixtures("db")
@pytest.mark.parametrize(
    ("body", "place"),
    [
        pytest.param(body, place, marks=[pytest.mark.soak] * (i % 3 != j))
        for i, body in enumerate(BODIES[5:])
        for j, place in enumerate((0, 3, -1))
    ],
)
def test_no_malformed_body_breaks_the_run_page_from_any_place(
    owner: Visitor, paused: RunHead, body: dict[str, object], place: int
) -> None:
    row = list(Envelope.objects.filter(run=paused.id).order_by("n"))[place]
    kind = body["kind"]
    forge(row, body, kind if isinstance(kind, str) else row.kind)
    for path in every_page(paused.code, paused.length):
        owner.read(path)


def test_an_intent_that_calls_itself_otherwise_is_an_intent_still(
    owner: Visitor, paid: RunHead
) -> None:
    page = owner.read(f"/runs/{paid.code}/")
    assert ("Integrity HELD" in words(page), "BREACHED" in page) == (True, False)
    with connection.cursor() as cursor:
        cursor.execute("DROP TRIGGER IF EXISTS pipeline_envelope_no_update")
        cursor.execute(
            "UPDATE pipeline_envelope SET kind = 'result' WHERE run = %s AND kind = 'intent'",
            [paid.id],
        )
    assert "BREACHED" not in owner.read(f"/runs/{paid.code}/")
    AdapterCall.objects.create(run_id=paid.id, number=99, key="f" * 64, tool="wire", at_ms=1)
    assert "BREACHED" in owner.read(f"/runs/{paid.code}/")


def every_page(code: str, length: int) -> list[str]:
    """Every page of a workspace that a run of this code has a part in."""
    return [
        *("/", "/runs/", "/audit/", f"/audit/?run={code}"),
        *(path.format(code=code) for path in PAGES),
        *(f"/runs/{code}/events/{number}/" for number in range(1, length + 1)),
        *(f"/runs/{code}/steps/{number}/" for number in range(1, 8)),
    ]


def forge(row: Envelope, body: object, kind: str) -> None:
    """Write a body over an envelope, with the hash that belongs to it."""
    data = json.dumps(body).encode()
    with connection.cursor() as cursor:
        cursor.execute("DROP TRIGGER IF EXISTS pipeline_envelope_no_update")
        cursor.execute(
            "UPDATE pipeline_envelope SET bytes = %s, hash = %s, kind = %s"
            " WHERE workspace_id = %s AND seq = %s",
            [data, canonical_hash(data), kind, row.workspace_id.hex, row.seq],
        )
