"""``manage.py lifecycle --scxml``: the statechart of a run or of an agent."""

from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from nanovm_core import agents
from nanovm_core.core import lifecycle as life
from nanovm_core.scxml import scxml

CHARTS = {
    "run": (life.TABLE, life.STATES, life.NEGOTIATION),
    "agent": (agents.TABLE, agents.STATES, life.NEGOTIATION),
}


class Command(BaseCommand):
    help = "Print the states of a run or of an agent, with what leads from one to the other."
    requires_system_checks = ()

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("of", choices=CHARTS, nargs="?", default="run")
        parser.add_argument("--scxml", action="store_true", help="as SCXML, for other tools")

    def handle(self, **options: Any) -> None:
        of = options["of"]
        table, states, initial = CHARTS[of]
        if options["scxml"]:
            self.stdout.write(scxml(of, table, states, initial))
            return
        for (state, event), targets in table.items():
            self.stdout.write(f"{state}  {event}  {', '.join(targets)}")
