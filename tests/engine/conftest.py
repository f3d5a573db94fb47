"""The fixtures of the engine and the invoices: a data folder and a database for each test."""

from tests.kit.fixtures import *  # noqa: F403
