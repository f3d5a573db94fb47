"""The audit of rows: what those of runs and logs repeat, or hold beside what is sealed."""

import re
from collections.abc import Iterator, Sequence

from engine.damage import Damage
from engine.models import Run, Workspace
from engine.store import budgets, outbox, programs, records
from nanovm_core.core.authority.budget import AGENT, WORKSPACE
from nanovm_core.core.envelope import LOG_RUN, Stored
from nanovm_core.core.messages import Snapshot
from nanovm_core.errors import VerificationError

HOLDER = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|")  # drawn for each lease
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


def grants_damage(workspace: Workspace, run: Run, envelopes: Sequence[Stored]) -> Iterator[Damage]:
    """Narrower grants beside the run than its genesis seals, or wider ones; or none any more."""
    try:
        records.expect_grants(envelopes, programs.program_of(run))
    except VerificationError as fault:
        yield Damage.of(workspace.origin, str(run.id), fault)


def log_damage(workspace: Workspace) -> Iterator[Damage]:
    """The accounts in a log's row."""
    found = budgets.accounts_of(workspace)
    if found is None:
        text = "The accounts of the workspace cannot be read: nothing is left of its budgets."
        yield Damage(log=workspace.origin, run=LOG_RUN, at=0, code="LOG-003", text=text)
    for name, account in (found or {}).items():
        if not NAME.fullmatch(name) or min(account) < 0:
            text = f"The workspace's account {name[:60]!r} cannot be what it says."
            yield Damage(log=workspace.origin, run=LOG_RUN, at=0, code="LOG-003", text=text)
