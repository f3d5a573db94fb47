"""``manage.py agents [show|suspend|resume|kill|declare] [NAME]``: who acts in a workspace."""

import argparse
import sys
from collections.abc import Callable
from functools import partial

from django.core.management.base import CommandError, CommandParser

from engine.management.prepared import WORKSPACE, PreparedCommand, named, named_workspace
from engine.runtime import agents
from nanovm_core.agents import Moved, json_of


class Command(PreparedCommand):
    """0, or 1 where the agent's state forbids the command (AGT-001); 2 where there is none."""

    help = "Show the agents of a workspace; suspend, resume, kill or declare one."

    def add_arguments(self, parser: CommandParser) -> None:
        """What to do, and with whom."""
        asked = ("show", "suspend", "resume", "kill", "declare")
        parser.add_argument("action", choices=asked, nargs="?", default="show")
        parser.add_argument("name", type=named, nargs="?", help="the agent; show: all by default")
        parser.add_argument("--why", type=named, help="a sentence for the log")
        parser.add_argument("--workspace", type=named, help=WORKSPACE)
        parser.add_argument("--json", action="store_true", help="one JSON object")

    def perform(self, options: argparse.Namespace) -> None:
        """Show, or do it and show what became of the agent."""
        log, code = named_workspace(options.workspace), ""
        if options.action != "show":
            if options.name is None:
                raise CommandError(f"Name the agent to {options.action}.", returncode=2)
            why = options.why or ""
            ask: dict[str, Callable[..., Moved]] = {
                "suspend": partial(agents.suspend, why=why),
                "resume": agents.resume,
                "kill": partial(agents.kill, why=why),
                "declare": agents.declare,
            }
            code = ask[options.action](log.id, options.name, by="operator").code
        ledger = agents.read(log.id)
        names = [name for name in ledger.agents if options.name in (None, name)]
        if options.json:
            found = {"agents": {name: json_of(ledger.agents[name]) for name in names}}
            alerts = {name: dict(each._asdict()) for name, each in ledger.alerts.items()}
            self.say_json({"log": log.origin, **found, "alerts": alerts, "refused": code})
        else:
            rows = [(name, *ledger.agents[name][:3]) for name in names]
            rows += [("ALERT", each.rule, each.text, "") for each in ledger.alerts.values()]
            for row in rows:
                self.stdout.write("  ".join(filter(None, row)))
        sys.exit(1 if code else 0 if names or options.name is None else 2)
