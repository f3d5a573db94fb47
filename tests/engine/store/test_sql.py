"""The transaction of the commit path: all of it or nothing, whatever fails, with the ORM in it."""

from collections.abc import Callable
from uuid import uuid4

import pytest
from django.db import IntegrityError, connection, transaction
from django.db.transaction import TransactionManagementError

from engine.models import Absorbed
from engine.store import sql
from pipeline.models import WebhookCount
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
