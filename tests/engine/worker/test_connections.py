"""A worker's thread keeps its connection to the database from task to task, while it works."""

from collections.abc import Iterator

import pytest
from celery import Task
from celery.fixups.django import DjangoWorkerFixup
from celery.signals import task_postrun, task_prerun
from django.db import DatabaseError, connection

from config.celery import app
from engine.worker import tasks
from tests.kit.house import House


@pytest.fixture
def task(house: House) -> Iterator[Task]:
    """A task in a process where Celery does to connections what it does in a worker."""
    fixup = DjangoWorkerFixup(app)
    task_prerun.connect(fixup.on_task_prerun)
    task_postrun.connect(fixup.on_task_postrun)
    yield tasks.turn
    task_prerun.disconnect(fixup.on_task_prerun)
    task_postrun.disconnect(fixup.on_task_postrun)


def between(task: Task) -> object:
    """Let a task end and the next one begin; returns the connection that is used then."""
    task_postrun.send(sender=task)
    task_prerun.send(sender=task)
    return connected()


def connected() -> object:
    """The connection that this thread has now, made where it has none."""
    connection.ensure_connection()
    return connection.connection


@pytest.mark.postgres
def test_a_connection_outlasts_its_task(task: Task) -> None:
    before = connected()
    assert between(task) is before


@pytest.mark.postgres
def test_a_task_does_not_begin_on_a_connection_that_broke(
    task: Task, monkeypatch: pytest.MonkeyPatch
) -> None:
    failed = connected()
    with pytest.raises(DatabaseError), connection.cursor() as cursor:
        cursor.execute("SELECT nothing_of_the_kind")
    cut_off = between(task)
    assert cut_off is not failed
    monkeypatch.setattr(connection, "is_usable", lambda: False)
    assert between(task) is not cut_off
