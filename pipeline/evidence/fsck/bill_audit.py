"""The audit of claims on invoices: each is the one that its run's own record seals."""

from collections.abc import Iterator

from nanovm_core.core.envelope import decode_snapshot
from nanovm_core.errors import VerificationError
from pipeline.evidence.fsck.damage import Damage
from pipeline.models import Bill, Run, Workspace
from pipeline.register import bills

CLAIMS = "vault"  # the step that claims: until its result is sealed, a claim stands by itself
EDITED, MISSING = "PII-002", "PII-003"


def bill_damage(workspace: Workspace, run: Run) -> Iterator[Damage]:
    """A claim that was changed, removed, added, or moved to another log."""
    try:
        now = decode_snapshot(bytes(run.snapshot))
    except VerificationError:
        return  # the audit of the run names it
    sealed, bill = str(now.slots.get("bill", "")), Bill.objects.filter(run=run).first()
    here = workspace.successor_id or workspace.id
    code, text = EDITED, ""
    if bill is None:
        code = MISSING
        text = "MISSING-UNEXPLAINED: the run's claim on its invoice is gone." if sealed else ""
    elif not sealed:
        text = "" if now.step == CLAIMS else "The run's claim on an invoice was never sealed."
    elif bills.digest(bill) != sealed or bill.workspace_id != here:
        text = "The run's claim on its invoice is not the one that was sealed."
    if text:
        yield Damage(log=workspace.origin, run=str(run.id), at=0, code=code, text=text)
