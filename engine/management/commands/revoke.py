"""``manage.py revoke TOOL``: takes a granted tool back, at once, for every run of a workspace."""

import argparse

from django.core.management.base import CommandParser

from engine.management.prepared import WORKSPACE, PreparedCommand, named, named_workspace
from engine.runtime import warrants


class Command(PreparedCommand):
    """Seals the revocation on the workspace's log and prints the grant's id."""

    help = "Take the grant of a tool back."

    def add_arguments(self, parser: CommandParser) -> None:
        """Which tool, and where."""
        parser.add_argument("tool", type=named, help="a granted tool, by its exact name")
        parser.add_argument("--workspace", type=named, help=WORKSPACE)

    def perform(self, options: argparse.Namespace) -> None:
        """Revoke."""
        workspace = named_workspace(options.workspace)
        grant = warrants.revoke(str(workspace.id), options.tool, "operator")
        self.say_json({"tool": options.tool, "grant": grant, "revoked": True})
