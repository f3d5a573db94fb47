"""The audit of rows: what those of runs repeat, or hold beside what is sealed."""

import re
from collections.abc import Iterator, Sequence

from engine.damage import Damage
from engine.models import Run, Workspace
from engine.store import outbox, programs, records
from nanovm_core.core.envelope import Stored
from nanovm_core.core.messages import Snapshot
from nanovm_core.errors import VerificationError

HOLDER = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|")  # drawn for each lease


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
