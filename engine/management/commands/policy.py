"""``manage.py policy``: a policy file's own examples, the one in force, and both as Cedar."""

import argparse
import sys
from pathlib import Path

from django.core.management.base import CommandParser

from engine.application import DEFAULT, main
from engine.cedar.export import exported, schema_of
from engine.management.prepared import PlainCommand, named, named_file
from engine.store import programs
from nanovm_core.loading import load_policy
from nanovm_core.policy_tests import ExampleResult, run_examples


class Command(PlainCommand):
    """``test FILE`` runs the file's [[examples]]: exit 0 where all come out as they expect.

    ``cedar FILE`` writes Cedar policies: exit 1 where Cedar does not say all that the policy does.
    """

    help = "Test a policy by its own examples, show the one in force, or write one as Cedar."

    def add_arguments(self, parser: CommandParser) -> None:
        """Test one, show one, or export one."""
        doing = parser.add_subparsers(dest="doing", required=True)
        test = doing.add_parser("test", help="run a policy's own examples")
        test.add_argument("file", type=named_file, help="a policy file (TOML)")
        test.add_argument(
            "--program", type=named_file, help="the program it is for; else the one that is shipped"
        )
        doing.add_parser("show", help="print the policy that new runs are judged by")

        cedar = doing.add_parser("cedar", help="write the rules of a policy as Cedar policies")
        text = "where to (x.cedar); the schema lies beside it as x.cedarschema"
        cedar.add_argument("file", type=named_file, help=text)
        said = "its name; else the one in force"
        cedar.add_argument("--policy", type=named, default=DEFAULT, help=said)

    def perform(self, options: argparse.Namespace) -> None:
        """Say each example's outcome; exit 1 where one is not as expected, or there is none."""
        if options.doing == "show":
            self.stdout.write(main().policy_source().decode())
            return
        if options.doing == "cedar":
            sys.exit(self._cedar(options.file, options.policy))
        source = options.program.read_bytes() if options.program else None
        program = programs.compiled(source or main().source())
        policy = load_policy(options.file.read_bytes(), program)
        found = list(run_examples(program.under(policy)))
        for each in found:
            self.stdout.write(_line(each))
        good = sum(each.good for each in found)
        self.stdout.write(f"{policy.name} ({policy.hash}): {good} of {len(found)} as expected")
        sys.exit(0 if found and good == len(found) else 1)

    def _cedar(self, file: Path, policy: str) -> int:
        """Write policies and schema, and say what is not in them: 1 where anything is not."""
        schema = schema_of(file)
        found = exported(programs.ruled(main().source(), main().policy_source(policy)))
        file.write_text(found.policies, "utf-8")
        schema.write_text(found.schema, "utf-8")
        for each in found.unmapped:
            self.stderr.write(f"Not in Cedar: {each}")
        return 1 if found.unmapped else 0


def _line(each: ExampleResult) -> str:
    mark = "ok  " if each.good else "BAD "
    rule = f" by {each.rule}" if each.rule else ""
    wanted = "" if each.good else f"; expected {each.expect}"
    return f"{mark} {each.name}: {each.outcome}{rule}{wanted}"
