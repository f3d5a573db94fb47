"""``manage.py export_bundle (--run ID | --log) [--workspace W] -o FILE``: bundle or export."""

import argparse

from django.core.management.base import CommandError, CommandParser

from engine.evidence import bundles, signer
from engine.management import prepared
from engine.management.prepared import PreparedCommand, named, named_file, named_workspace
from engine.models import Run, Workspace


class Command(PreparedCommand):
    """Exit 0 written, 2 not. Nothing is written but a whole file."""

    help = (
        "Write the bundle of a log or of one run, over the tree as it stands, signed now; or with "
        "--first the NDJSON export of a log from there on."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """What to write, and where to."""
        what = parser.add_mutually_exclusive_group(required=True)
        what.add_argument("--run", type=named, help="one run: its UUID or its short code")
        what.add_argument("--log", action="store_true", help="the whole log of a workspace")
        parser.add_argument("--workspace", type=named, help="its UUID or its log's name")
        parser.add_argument("-o", "--output", required=True, type=named_file, metavar="FILE")
        text = "with --log: the export (NDJSON) from this envelope on, where verify.py left off"
        parser.add_argument("--first", type=_seq, metavar="SEQ", help=text)
        text = "add the values of secrets, in the clear"
        parser.add_argument("--disclose", action="store_true", help=text)

    def perform(self, options: argparse.Namespace) -> None:
        """Sign, write, and say what was written."""
        workspace, run = _meant(options)
        bundles.place(options.output)  # said before anything is signed for it
        if options.first is not None and (run or options.disclose):
            text = "--first goes with --log alone: a run, or disclosed values, are in a bundle."
            raise CommandError(text, returncode=2)
        row = signer.checkpoint(workspace.id)
        if options.first is not None:
            if options.first > row.size:
                text = f"The log ends at size {row.size}; --first {options.first} is behind that."
                raise CommandError(text, returncode=2)
            bundles.write_export(workspace, options.output, options.first)
            said = f"the log {workspace.origin} from seq {options.first} on,"
        else:
            leaves = bundles.write_bundle(
                workspace, run, options.output, row, disclosures=options.disclose
            )
            what = f"run {run.code}" if run else "whole log"
            said = f"{leaves} envelopes, the {what} of {workspace.origin}"
        self.stdout.write(f"{options.output}: {said} at size {row.size}.")


def _seq(text: str) -> int:
    value = int(text)
    if not 0 <= value < 2**53:
        raise argparse.ArgumentTypeError("a seq is a number from 0 on")
    return value


def _meant(options: argparse.Namespace) -> tuple[Workspace, Run | None]:
    if options.run is None:
        return named_workspace(options.workspace), None
    run = prepared.named_run(options.run)
    if options.workspace is not None and named_workspace(options.workspace).id != run.workspace_id:
        raise CommandError(f"The run {run.code} is not in that workspace.", returncode=2)
    return Workspace.objects.get(id=run.workspace_id), run
