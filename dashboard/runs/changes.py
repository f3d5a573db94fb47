"""Whether a run's page has changed, at the cost of a few rows for many runs."""

from collections.abc import Hashable, Sequence

from django.db.models import Count, Max, Q

from engine.evidence import liveness, unsigned
from engine.models import Checkpoint, Run
from engine.queries import runs
from pipeline.queries import stuck_runs
from sabotage.models import Attack, Plan

Stamp = Hashable
HEAD = ("id", "length", "state", "quarantined", "workspace_id", "workspace__origin")


def stamps(run_ids: Sequence[str]) -> dict[str, Stamp]:
    """A stamp for each of these runs that changes with what its page shows.

    It looks for what nobody tells of (a signature, a time that has passed) and for what was told
    when the queue server could not hear it. Nothing that the vault holds is read.
    """
    rows = Run.objects.filter(id__in=run_ids).values_list(*HEAD)
    attacks = _counted(Attack, run_ids, Q(verdict="") | Q(control={}))
    planned = _counted(Plan, run_ids, Q(attack=None))
    signed = dict(
        Checkpoint.objects.filter(workspace__in={row[4] for row in rows})
        .values_list("workspace")
        .annotate(Max("size"))
    )
    silent_ms = liveness.silent_ms()
    silent = silent_ms is None or silent_ms > liveness.SILENT_MS_MAX
    refused = {each.origin: each.code for each in unsigned.unsigned_logs()}
    return {
        str(row[0]): (
            *(row[:4], _stall(str(row[0]), row[2]), attacks.get(row[0]), planned.get(row[0])),
            *(signed.get(row[4]), silent, refused.get(row[5])),
        )
        for row in rows
    }


def _counted(
    model: type[Attack] | type[Plan], run_ids: Sequence[str], open_: Q
) -> dict[object, tuple[int, ...]]:
    """For each run: how many there are, and how many of them are open."""
    rows = model._default_manager.filter(run_id__in=run_ids).values_list("run_id")
    counted = rows.annotate(all=Count("pk"), open=Count("pk", filter=open_))
    return {row[0]: row[1:] for row in counted}


def _stall(run_id: str, state: str) -> Stamp:
    """What is said of a run that does not go on: that changes as time passes."""
    if state not in stuck_runs.GOES:
        return None
    row = Run.objects.get(id=run_id)
    return stuck_runs.of_run(row, runs.head_of(row))
