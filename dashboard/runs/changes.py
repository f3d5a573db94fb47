"""Whether a run's page has changed, at the cost of a few rows for many runs."""

from collections.abc import Hashable, Sequence

from engine.evidence import published
from engine.models import Run
from engine.queries import runs
from engine.store import sql
from pipeline.queries import stuck_runs

Stamp = Hashable
_LOOK = (
    "SELECT r.id, r.state, w.origin, r.length, r.quarantined,"
    " (SELECT COUNT(*) FROM sabotage_attack WHERE run_id = r.id),"
    " (SELECT COUNT(*) FROM sabotage_attack WHERE run_id = r.id"
    " AND (verdict = '' OR control = '{{}}')),"
    " (SELECT COUNT(*) FROM sabotage_plan WHERE run_id = r.id),"
    " (SELECT COUNT(*) FROM sabotage_plan WHERE run_id = r.id AND attack_id IS NULL),"
    " (SELECT MAX(size) FROM pipeline_checkpoint WHERE workspace_id = w.id)"
    " FROM pipeline_run r JOIN pipeline_workspace w ON w.id = r.workspace_id WHERE r.id IN {}"
)


def stamps(run_ids: Sequence[str]) -> dict[str, Stamp]:
    """A stamp for each of these runs that changes with what its page shows.

    It looks for what nobody tells of (a signature, a time that has passed) and for what was told
    when the queue server could not hear it. Nothing that the vault holds is read.
    """
    silent_ms = published.silent_ms()
    silent = silent_ms is None or silent_ms > published.SILENT_MS_MAX
    refused = {each.origin: each.code for each in published.unsigned_logs()}
    rows = sql.execute(_LOOK.format(sql.marks(run_ids)), [*map(sql.key_of, run_ids)])
    return {
        (run_id := sql.name(key)): (
            *(run_id, state, *said, _stall(run_id, state), silent, refused.get(origin)),
        )
        for key, state, origin, *said in rows
    }


def _stall(run_id: str, state: str) -> Stamp:
    """What is said of a run that does not go on: that changes as time passes."""
    if state not in stuck_runs.GOES:
        return None
    row = Run.objects.get(id=run_id)
    return stuck_runs.of_run(row, runs.head_of(row))
