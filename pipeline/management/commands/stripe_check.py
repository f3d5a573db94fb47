"""``manage.py stripe_check``: does Stripe's test mode, or the counterpart, do what we rely on?"""

import argparse
from collections import Counter

from django.conf import settings
from django.core.management.base import CommandError, CommandParser

from engine.management.prepared import PreparedCommand
from pipeline.ops import stripe_checks
from pipeline.ops.stripe_counterpart import stripe_in_reach
from pipeline.steps.charge.gateway import configured


class Command(PreparedCommand):
    """Prints for each check: same, differs and how, or not possible here. Nothing is cleaned up.

    It asks whatever the settings name: with a test key in STRIPE_SECRET_KEY Stripe's test mode,
    else the local counterpart. A live key is refused.
    """

    help = "Compare Stripe's test mode, or the local counterpart, with what nanovm relies on."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--json", action="store_true", help="one JSON object a line")

    def perform(self, options: argparse.Namespace) -> None:
        """Run every check; the exit status is 1 where one differs."""
        verdicts: Counter[str] = Counter()
        with stripe_in_reach():
            local = settings.STRIPE["local"]
            self.stdout.write("the local counterpart:" if local else "Stripe's test mode:")
            for name in stripe_checks.CHECKS:
                finding = stripe_checks.run(name, configured())
                verdicts[finding.verdict] += 1
                self._say(finding, as_json=options.json)
        told = ", ".join(f"{count} {verdict}" for verdict, count in sorted(verdicts.items()))
        if verdicts[stripe_checks.DIFFERS]:
            raise CommandError(told, returncode=1)
        self.stdout.write(told)

    def _say(self, finding: stripe_checks.CheckResult, *, as_json: bool) -> None:
        if as_json:
            self.say_json({"check": finding.name, "verdict": finding.verdict, "text": finding.text})
            return
        text = f": {finding.text}" if finding.text else ""
        self.stdout.write(f"{finding.verdict:<17} {finding.name}{text}")
