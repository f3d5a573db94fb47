"""``manage.py revoke TOOL``: takes a granted tool back, at once, for every run of a workspace."""

import argparse

from django.core.management.base import CommandError, CommandParser

from pipeline import authority
from pipeline.commands import PreparedCommand
from pipeline.models import Workspace


class Command(PreparedCommand):
    """Seals the revocation on the workspace's log and prints the grant's id."""

    help = "Take the grant of a tool back."

    def add_arguments(self, parser: CommandParser) -> None:
        """Which tool, and where."""
        parser.add_argument("tool", help="a granted tool, by its exact name")
        parser.add_argument("--workspace", help="its id; needed where several exist")

    def perform(self, options: argparse.Namespace) -> None:
        """Revoke."""
        found = Workspace.objects.all()
        if options.workspace:
            found = found.filter(id=options.workspace)
        if found.count() != 1:
            raise CommandError(f"{found.count()} workspaces fit; name one with --workspace.")
        grant = authority.revoke(str(found.get().id), options.tool, "operator")
        self.say_json({"tool": options.tool, "grant": grant, "revoked": True})
