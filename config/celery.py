"""The Celery application: at least once, one at a time, JSON, and no arguments in the logs."""

import os

from celery import Celery

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")

app = Celery("nanovm")
app.config_from_object("config.queue_settings")
app.autodiscover_tasks()
