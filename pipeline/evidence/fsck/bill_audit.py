"""The audit of claims on invoices: each is the one that its run's own record seals."""

from collections.abc import Iterator, Sequence

from nanovm_core.core.envelope import Stored, canonical_hash
from pipeline.evidence.fsck.damage import Damage
from pipeline.models import Bill, Run, Workspace
from pipeline.register import bills
from pipeline.store import records

TOOL, STEP = "vault.split", "vault"  # what claims; until its result is sealed, a claim is alone
EDITED, MISSING = "PII-002", "PII-003"


def bill_damage(workspace: Workspace, run: Run, envelopes: Sequence[Stored]) -> Iterator[Damage]:
    """A claim that was changed, removed, added, or moved to another log."""
    sealed, bill = _sealed(envelopes), Bill.objects.filter(run=run).first()
    here = workspace.successor_id or workspace.id
    code, text = EDITED, ""
    if bill is None:
        code = MISSING
        text = "MISSING-UNEXPLAINED: the run's claim on its invoice is gone." if sealed else ""
    elif not sealed:
        is_known = run.step != STEP and not run.quarantined  # else its result may be lost
        text = "The run's claim on an invoice was never sealed." if is_known else ""
    elif bills.digest(bill) != sealed or bill.workspace_id != here:
        text = "The run's claim on its invoice is not the one that was sealed."
    if text:
        yield Damage(log=workspace.origin, run=str(run.id), at=0, code=code, text=text)


def _sealed(envelopes: Sequence[Stored]) -> str:
    """The hash of the claim that the run's newest whole result says; empty for none."""
    for each in reversed(envelopes):
        if TOOL.encode() not in each.data or canonical_hash(each.data) != each.hash:
            continue
        body = records.body_of(each.data)
        if body.get("kind") == "result" and body.get("tool") == TOOL:
            return str(records.part_of(body, "out").get("bill", ""))
    return ""
