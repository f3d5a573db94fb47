"""What is recomputed is one moment of the database, while others write."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connection

from pipeline.evidence.fsck.audit import audit
from pipeline.models import Run
from pipeline.runtime import api
from tests.pipeline.house import House, succeeded

pytestmark = pytest.mark.postgres


def driven(house: House, runs: Sequence[Run]) -> None:
    """Drive runs to their ends on the thread that this is called on."""
    try:
        for run in runs:
            house.drive(run)
    finally:
        connection.close()


def test_an_audit_finds_logs_whole_that_grow_meanwhile(house: House) -> None:
    runs = [house.new() for _ in range(6)]
    for run in runs:
        api.start(str(run.id), "visitor")
    with ThreadPoolExecutor(1) as thread:
        at_work = thread.submit(driven, house, runs)
        seen = set()
        while not at_work.done():
            report = audit()
            assert report.damage == ()
            seen.add(report.envelopes)
        at_work.result()
    assert len(seen) > 1
    assert [succeeded(run) for run in runs] == [[(12_000, "eur")]] * 6
