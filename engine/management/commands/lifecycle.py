"""``manage.py lifecycle --scxml``: the statechart of a run or of an agent."""

import argparse

from django.core.management.base import CommandParser

from engine.management.prepared import PlainCommand
from nanovm_core import agents
from nanovm_core.core import lifecycle as life
from nanovm_core.scxml import scxml

CHARTS = {
    "run": (life.TABLE, life.STATES, life.NEGOTIATION),
    "agent": (agents.TABLE, agents.STATES, life.NEGOTIATION),
}


class Command(PlainCommand):
    help = "Print the states of a run or of an agent, with what leads from one to the other."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("of", choices=CHARTS, nargs="?", default="run")
        parser.add_argument("--scxml", action="store_true", help="as SCXML, for other tools")

    def perform(self, options: argparse.Namespace) -> None:
        table, states, initial = CHARTS[options.of]
        if options.scxml:
            self.stdout.write(scxml(options.of, table, states, initial))
            return
        for (state, event), targets in table.items():
            self.stdout.write(f"{state}  {event}  {', '.join(targets)}")
