"""``manage.py fsck --json``: recomputes everything that is stored, and writes nothing."""

import argparse
import sys

from django.core.management.base import CommandParser

from engine.damage import Damage
from engine.evidence.fsck.audit import AuditReport, audit
from engine.management.prepared import PreparedCommand


class Command(PreparedCommand):
    """Exit 0 clean, 1 unexplained damage (the first bad place last), 3 only named damage."""

    help = "Recompute every stored log: chains, tree, checkpoints, snapshots and commitments."

    def add_arguments(self, parser: CommandParser) -> None:
        """How to say it."""
        parser.add_argument("--json", action="store_true", help="one JSON object")

    def perform(self, options: argparse.Namespace) -> None:
        """Audit, say what was found, and exit by the contract."""
        report = audit()
        if options.json:
            self.say_json(report.to_json())
        else:
            self._say(report)
        sys.exit(report.exit_status)

    def _say(self, report: AuditReport) -> None:
        counts = [f"{report.workspaces} workspaces", f"{report.runs} runs"]
        counts += [f"{report.envelopes} envelopes", f"{report.secrets} secrets"]
        *most, last = [*counts, *(f"{count} {name}" for name, count in report.own.items())]
        bad = len(report.damage)
        self.stdout.write(f"{', '.join(most)} and {last} recomputed: {bad} bad places.")
        for each in report.damage:
            self.stdout.write(_line(each))


def _line(damage: Damage) -> str:
    mark = "named" if damage.explained else "UNEXPLAINED"
    hashes = f" expected {damage.expected} found {damage.found}" if damage.found else ""
    return (
        f"{mark}: {damage.log} run {damage.run} n {damage.at} {damage.code} {damage.text}{hashes}"
    )
