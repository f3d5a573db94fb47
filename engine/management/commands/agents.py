"""``manage.py agents [show|suspend|resume|kill|declare] [NAME]``: who acts in a log, and may it."""

import argparse
import sys

from django.core.management.base import CommandError, CommandParser

from engine.management.prepared import PreparedCommand, named, named_workspace
from engine.models import Workspace
from engine.runtime import agents
from nanovm_core.agents import json_of

OPERATOR = "operator"


class Command(PreparedCommand):
    """0, or 1 where the agent's state forbids the command (AGT-001); 2 where there is none."""

    help = "Show the agents of a workspace; suspend, resume, kill or declare one."

    def add_arguments(self, parser: CommandParser) -> None:
        """What to do, and with whom."""
        asked = ("show", "suspend", "resume", "kill", "declare")
        parser.add_argument("action", choices=asked, nargs="?", default="show")
        parser.add_argument("name", type=named, nargs="?", help="the agent; show: all by default")
        parser.add_argument("--why", type=named, default="", help="a sentence for the log")
        parser.add_argument(
            "--workspace", type=named, help="its UUID or its log's name; needed where several exist"
        )
        parser.add_argument("--json", action="store_true", help="one JSON object")

    def perform(self, options: argparse.Namespace) -> None:
        """Show, or do it and show what became of the agent."""
        workspace, name = named_workspace(options.workspace), options.name
        code = ""
        if options.action != "show":
            if name is None:
                raise CommandError(f"Say which agent to {options.action}.", returncode=2)
            code = _done(options, workspace)
        ledger = agents.read(workspace.id)
        if name is not None and name not in ledger.agents:
            raise CommandError(f"{workspace.origin} has no agent {name}.", returncode=2)
        shown = {
            each: json_of(ledger.agents[each]) for each in ledger.agents if name in (None, each)
        }
        alerts = {each: dict(alert._asdict()) for each, alert in ledger.alerts.items()}
        if options.json:
            found = {"log": workspace.origin, "agents": shown, "alerts": alerts, "refused": code}
            self.say_json(found)
        else:
            for each, agent in shown.items():
                said = (each, agent["state"], agent["code"], agent["text"])
                self.stdout.write("  ".join(str(part) for part in said if part))
            for alert in ledger.alerts.values():
                self.stdout.write(f"ALERT  {alert.rule}  {alert.text}")
        if code:
            self.stderr.write(f"{code}: the agent's state does not allow this.")
            sys.exit(1)


def _done(options: argparse.Namespace, workspace: Workspace) -> str:
    """Do what was asked; the code of its refusal, or empty."""
    if options.action in ("suspend", "kill"):
        ask = agents.suspend if options.action == "suspend" else agents.kill
        return ask(workspace.id, options.name, by=OPERATOR, why=options.why).code
    calm = agents.resume if options.action == "resume" else agents.declare
    return calm(workspace.id, options.name, by=OPERATOR).code
