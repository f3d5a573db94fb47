"""``manage.py follow``: exports each envelope of the logs as a span, until it is asked to end."""

import argparse

from django.conf import settings
from django.core.management.base import CommandError, CommandParser

from engine.clock import now_ms, sleep_ms
from engine.management.prepared import PreparedCommand, stops
from engine.queries.telemetry.collector import Collector
from engine.queries.telemetry.follow import NAME, POLL_MS, Follower
from engine.queries.telemetry.spans import Spans
from engine.store.state_file import locked, private


class Command(PreparedCommand):
    """Ends with 0 on SIGTERM or Ctrl-C, after the batch that it is at."""

    help = "Export every envelope of the logs as an OpenTelemetry span, without its text."

    def add_arguments(self, parser: CommandParser) -> None:
        """Whether to wait for more."""
        text = "export what is there, and end; 2 if it is not taken"
        parser.add_argument("--once", action="store_true", help=text)

    def perform(self, options: argparse.Namespace) -> None:
        """Export in rounds; without a pause while there is more."""
        collector, folder = Collector(), private(settings.NANOVM_DATA / NAME)
        with locked(folder / NAME) as file:  # another one waits here until this one ended
            stopped = [] if options.once else stops()
            follower = Follower(file, Spans(), collector.send)
            self.say_json({"ready": True})
            while not stopped:
                if follower.round(now_ms()):
                    continue
                if options.once:
                    break
                sleep_ms(POLL_MS)
        if options.once and follower.why:
            raise CommandError(follower.why, returncode=2)
