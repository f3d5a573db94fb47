"""The audit of rows: what those of runs, logs and claims repeat, or hold beside what is sealed."""

import re
from collections.abc import Iterator, Sequence

from nanovm_core.core.budget import AGENT, WORKSPACE
from nanovm_core.core.envelope import LOG_RUN, Stored, canonical_hash
from nanovm_core.core.messages import Snapshot
from pipeline.evidence.fsck.damage import Damage
from pipeline.models import Bill, Run, Workspace
from pipeline.register import bills
from pipeline.store import budgets, outbox, programs, records

HOLDER = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|")  # drawn for each lease
TOOL, STEP = "vault.split", "vault"  # what claims; until its result is sealed, a claim is alone
EDITED, MISSING = "PII-002", "PII-003"
NAME = re.compile(rf"{WORKSPACE}/[^/@\s]{{1,30}}|{AGENT}/[^/@\s]{{1,30}}@.*")  # ``name_of``


def run_damage(
    workspace: Workspace, run: Run, snapshot: Snapshot | None, *, sealed_damage: bool
) -> Iterator[Damage]:
    """Program and policy, the mark of quarantine, what the run owes, and who drives it.

    ``snapshot``: the run's value; None where it cannot be recomputed, which is told elsewhere.
    """
    owes = snapshot is None or outbox.owes(run, snapshot.owed)
    checks = (
        (programs.found_hash(run) == run.program_hash, "PRG-011", "The stored program is another."),
        (programs.found_policy(run) == run.policy_hash, "PRG-011", "The stored policy is another."),
        (run.quarantined == sealed_damage, "LOG-003", "The mark of quarantine was changed."),
        (owes, "LOG-003", "The run's row does not say what its snapshot owes."),
        (HOLDER.fullmatch(run.holder), "LOG-003", "The run's row names a holder that is none."),
    )
    for holds, code, text in checks:
        if not holds:
            yield Damage(log=workspace.origin, run=str(run.id), at=0, code=code, text=text)


def log_damage(workspace: Workspace) -> Iterator[Damage]:
    """The accounts in a log's row."""
    found = budgets.stored(workspace)
    if found is None:
        text = "The accounts of the workspace cannot be read: nothing is left of its budgets."
        yield Damage(log=workspace.origin, run=LOG_RUN, at=0, code="LOG-003", text=text)
    for name, account in (found or {}).items():
        if not NAME.fullmatch(name) or min(account) < 0:
            text = f"The workspace's account {name[:60]!r} cannot be what it says."
            yield Damage(log=workspace.origin, run=LOG_RUN, at=0, code="LOG-003", text=text)


def bill_damage(workspace: Workspace, run: Run, envelopes: Sequence[Stored]) -> Iterator[Damage]:
    """A claim that was changed, removed, added, or moved to another log."""
    sealed, bill = _sealed_claim(envelopes), Bill.objects.filter(run=run).first()
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


def _sealed_claim(envelopes: Sequence[Stored]) -> str:
    """The hash of the claim that the run's newest whole result says; empty for none."""
    for each in reversed(envelopes):
        if TOOL.encode() not in each.data or canonical_hash(each.data) != each.hash:
            continue
        body = records.body_of(each.data)
        if body.get("kind") == "result" and body.get("tool") == TOOL:
            return str(records.part_of(body, "out").get("bill", ""))
    return ""
