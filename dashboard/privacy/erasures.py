"""The erasures of a workspace, the newest first: of runs, of suppliers, of both at once."""

from dataclasses import dataclass

from engine.models import Envelope, Run, Workspace
from engine.store import records
from nanovm_core.core.envelope import LOG_RUN
from pipeline.models import Supplier
from pipeline.register import erasure

SHOWN = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Erasure:
    """An erasure that is done. ``runs``: how many went with a supplier; None for none asked."""

    at_ms: int
    of: str  # run, supplier
    code: str
    url: str  # of its certificate
    runs: int | None = None


def made(workspace: Workspace | None) -> list[Erasure]:
    """At most ``SHOWN`` of each; what went with a supplier is that one erasure, and no other."""
    if workspace is None:
        return []
    logs = [workspace.id, *workspace.predecessors.values_list("id", flat=True)]
    found: list[Erasure] = []
    seen: set[str] = set()
    sealed = Envelope.objects.filter(workspace__in=logs, run=LOG_RUN, kind="erasure_done")
    for each in sealed.order_by("-workspace", "-n")[:SHOWN]:
        body = records.body_of(each.bytes)
        given, at_ms = records.part_of(body, "in"), int(str(body.get("at_ms", 0)))
        both, alone = (str(given.get(of, "")) for of in (erasure.WITH_RUNS, erasure.KIND))
        row = Supplier.objects.filter(id=both or alone).first() if both or alone else None
        if row is None or {both, alone} & seen:
            continue
        runs = records.part_of(body, "out").get("runs", ()) if both else ()
        went = [str(run["run"]) for run in runs if run.get("outcome") != erasure.STILL_KEPT]
        seen |= {both or alone, *went}
        room = "privacy/suppliers" if both else "suppliers"
        gone = sum(run.get("outcome") == erasure.ERASED_NOW for run in runs)
        url, count = f"/{room}/{row.id}/certificate/", gone if both else None
        found.append(Erasure(at_ms=at_ms, of="supplier", code=row.code, url=url, runs=count))
    erased = Run.objects.filter(workspace__in=logs).exclude(erased_ms=None)
    for run in erased.exclude(id__in=seen).order_by("-erased_ms")[:SHOWN]:
        url = f"/privacy/certificates/{run.code}/"
        found.append(Erasure(at_ms=run.erased_ms or 0, of="run", code=run.code, url=url))
    return sorted(found, key=lambda each: each.at_ms, reverse=True)
