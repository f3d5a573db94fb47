"""``manage.py demo``: the whole application on this machine, until Ctrl-C."""

import os
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from config.supervisor import run
from engine.ops.processes import ProcessError

PORT = 8000
PORT_MAX = 65535


class Command(BaseCommand):
    """Starts, watches and stops everything; ``PORT`` names the port."""

    requires_system_checks = ()  # they load what only the children need
    help = "Start everything the application needs, print its address, stop it all on Ctrl-C."

    def handle(self, *_args: Any, **_options: Any) -> None:
        """Exit 0 when told to stop, 2 with one sentence when something is wrong."""
        try:
            run(_port(os.environ.get("PORT", "")), self._say)
        except ProcessError as error:
            raise CommandError(str(error), returncode=2) from error

    def _say(self, line: str) -> None:
        self.stdout.write(line)
        self.stdout.flush()


def _port(text: str) -> int:
    if not text:
        return PORT
    if not text.isascii() or not text.isdigit() or int(text) > PORT_MAX:
        raise ProcessError(f"PORT={text} is no port; give a number from 1 to {PORT_MAX}.")
    return int(text)
