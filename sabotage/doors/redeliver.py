"""Redelivers a run's own queue message, as many times as the attack asks."""

from concurrent.futures import ThreadPoolExecutor

from celery import current_app
from django.conf import settings
from django.db import connections
from kombu.exceptions import OperationalError

from engine.runtime.queue import DRIVE, of_tool, place_of
from engine.worker import tasks
from sabotage.kit.injector import InjectionError

THREADS_MAX = 64  # deliveries at work at one time where there is no queue


def deliver(run_id: str, program: str, times: int) -> str:
    """Deliver the message ``times`` times at once, and return how: "queue" or "threads".

    On the real queue where there is one, that of the agent whose step it is (the caller waits for
    the workers); else in threads, which have all ended by then.

    Raises:
        InjectionError: the queue does not answer.
    """
    if settings.REDIS_URL:
        _queue(run_id, program, times)
        return "queue"
    with ThreadPoolExecutor(max_workers=min(times, THREADS_MAX)) as pool:
        futures = [pool.submit(_delivered, run_id, program) for _ in range(times)]
    for future in futures:
        future.result()
    return "threads"


def _queue(run_id: str, program: str, times: int) -> None:
    message, to = [run_id, program], of_tool(place_of(run_id).tool)
    try:
        with current_app.producer_or_acquire() as producer:
            for _ in range(times):
                current_app.send_task(DRIVE, message, queue=to, retry=False, producer=producer)
    except OperationalError as error:
        raise InjectionError("The queue does not answer. Start it and fire again.") from error


def _delivered(run_id: str, program: str) -> None:
    try:
        tasks.deliver(run_id, program)
    finally:
        connections.close_all()  # this thread's own
