"""The product's settings, with the refund desk beside the invoices."""

from config.settings import *  # noqa: F403

INSTALLED_APPS += ["tests.engine.refund_desk"]  # noqa: F405
