"""``manage.py erase (--ref REF | --run ID | --supplier ID) --reason …``: prints the certificate."""

import argparse
import sys

from django.core.management.base import CommandError, CommandParser

from engine.errors import ErasureRefusedError
from engine.management.prepared import PreparedCommand, named, named_row, named_run, noted
from engine.privacy import erasure
from engine.privacy.certificate import REASONS, Certificate
from nanovm_core.core.fsm.terminal import KEPT_BY_LAW
from pipeline.models import Supplier
from pipeline.register import erasure as supplier_erasure

CUT_OFF = "What was erased stays erased; the same command given again erases the rest."


class Command(PreparedCommand):
    """Exit 0 done (also before), 1 INCOMPLETE, 2 wrong use, 3 refused: a law keeps it."""

    help = "Erase a run's personal values, one secret or a supplier; print the certificate as JSON."

    def add_arguments(self, parser: CommandParser) -> None:
        what = parser.add_mutually_exclusive_group(required=True)
        what.add_argument("--ref", type=named, help="one secret: vault://secret/…")
        what.add_argument(
            "--run", type=named, help="everything of a run: its UUID or its short code"
        )
        what.add_argument(
            "--supplier", type=named, help="a supplier's details: its UUID or its code"
        )
        parser.add_argument(
            "--with-runs", action="store_true", help="of a supplier: its runs too, and list them"
        )
        parser.add_argument("--reason", required=True, choices=sorted(REASONS))

    def perform(self, options: argparse.Namespace) -> None:
        if options.with_runs and options.supplier is None:
            raise CommandError("--with-runs goes with --supplier ID.", returncode=2)
        try:
            with noted(CUT_OFF):
                certificate = _erased(options)
        except ErasureRefusedError as error:
            kept = error.code == KEPT_BY_LAW
            raise CommandError(str(error), returncode=3 if kept else 2) from error
        self.say_json(certificate.to_json())
        if certificate.state != "done":
            sys.exit(1)


def _erased(options: argparse.Namespace) -> Certificate:
    if options.ref is not None:
        return erasure.erase_ref(options.ref, options.reason, "operator")
    if options.supplier is not None:
        supplier = named_row(Supplier, options.supplier, "supplier", "code")
        erased = supplier_erasure.erase_supplier
        if options.with_runs:
            erased = supplier_erasure.erase_with_runs
        return erased(supplier, options.reason, "operator")
    return erasure.erase_run(str(named_run(options.run).id), options.reason, "operator")
