"""The transaction of the commit path: all of it or nothing, whatever fails, with the ORM in it."""

from collections.abc import Callable
from contextlib import nullcontext, suppress
from uuid import uuid4

import psycopg
import pytest
from django.db import (
    DatabaseError,
    DataError,
    IntegrityError,
    InternalError,
    OperationalError,
    connection,
    transaction,
)
from django.db.transaction import TransactionManagementError

from engine.models import Absorbed, Checkpoint, Run, Workspace
from engine.store import sql
from pipeline.models import Bill, FarSide, Supplier, WebhookCount
from sabotage.models import Attack, Plan
from tests import postgres
from tests.kit.databases import on_postgres_alone
from tests.kit.house import House

pytestmark = pytest.mark.postgres

INSERT = "INSERT INTO pipeline_webhookcount (name, count) VALUES (%s, 1)"


class BrokenError(Exception):
    """What a job raises."""


def put(name: str) -> None:
    WebhookCount.objects.create(name=name, count=1)


def fails() -> None:
    sql.later(INSERT, ("later",))
    put("orm")
    sql.change(INSERT, ("sql",))
    raise BrokenError


def fails_with_it_put_off() -> None:
    sql.later(INSERT, ("later",))
    raise BrokenError


def fails_at_its_end() -> None:
    """A reference to nothing, which is looked at when all is to be committed."""
    sql.change(INSERT, ("sql",))
    put("orm")
    Absorbed.objects.create(run_id=uuid4(), kind="x")


def fails_in_what_was_put_off() -> None:
    put("orm")
    sql.later(INSERT, ("twice",))
    sql.later(INSERT, ("twice",))


def spoils_it() -> None:
    """A part of it says that the whole cannot stand, and nobody raises that."""
    put("orm")
    transaction.set_rollback(True)


@pytest.mark.parametrize(
    ("work", "error"),
    [
        (fails, BrokenError),
        (fails_with_it_put_off, BrokenError),
        (fails_at_its_end, IntegrityError),
        (fails_in_what_was_put_off, IntegrityError),
        (spoils_it, TransactionManagementError),
    ],
)
def test_what_fails_leaves_nothing_and_the_connection_goes_on(
    house: House, work: Callable[[], None], error: type[Exception]
) -> None:
    called: list[str] = []

    def whole() -> None:
        transaction.on_commit(lambda: called.append("of what failed"))
        work()

    with pytest.raises(error):
        sql.in_transaction(whole)
    assert WebhookCount.objects.count() == 0
    assert (connection.in_atomic_block, connection.get_autocommit()) == (False, True)
    with transaction.atomic():
        put("django's")
    sql.in_transaction(lambda: put("ours"))
    assert {*WebhookCount.objects.values_list("name", flat=True)} == {"django's", "ours"}
    assert called == []


def test_a_part_that_is_taken_back_spoils_nothing_and_hooks_come_after_the_commit(
    house: House,
) -> None:
    called: list[bool] = []

    def taken_back() -> None:
        with transaction.atomic():
            put("taken back")
            raise BrokenError

    def work() -> str:
        transaction.on_commit(lambda: called.append(connection.in_atomic_block))
        put("before")
        with pytest.raises(BrokenError):
            taken_back()
        sql.later(INSERT, ("later",))
        assert called == []
        return "answer"

    assert sql.in_transaction(work) == "answer"
    assert called == [False]
    assert {*WebhookCount.objects.values_list("name", flat=True)} == {"before", "later"}


@pytest.mark.parametrize("is_part", [True, False])
def test_what_is_put_off_comes_before_what_the_orm_asks(house: House, *, is_part: bool) -> None:
    def fails_at_once() -> None:
        raise BrokenError

    def work() -> bool:
        sql.later(INSERT, ("later",))
        found = WebhookCount.objects.filter(name="later").exists()
        sql.later(INSERT, ("before",))
        with pytest.raises(BrokenError):
            sql.in_transaction(fails_at_once)
        return found

    with transaction.atomic() if is_part else nullcontext():
        assert sql.in_transaction(work)
    assert {*WebhookCount.objects.values_list("name", flat=True)} == {"later", "before"}


@pytest.mark.parametrize("begin", [sql.in_transaction, lambda work: work()])
def test_what_is_asked_first_is_in_djangos_transaction(
    house: House, begin: Callable[[Callable[[], int]], int]
) -> None:
    with transaction.atomic():
        begin(lambda: sql.change(INSERT, ("taken back",)))
        transaction.set_rollback(True)
    assert not WebhookCount.objects.exists()


def test_a_part_that_fails_leaves_nothing_to_be_sent_later(house: House) -> None:
    with pytest.raises(BrokenError), transaction.atomic():
        sql.in_transaction(fails_with_it_put_off)
    sql.in_transaction(lambda: sql.later(INSERT, ("other",)))
    assert {*WebhookCount.objects.values_list("name", flat=True)} == {"other"}


# --- on a server -----------------------------------------------------------------------------

SELECT = "SELECT name FROM pipeline_webhookcount WHERE name = %s"
BACKEND = "SELECT pg_backend_pid()"


def put_twice() -> None:
    """The second write fails, and its error is swallowed."""
    sql.change(INSERT, ("same",))
    with suppress(psycopg.Error):
        sql.change(INSERT, ("same",))


