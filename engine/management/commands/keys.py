"""``manage.py keys vkey [--workspace W]`` and ``keys rotate``: the key that signs the logs."""

import argparse
import sys

from django.core.management.base import CommandParser

from engine.evidence import signer
from engine.management.prepared import PreparedCommand, named, named_workspace, noted

CUT_OFF = "The same command given again takes the change up where it was left."


class Command(PreparedCommand):
    """``vkey``: 0, or 2 where the workspace is not clear. ``rotate``: 0, or 1 if a log is left."""

    help = "Print a log's verification key, or change the key that signs all of them."

    def add_arguments(self, parser: CommandParser) -> None:
        """What to do with the key."""
        parser.add_argument("action", choices=["vkey", "rotate"])
        parser.add_argument("--workspace", type=named, help="its UUID or its log's name")

    def perform(self, options: argparse.Namespace) -> None:
        """Print or rotate."""
        if options.action == "vkey":
            origin = named_workspace(options.workspace).origin
            self.stdout.write(signer.verifiers(origin)[0].vkey)
            return
        with noted(CUT_OFF):
            left = signer.rotate("operator")
        self.stdout.write("A new key signs from now on; print it with: manage.py keys vkey")
        for origin in left:
            self.stderr.write(f"{origin} could not be signed and still has its old key.")
        sys.exit(1 if left else 0)
