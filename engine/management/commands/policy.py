"""``manage.py policy``: what a policy file says of its own examples, and which one is in force."""

import argparse
import sys

from django.core.management.base import BaseCommand, CommandParser

from engine.application import main
from engine.management.prepared import named_file, one_sentence
from engine.store import programs
from nanovm_core.loading import load_policy
from nanovm_core.policy_tests import ExampleResult, run_examples


class Command(BaseCommand):
    """``test FILE`` runs the file's [[examples]]: exit 0 where all come out as they expect."""

    requires_system_checks = ()  # they load every page; ``manage.py check`` runs them
    help = "Test a policy by its own examples, or show the one in force."

    def add_arguments(self, parser: CommandParser) -> None:
        """Test one, or show one."""
        doing = parser.add_subparsers(dest="doing", required=True)
        test = doing.add_parser("test", help="run a policy's own examples")
        test.add_argument("file", type=named_file, help="a policy file (TOML)")
        test.add_argument(
            "--program", type=named_file, help="the program it is for; else the one that is shipped"
        )
        doing.add_parser("show", help="print the policy that new runs are judged by")

    def handle(self, *_args: object, **options: object) -> None:
        """Say each example's outcome; exit 1 where one is not as expected, or there is none."""
        given = argparse.Namespace(**options)
        with one_sentence():
            if given.doing == "show":
                self.stdout.write(main().policy_source().decode())
                return
            source = given.program.read_bytes() if given.program else None
            program = programs.compiled(source or main().source())
            policy = load_policy(given.file.read_bytes(), program)
            found = list(run_examples(program.under(policy)))
        for each in found:
            self.stdout.write(_line(each))
        good = sum(each.good for each in found)
        self.stdout.write(f"{policy.name} ({policy.hash}): {good} of {len(found)} as expected")
        sys.exit(0 if found and good == len(found) else 1)


def _line(each: ExampleResult) -> str:
    mark = "ok  " if each.good else "BAD "
    rule = f" by {each.rule}" if each.rule else ""
    wanted = "" if each.good else f"; expected {each.expect}"
    return f"{mark} {each.name}: {each.outcome}{rule}{wanted}"
