"""The product's settings, with the refund desk and no invoices."""

from config.settings import *  # noqa: F403

INSTALLED_APPS = ["engine", "tests.engine.refund_desk"]
