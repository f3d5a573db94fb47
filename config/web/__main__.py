"""Starts it: ``python -m config.web``, with Daphne's own options."""

import sys

import daphne.server
from daphne.cli import CommandLineInterface
from daphne.ws_protocol import WebSocketFactory

import config.asgi  # noqa: F401 - sets Django up, which the next one needs
from config.web import connections
from config.web.door import files_allowed

if __name__ == "__main__":
    files_allowed()
    daphne.server.HTTPFactory = connections.factory_of
    WebSocketFactory.protocol = connections.DeafSocket
    CommandLineInterface.server_class = connections.PatientServer
    CommandLineInterface().run(sys.argv[1:])