def put_twice_with_djangos_cursor() -> None:
    with suppress(IntegrityError), connection.cursor() as cursor:
        cursor.executemany(INSERT, [("same",), ("same",)])


def put_off_twice() -> None:
    sql.later(INSERT, ("same",), ("same",))
    with suppress(IntegrityError):
        WebhookCount.objects.exists()


def cut_off() -> None:
    """The server ends the connection before COMMIT is sent."""
    [(backend,)] = sql.execute(BACKEND)
    sql.later(INSERT, ("lost",))
    postgres.execute(f"SELECT pg_terminate_backend({backend}, 10000)")


def locked_out() -> None:
    sql.change("SET LOCAL lock_timeout = '50ms'", ())
    name = str(connection.settings_dict["NAME"])
    with psycopg.connect(postgres.url(name)) as other:
        other.execute("LOCK TABLE pipeline_webhookcount")
        sql.later(INSERT, ("lost",))
        sql.execute(SELECT, ("lost",))


def takes_too_long() -> None:
    sql.change("SET LOCAL statement_timeout = '50ms'", ())
    sql.execute("SELECT pg_sleep(60)")


def has_a_nul() -> None:
    sql.later(INSERT, ("a\0b",))


@on_postgres_alone
@pytest.mark.parametrize(
    ("work", "error"),
    [
        (put_twice, InternalError),
        (put_off_twice, InternalError),
        (put_twice_with_djangos_cursor, InternalError),
        (cut_off, OperationalError),
        (locked_out, OperationalError),
        (takes_too_long, OperationalError),
        (has_a_nul, DataError),
    ],
)
def test_an_error_of_a_server_is_djangos_and_nothing_is_committed(
    house: House, work: Callable[[], None], error: type[Exception]
) -> None:
    for _ in range(2):  # the second time with statements that were planned before the first
        with pytest.raises(error):
            sql.in_transaction(work)
        assert (connection.in_atomic_block, connection.get_autocommit()) == (False, True)
        assert sql.in_transaction(lambda: sql.execute(SELECT, ("same",))) == []
    assert not WebhookCount.objects.exists()


@on_postgres_alone
def test_a_plan_that_a_new_layout_spoils_is_made_anew(house: House) -> None:
    name = str(connection.settings_dict["NAME"])
    every = "SELECT * FROM changing"
    postgres.execute("CREATE TABLE changing (a int)", name)
    try:
        assert sql.execute(every) == []
        postgres.execute("ALTER TABLE changing ADD b text", name)
        with pytest.raises(DatabaseError):
            sql.execute(every)
        assert sql.in_transaction(lambda: sql.execute(every)) == []
    finally:
        postgres.execute("DROP TABLE changing", name)


@on_postgres_alone
def test_a_server_keeps_so_many_plans(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    from engine.store import exchange

    monkeypatch.setattr(exchange, "PLANNED_MAX", 3)
    for number in range(9):
        assert sql.execute(f"SELECT {number}, %s", ("x",)) == [(number, "x")]
        [(count,)] = sql.execute("SELECT count(*) FROM pg_prepared_statements")
        assert count <= 3


@on_postgres_alone
def test_much_may_go_both_ways_at_once(house: House) -> None:
    """More than the buffers of a socket hold, so each side has to read while it writes."""
    much, times = "x" * 4_000_000, 5

    def work() -> list[str]:
        asked = [sql.ask("SELECT %s::text", (much,)) for _ in range(times)]
        return [text for each in asked for ((text,),) in [each()]]

    assert sql.in_transaction(work) == [much] * times


@on_postgres_alone
def test_rows_that_are_read_in_parts_stay_with_the_server(house: House) -> None:
    with transaction.atomic():
        rows = sql.in_parts("SELECT generate_series(1, %s)", (5,), 2)
        next(rows)
        assert sql.execute("SELECT COUNT(*) FROM pg_cursors WHERE name > ''") == [(1,)]
        assert [*rows] == [(2,), (3,), (4,), (5,)]


@on_postgres_alone
def test_a_connection_whose_answers_nobody_read_is_closed(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    from engine.store import exchange

    def interrupted(_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(exchange, "_received", interrupted)
        with pytest.raises(KeyboardInterrupt):
            sql.execute(BACKEND)
    assert connection.connection.closed
    connection.close()
    assert sql.execute("SELECT 1") == [(1,)]


def test_rows_are_those_that_django_reads(house: House) -> None:
    """Of the models that are read so: bytes, truths, ids and JSON are what they are elsewhere."""
    run = house.run()
    of = {"run": run, "workspace": run.workspace, "created_ms": 1, "injector": "x"}
    Attack.objects.create(id=uuid4(), params={"n": [1, None]}, **of)
    Plan.objects.create(id=uuid4(), run=run, words=b"w", step=1, created_ms=1, changed_ms=1)
    FarSide.objects.create(run=run, refunded_minor=0, at_ms=1, sealed_n=0)
    Checkpoint.objects.create(workspace=run.workspace, size=1, note=b"note", at_ms=1)
    for model in (Attack, Run, Workspace, Supplier, Bill, Plan, FarSide, Checkpoint):
        both = sql.rows(model, "ORDER BY id"), model._base_manager.order_by("id")
        found, expected = ([{**vars(each), "_state": 0} for each in rows] for rows in both)
        assert found == expected != []
