"""The application's own settings, with the tools and the task of the bench of the queue."""

from config.settings import *  # noqa: F403

INSTALLED_APPS = [*INSTALLED_APPS, "bench"]  # noqa: F405 # the worker finds bench.tasks by it
