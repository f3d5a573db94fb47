"""Damaged envelopes whose hashes match: every page of the workspace still answers."""

import json

import pytest

from dashboard.templatetags.show import NO_TIME, clock, hour
from engine.models import AdapterCall, Envelope
from engine.queries.runs import RunHead
from nanovm_core.core.envelope import canonical_hash
from tests.dashboard.visitor import PAGES, TRANSFER, Visitor, words
from tests.kit.house import sql
from tests.kit.trees import PLACE

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


def test_a_dozen_malformed_bodies_break_no_page(
    owner: Visitor, held: RunHead, paid: RunHead
) -> None:
    attack = owner.fire(held, "tool_injection", proposal=TRANSFER)
    rows = list(Envelope.objects.filter(run=paid.id).order_by("n"))
    assert len(rows) >= len(BODIES)
    for row, body in zip(rows, BODIES, strict=False):
        forge(row, body)
    assert NO_TIME in owner.read(f"/runs/{paid.code}/audit/")
    assert NO_TIME in owner.read("/audit/")
    for path in [*every_page(paid.code, len(rows)), f"/runs/{held.code}/", attack]:
        owner.read(path)
    assert "DETECTED" in words(owner.post(f"/runs/{paid.code}/audit/verify/").content.decode())
    for path in every_page(paid.code, 1):
        owner.read(path)


def test_an_intent_that_calls_itself_otherwise_is_an_intent_still(
    owner: Visitor, paid: RunHead
) -> None:
    page = owner.read(f"/runs/{paid.code}/")
    assert ("No unauthorized call" in words(page), "BREACHED" in page) == (True, False)
    change = "UPDATE pipeline_envelope SET kind = 'result' WHERE run = %s AND kind = 'intent'"
    sql((change, (paid.id,)))
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


def forge(row: Envelope, body: object) -> None:
    """Write a body over an envelope, with the kind and the hash that belong to it."""
    said = body.get("kind") if isinstance(body, dict) else None
    kind = said if isinstance(said, str) else row.kind
    data = json.dumps(body).encode()
    change = f"UPDATE pipeline_envelope SET bytes = %s, hash = %s, kind = %s {PLACE}"
    sql((change, (data, canonical_hash(data), kind, row.workspace_id.hex, row.seq)))
