"""``manage.py judge``: a dry verdict on each proposal of a file, for any program."""

import argparse
import sys
from collections.abc import Iterator
from itertools import tee
from pathlib import Path

from django.core.management.base import CommandParser

from engine.management.prepared import PlainCommand, named, named_file
from engine.store.programs import program_at
from nanovm_core.judge import judge


class Command(PlainCommand):
    """Prints {id, verdict, rule, why} for each line but blank ones; calls and stores nothing."""

    help = "Judge proposals against a program, without doing anything."

    def add_arguments(self, parser: CommandParser) -> None:
        """Which program, and where the proposals are."""
        program = "a program file (TOML)"
        parser.add_argument("--program", type=named_file, required=True, help=program)
        proposals = "a file of JSON lines, or - for the standard input"
        parser.add_argument("--proposals", type=named, required=True, help=proposals)
        policy = "a policy file in place of the one that the program names"
        parser.add_argument("--policy", type=named_file, help=policy)

    def perform(self, options: argparse.Namespace) -> None:
        """Judge each line in order; exit 0 whatever the verdicts are."""
        program = program_at(options.program, options.policy)
        lines, judged = tee(_lines(options.proposals))
        for line, verdict in zip(lines, judge(program, judged), strict=True):
            if line.strip():  # a blank one is judged for its number alone: it books nothing
                self.say_json(verdict._asdict())


def _lines(name: str) -> Iterator[bytes]:
    """The lines of a file, blank ones too, so that they are counted as an editor counts them."""
    if name == "-":
        yield from sys.stdin.buffer
        return
    with Path(name).open("rb") as file:
        yield from file
