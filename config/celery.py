"""The Celery application: at least once, one at a time, JSON, and no arguments in the logs."""

import json
import logging
import os
import sys
from typing import Any

from celery import Celery
from celery.signals import celeryd_after_setup, task_prerun, worker_ready
from django.db import connection
from kombu.transport import TRANSPORT_ALIASES

from config import walls

log = logging.getLogger(__name__)
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
os.environ.setdefault("CELERY_SKIP_CHECKS", "1")  # they load every page; manage.py check runs them

TRANSPORT = "engine.worker.messages:Transport"  # what no sender of ours made is dropped there
TRANSPORT_ALIASES |= {"redis": TRANSPORT, "rediss": TRANSPORT}

app = Celery("nanovm")
app.config_from_object("config.queue_settings")
app.autodiscover_tasks()  # `tasks` of each application
app.autodiscover_tasks(["engine.worker"])


@celeryd_after_setup.connect  # type: ignore[untyped-decorator]
def select_queues(**_: Any) -> None:
    """Take messages for the worker's agent (NANOVM_AGENT) alone; without one, for all agents."""
    from celery.worker.control import Panel
    from django.conf import settings

    from engine.runtime import queue  # Django is set up by now
    from engine.store import actors

    if settings.NANOVM_AGENT not in ("", *actors.agents()):
        sys.exit(f"NANOVM_AGENT is none of {', '.join(actors.agents())}; correct it or unset it")
    app.amqp.queues.select(queue.own())
    # Who may write to the queue may not stop a worker with it: of all commands one is left.
    Panel.data.update(dict.fromkeys(Panel.data.keys() - {"ping"}, _refused))


def _refused(*_: object, **__: object) -> dict[str, str]:
    return {"error": "workers of nanovm take no such command"}


@task_prerun.connect  # type: ignore[untyped-decorator] # Celery ships no types
def replace_broken(**_: Any) -> None:
    """Have a task begin on a connection that works: what a thread kept may have been cut off.

    A file that came behind the walls of this process opens for the next process alone.
    """
    if other := walls.replaced():
        log.critical("%s is another file than at the start: this process ends for it", other)
        os._exit(os.EX_TEMPFAIL)
    if connection.connection is None:
        return
    if connection.errors_occurred or not connection.is_usable():
        connection.close()


@worker_ready.connect  # type: ignore[untyped-decorator]
def announce(sender: Any, **_: Any) -> None:
    """Print a line of JSON once the worker accepts tasks."""
    own = {"walls": walls.said} if walls.said else {}
    print(json.dumps({"ready": True, "node": sender.hostname, **own}), flush=True)
