"""``manage.py restore``: goes on after an old backup of the database was put back."""

import argparse
import sys
from dataclasses import asdict

from django.core.management.base import CommandError, CommandParser

from engine.evidence import restore
from engine.management.prepared import PreparedCommand


class Command(PreparedCommand):
    """Exit 0 done, 1 something erased is still there (restore again), 2 not done."""

    help = "Close the logs of a database that was put back, go on in new ones, erase again."

    def add_arguments(self, parser: CommandParser) -> None:
        """How to say it, and whether to do it without evidence."""
        parser.add_argument("--json", action="store_true", help="one JSON object")
        parser.add_argument(
            "--anyway", action="store_true", help="though nothing shows that a backup was put back"
        )

    def perform(self, options: argparse.Namespace) -> None:
        """Restore, say what was done, and exit by the contract."""
        if not options.anyway and not restore.is_needed():
            raise CommandError(
                "Every log continues what was signed of it, and nothing that was erased can be "
                "read: nothing shows that a backup was put back, so nothing was done. If you know "
                "that one was, say: manage.py restore --anyway",
                returncode=2,
            )
        done = restore.restore("operator")
        if options.json:
            self.say_json(asdict(done))
        else:
            self._say(done)
        sys.exit(1 if done.left else 0)

    def _say(self, done: restore.Restored) -> None:
        for each in done.logs:
            self.stdout.write(
                f"{each.log}: {each.signed} envelopes were signed, {each.found} are there. It is "
                f"closed and its runs do not go on; {each.successor} goes on for it."
            )
        self.stdout.write(f"{done.erased} erased secrets had come back and were erased again.")
        for line in done.left:
            self.stderr.write(f"Still there: {line}. Run manage.py restore again.")
        self.stdout.write(
            "Look at what was paid at Stripe since the backup, and at grants that were taken back "
            "since: this database knows neither."
        )
