"""Starts it: ``python -m config.web``, with Daphne's own options."""

import sys

import daphne.server
from daphne.cli import CommandLineInterface

import config.asgi  # noqa: F401 - sets Django up, which the next one needs
from config.web import connections
from config.web.door import files_allowed

# A page sends nothing on its socket: what comes there is not read, and not kept either.
MESSAGES = ("--websocket-max-message-size", "1024", "--websocket-max-frame-size", "1024")

if __name__ == "__main__":
    files_allowed()
    daphne.server.HTTPFactory = connections.factory_of
    CommandLineInterface().run([*MESSAGES, *sys.argv[1:]])
