"""The Celery application: at least once, one at a time, JSON, and no arguments in the logs."""

import json
import os
from typing import Any

from celery import Celery
from celery.signals import worker_ready
from kombu.transport import TRANSPORT_ALIASES

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")

DOOR = "pipeline.worker.messages:Transport"  # what no sender of ours made is dropped there
TRANSPORT_ALIASES |= {"redis": DOOR, "rediss": DOOR}

app = Celery("nanovm")
app.config_from_object("config.queue_settings")
app.autodiscover_tasks()  # `tasks` of each application
app.autodiscover_tasks(["pipeline.worker"])


@worker_ready.connect  # type: ignore[untyped-decorator] # Celery ships no types
def announce(sender: Any, **_: Any) -> None:
    """Print a line of JSON once the worker accepts tasks."""
    print(json.dumps({"ready": True, "node": sender.hostname}), flush=True)
