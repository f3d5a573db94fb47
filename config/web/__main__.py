"""Starts it: ``python -m config.web``, with Daphne's own options."""

import sys

import daphne.server
from daphne.cli import CommandLineInterface
from daphne.ws_protocol import WebSocketFactory

import config.asgi  # noqa: F401 - sets Django up, which the next ones need
import sabotage.run_baseline  # noqa: F401
import samples.fresh  # noqa: F401 - no visitor waits for these two, and for the index of the code
from config.web import connections
from config.web.admission import files_allowed
from sabotage.kit.code_locations import places

if __name__ == "__main__":
    files_allowed()
    places("")
    daphne.server.HTTPFactory = connections.factory_of
    WebSocketFactory.protocol = connections.DeafSocket
    CommandLineInterface.server_class = connections.PatientServer
    CommandLineInterface().run(sys.argv[1:])
