"""A worker's additions for the bench of the queue: tools and a task that do nothing."""

from functools import cache
from typing import Any

import redis
from celery import shared_task
from celery.signals import task_postrun
from django.conf import settings

from bench.worker.application import Seven, Shared
from engine.application import install
from engine.runtime.queue import DRIVE
from engine.work import Answer, Work
from nanovm_core.core.events import EffectDone

DONE = "bench.done"  # a list at the queue server: the names of tasks that ended


@shared_task(name="bench.nothing")  # type: ignore[untyped-decorator]
def nothing(run_id: str, program: str) -> None:
    """A task as large as the one that drives a run, which does nothing."""


@task_postrun.connect  # type: ignore[untyped-decorator]
def announce(task: Any, **_: Any) -> None:
    """Announce the end of a measured task; sweeps are not measured."""
    if task.name in (nothing.name, DRIVE):
        server().rpush(DONE, task.name)


@cache
def server() -> redis.Redis:
    """The queue's own server."""
    return redis.Redis.from_url(str(settings.REDIS_URL))


def trivial(work: Work) -> Answer:
    """Answer as done without an effect."""
    return Answer(event=EffectDone(key=work.effect.key, out={"result": "done"}))


install(Seven(trivial))
install(Shared(trivial))
