"""A step's duration is the time of its work: no pause of the run counts in it."""

import json
from typing import Any

import pytest

from engine.models import AdapterCall, Envelope
from engine.queries import runs, steps
from engine.queries.record import record_of
from engine.queries.runs import StepView
from tests.kit.house import House, sql

KEY = "k" * 64
Body = tuple[str, str, int]  # kind, step, at_ms
SUSPENDED: list[Body] = [
    ("intent", "charge", 1_000), ("suspended", "charge", 1_100), ("resumed", "charge", 9_100),
    ("result", "charge", 9_200),
]  # fmt: skip
STEPPED: list[Body] = [
    ("suspended", "charge", 500), ("resumed", "charge", 1_000), ("intent", "charge", 1_000),
    ("result", "charge", 1_200),
]  # fmt: skip
PAUSED_WITHIN: list[Body] = [
    ("intent", "charge", 1_000), ("suspended", "charge", 1_100), ("result", "charge", 1_300),
    ("resumed", "charge", 4_100),
]  # fmt: skip
PLAIN: list[Body] = [("intent", "charge", 1_000), ("result", "charge", 3_200)]


def charged(house: House, bodies: list[Body], *, pace_ms: int = 0, called_ms: int = 0) -> StepView:
    """The charge step of a run with these envelopes and one record of an adapter."""
    run = house.new()
    for n, (kind, step, at_ms) in enumerate(bodies, 50):
        body: dict[str, Any] = {"kind": kind, "step": step, "at_ms": at_ms}
        body |= {"idempotency_key": KEY} if kind in ("intent", "result") else {}
        Envelope.objects.create(
            workspace_id=run.workspace_id, seq=900 + n, run=str(run.id), n=n, hash="", kind=kind,
            bytes=json.dumps(body).encode(),
        )  # fmt: skip
    if called_ms:
        AdapterCall.objects.create(run=run, number=99, key=KEY, tool="x", at_ms=called_ms)
    sql(("UPDATE pipeline_run SET pace_ms = %s, length = 60 WHERE code = %s", (pace_ms, run.code)))
    return steps.of_run(record_of(runs.by_id(str(run.id))))[5]


@pytest.mark.parametrize(
    ("bodies", "pace_ms", "called_ms", "took"),
    [
        (PLAIN, 0, 1_010, (2_190, 0, 1_010)),
        (PLAIN, 2_000, 3_000, (200, 2_000, 3_000)),
        (SUSPENDED, 0, 1_010, (190, 8_000, 1_010)),
        (STEPPED, 0, 1_000, (200, 500, 1_000)),
        (PAUSED_WITHIN, 0, 1_000, (300, 3_000, 1_000)),
    ],
)
def test_pauses_are_counted_apart(
    house: House, bodies: list[Body], pace_ms: int, called_ms: int, took: tuple[int, int, int]
) -> None:
    view = charged(house, bodies, pace_ms=pace_ms, called_ms=called_ms)
    assert (view.duration_ms, view.paused_ms, view.begun_ms) == took
