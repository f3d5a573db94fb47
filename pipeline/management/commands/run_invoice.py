"""``manage.py run_invoice FILE… --json``: each file through the whole pipeline, in this process."""

import argparse
from contextlib import nullcontext

from django.core.management.base import CommandError, CommandParser

from engine.evidence import signer
from engine.management.prepared import PreparedCommand, named_file, noted, readable
from engine.models import Run
from engine.ops import timings
from engine.worker.drive import drive_patiently
from nanovm_core.core.envelope import decode_snapshot
from pipeline.create_run import create_run
from pipeline.ops.stripe_counterpart import stripe_in_reach
from pipeline.register import sample_register
from pipeline.register.details import DetailsError
from pipeline.reports import report
from pipeline.steps import advise, approvals
from pipeline.steps.propose.model_adapters import offered
from reader import sandbox

NOT_BEGUN = "{file} was not begun: give it again, with those after it."
UNDER_WAY = (
    "The run {code} of {file} stands where it was and goes on once make demo runs on this data: "
    "given again, the file would be another run. Those after it were not begun."
)
UNSIGNED = "The run {code} is as was said; its log is signed once make demo runs on this data."


class Command(PreparedCommand):
    """Pays, holds or rejects each invoice, without a web server or a queue server."""

    help = "Run PDF and XML invoices through the whole pipeline and say what became of each."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("files", nargs="+", metavar="FILE", type=named_file)
        parser.add_argument("--json", action="store_true", help="one JSON object a line")
        parser.add_argument("--same-workspace", action="store_true", help="one log for all files")
        parser.add_argument(
            "--no-limits",
            action="store_true",
            help="lift the policy's limits, and register each supplier as it comes",
        )
        parser.add_argument(
            "--known-text",
            action="store_true",
            help="as if a person had accepted each document's text, pictures and drawings",
        )
        parser.add_argument(
            "--learn",
            type=int,
            default=0,
            metavar="N",
            help="as if a person had accepted and remembered those of the first N files alone",
        )
        parser.add_argument(
            "--timings", action="store_true", help="say how long each part of the work took"
        )
        parser.add_argument("--model", choices=sorted(offered()), default="faithful")
        parser.add_argument("--advisor", choices=sorted(advise.offered()), default=advise.NONE)

    def perform(self, options: argparse.Namespace) -> None:
        """Run every file; a file that cannot be opened is wrong use, not a bad invoice."""
        for file in options.files:
            if not file.is_file():
                raise CommandError(f"{file} is no file; give the path of an invoice.", returncode=2)
        sandbox.start_ahead()  # it imports while the counterpart starts
        shared = sample_register.new_workspace() if options.same_workspace else None
        with stripe_in_reach():
            for place, file in enumerate(options.files):
                with noted(NOT_BEGUN.format(file=file)):
                    workspace = shared or sample_register.new_workspace()
                learns = place < options.learn
                with timings.recording() if options.timings else nullcontext() as made:
                    with noted(NOT_BEGUN.format(file=file)):
                        run = create_run(
                            workspace,
                            file.read_bytes(),
                            file.name,
                            model=options.model,
                            advisor=options.advisor,
                            policy="no_limits" if options.no_limits else "default",
                            started_by="operator",
                            text_accepted=options.known_text,
                        )
                    with noted(UNDER_WAY.format(code=run.code, file=file)):
                        refused = self._drive(run, registers=options.no_limits, learns=learns)
                spent = made.parts_ms() if made else {}
                with noted(UNDER_WAY.format(code=run.code, file=file)):
                    said = {**report(run, readable(str(file))), **refused}
                    self._say(said, spent, as_json=options.json)
                with noted(UNSIGNED.format(code=run.code)):
                    signer.checkpoint(run.workspace_id)  # told first: a refusal hides no payment

    def _drive(self, run: Run, *, registers: bool, learns: bool) -> dict[str, object]:
        """Drive a run; ``registers`` a supplier as it comes, as an office that knows it would.

        ``learns`` stands for a person who also accepts and remembers what the document says.
        Returns the reason where the register refuses the supplier: the run is held as it was.
        """
        answered = {approvals.FIRST_PAYMENT, approvals.SHARED_ACCOUNT} if registers else set()
        answered |= {approvals.FIRST_PAYMENT, approvals.UNSEEN_TEXT} if learns else set()
        drive_patiently(str(run.id))
        run.refresh_from_db()
        while (held_by := decode_snapshot(bytes(run.snapshot)).held_by) in answered:
            answered.discard(str(held_by))  # once each
            try:
                shown = approvals.to_approve(str(run.id))
                code = shown.typed.row.code if shown and shown.typed else ""
                text: approvals.Text = "remember" if learns else "unread"
                approvals.approve(str(run.id), "operator", code=code, text=text)
            except DetailsError as error:
                return {"reason": {"code": error.code, "text": error.text}}
            drive_patiently(str(run.id))
            run.refresh_from_db()
        return {}

    def _say(self, line: dict[str, object], spent: dict[str, float], *, as_json: bool) -> None:
        if as_json:
            self.say_json({**line, "timings": spent} if spent else line)
            return
        reason = line["reason"]
        because = f" ({reason['code']}: {reason['text']})" if isinstance(reason, dict) else ""
        self.stdout.write(f"{line['file']}: {line['decision']}{because}, run {line['code']}")
        for part, took in spent.items():
            share = took / max(spent[timings.WHOLE], took, 0.001)
            self.stdout.write(f"  {part:<8}{took:>12,.3f} ms {share:>6.1%}")
