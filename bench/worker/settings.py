"""The application's own settings, with the tools and the task of the bench of the queue."""

from config.settings import *  # noqa: F403

INSTALLED_APPS = [*INSTALLED_APPS, "bench.worker"]  # noqa: F405 # Celery finds its tasks by it
