"""``manage.py signer``: signs the logs' trees as they grow, until it is asked to end."""

import argparse
import os

from django.core.management.base import CommandParser

from engine.clock import now_ms, sleep_ms
from engine.evidence import published, signer
from engine.evidence.signer.cosigning import configured, parse_witness
from engine.evidence.signer.rounds import POLL_MS
from engine.management.prepared import PreparedCommand, named, named_workspace, stops


class Command(PreparedCommand):
    """Ends with 0 on SIGTERM or Ctrl-C, after the checkpoint that it is at."""

    help = "Sign the tree of every log as it grows; only what continues what was signed before."

    def add_arguments(self, parser: CommandParser) -> None:
        """Which witness cosigns, and which log's lost state file to recover."""
        text = "ask this witness to cosign (or NANOVM_WITNESS='URL VKEY')"
        parser.add_argument("--witness", nargs=2, metavar=("URL", "VKEY"), help=text)
        text = "trust the stored checkpoint of a log whose state file is lost, and end"
        parser.add_argument("--remember", type=named, metavar="WORKSPACE", help=text)

    def perform(self, options: argparse.Namespace) -> None:
        """Sign in rounds."""
        if options.remember is not None:
            row = signer.remember(named_workspace(options.remember).id)
            self.stdout.write(f"Remembered: {row.workspace.origin} at size {row.size}.")
            return
        if options.witness:
            named_witness = " ".join(options.witness)
            parse_witness(named_witness)
            os.environ["NANOVM_WITNESS"] = named_witness
        configured()  # a wrong witness is said now, not at the first checkpoint
        rounds, stopped = signer.Rounds(), stops()
        published.report_alive()
        self.say_json({"ready": True})
        while not stopped:
            rounds.round(now_ms())
            published.report_alive()
            sleep_ms(POLL_MS)
