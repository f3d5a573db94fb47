"""``manage.py witness --listen HOST:PORT --log VKEY…``: a second party that cosigns checkpoints."""

import argparse
import signal
import threading

from django.conf import settings
from django.core.management.base import CommandError, CommandParser

from engine.evidence.witness import Witness, WitnessServer
from engine.management.prepared import PlainCommand, named, named_file
from nanovm_core.errors import VerificationError
from nanovm_core.proof import notes
from nanovm_core.proof.notes import ED25519, Verifier

STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)
NAME = "nanovm.localhost/witness"


class Command(PlainCommand):
    """Says where it listens and with which key it cosigns; ends with 0 on SIGTERM or Ctrl-C."""

    help = "Check that logs only ever grow, and cosign their checkpoints (C2SP add-checkpoint)."

    def add_arguments(self, parser: CommandParser) -> None:
        """Where to listen, and for which logs."""
        parser.add_argument("--listen", required=True, metavar="HOST:PORT")
        parser.add_argument(
            "--log", required=True, nargs="+", metavar="VKEY", help="the logs' verification keys"
        )
        parser.add_argument(
            "--state", type=named_file, help="its own folder (default: witness in NANOVM_DATA)"
        )
        parser.add_argument(
            "--name", type=named, default=NAME, help=f"its own name (default: {NAME})"
        )

    def perform(self, options: argparse.Namespace) -> None:
        """Serve until it is asked to stop."""
        logs = [_log(vkey) for vkey in options.log]
        folder = options.state or settings.NANOVM_DATA / "witness"
        try:
            witness = Witness(options.name, folder, logs)
            server = WitnessServer(_address(options.listen), witness)
        except (OSError, OverflowError) as error:
            raise CommandError(f"The witness cannot start: {error}", returncode=2) from error
        # Blocked in every thread and taken by sigwait: no stop is lost.
        signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS)
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        self.say_json({"ready": True, "url": server.url, "vkey": witness.verifier.vkey})
        signal.sigwait(STOP_SIGNALS)
        server.shutdown()
        server.server_close()


def _address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    if not host or not port.isdigit():
        raise CommandError(f"{text!r} is no HOST:PORT, such as 127.0.0.1:8765.", returncode=2)
    return host.strip("[]"), int(port)


def _log(vkey: str) -> Verifier:
    try:
        found = notes.parse_vkey(vkey)
    except VerificationError as error:
        raise CommandError(f"{vkey!r}: {error.text}", returncode=2) from error
    if found.kind != ED25519:
        raise CommandError(f"{vkey!r} is a witness's key, not a log's.", returncode=2)
    return found
