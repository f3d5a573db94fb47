"""The product's settings, for the next release."""

from config.settings import *  # noqa: F403
from config.settings import INSTALLED_APPS as BEFORE

INSTALLED_APPS = [*BEFORE, "tests.kept.next_release"]
MIGRATION_MODULES = {"pipeline": "tests.kept.next_release.migrations", "next_release": None}
