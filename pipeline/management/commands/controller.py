"""``manage.py controller``: compares Stripe with the logs, until it is asked to end."""

import argparse
import sys

from django.core.management.base import CommandParser
from django.db import OperationalError, connection

from engine.clock import now_ms, sleep_ms
from engine.management.prepared import PreparedCommand, named, stops
from engine.models import Workspace
from engine.ops import said
from pipeline.reconcile import differences
from pipeline.reconcile.turns import Compared, Turns

TURN_MS = 5_000
POLL_MS = 250  # after this it notices that it is to end


class Command(PreparedCommand):
    """Ends with 0 on SIGTERM or Ctrl-C, after its turn; with --check, 2 where none is open."""

    help = "Compare Stripe's own list of payments with what the logs seal, and seal what differs."

    def add_arguments(self, parser: CommandParser) -> None:
        """Whether to close a difference instead."""
        parser.add_argument(
            "--check",
            nargs="?",
            const=False,
            type=named,
            metavar="ID",
            help="seal that you compared both sides of this open difference, which closes it; "
            "without ID, list the open ones of all logs",
        )

    def perform(self, options: argparse.Namespace) -> None:
        """Take a turn every five seconds, or check."""
        if options.check is not None:
            self._check(options.check or "")
        self.last, self.said_ms = Compared({}), 0
        turns, stopped = Turns(self._alive), stops()
        self.say_json({"ready": True})
        while not stopped:
            try:
                self.last = turns.turn(now_ms())
            except OperationalError as error:
                connection.close()
                why = f"the database did not answer ({type(error).__name__}): the next turn asks it"
                self.last = self.last._replace(why=why)
            self._alive(at_once=True)
            for _ in range(TURN_MS // POLL_MS):
                if not stopped:
                    sleep_ms(POLL_MS)

    def _alive(self, *, at_once: bool = False) -> None:
        """Say what the last turn did, where a long one is under way every five seconds."""
        if at_once or abs(now_ms() - self.said_ms) > TURN_MS:
            self.said_ms = now_ms()
            said.say(differences.ACTOR, **self.last._asdict())

    def _check(self, name: str) -> None:
        """List the open differences, or close one; then end."""
        done = 0
        for log in Workspace.objects.filter(successor=None).order_by("created_ms"):
            for each in differences.of_log(log):
                if not each.closed and name in ("", each.id):
                    done += not name or differences.check(log.id, each.id, "operator")
                    sides = f"log: {each.log_says}", f"Stripe: {each.stripe_says}"
                    row = (each.id, each.code, log.origin, each.run_code, *sides)
                    self.stdout.write("  ".join(filter(None, row)))
        if name and not done:
            self.stderr.write("No open difference has this id: --check without an id lists them.")
        sys.exit(0 if done or not name else 2)
