"""A log that is read in parts: all of it, and no query stays open."""

from uuid import UUID

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from engine.entropy import uuid7
from engine.models import Envelope, Workspace
from engine.runtime import chains
from engine.store import logs
from tests.kit.house import House
from tests.kit.trees import grown, stored

COUNT = 7
ON_A_SERVER_TOO = pytest.mark.postgres


@pytest.fixture
def log(house: House) -> UUID:
    found: Workspace = house.once(seven)
    return found.id


def seven(_: House) -> Workspace:
    return stored(grown(chains.create(), COUNT - 1))


@ON_A_SERVER_TOO
@pytest.mark.parametrize("most", [1, 2, COUNT, COUNT + 1])
def test_all_is_read_in_order_and_each_query_has_ended_before_its_rows_are_given(
    log: UUID, most: int
) -> None:
    rows = Envelope.objects.filter(workspace=log, seq__gte=1)
    whole = [*rows.order_by("seq")]
    with CaptureQueriesContext(connection) as asked:
        parts = logs.in_parts(rows, "seq", most)
        assert next(parts) == whole[0]
        assert len(asked) == 1
        assert [*parts] == whole[1:]
    assert all(f"LIMIT {most}" in each["sql"] for each in asked)


@pytest.mark.parametrize("most", [1, 2, 3, 4, 20])
def test_damaged_numbers_neither_hide_nor_repeat_a_row(log: UUID, most: int) -> None:
    columns = "workspace_id, seq, run, n, bytes, hash, kind"
    with connection.cursor() as cursor:
        for seq in ("1.5", "'x'", "x'00'", "'y'"):
            cursor.execute(
                f"INSERT INTO pipeline_envelope ({columns}) VALUES (%s, {seq}, %s, 0, x'', '', '')",
                [log.hex, str(uuid7())],
            )
    rows = logs.in_parts(Envelope.objects.filter(workspace=log), "seq", most)
    assert [each.seq for each in rows] == [0, 1, 1.5, 2, 3, 4, 5, 6, "x", "y", b"\0"]
