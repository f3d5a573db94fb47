"""Five hundred redeliveries of one run's message, at once, to a real queue and its worker.

``python -m tests.sabotage.injectors.storm`` on an empty data folder prints what came of it as JSON.
"""

import json
from collections.abc import Callable

import django

TIMES = 500
ANSWERED_MS_MAX = 180_000  # a loaded machine's worker takes its time over five hundred
PACE_MS = 400  # slow enough that the run is still being driven when they come


def main() -> None:
    """Let one run go in peace and one in the storm, and tell them apart."""
    django.setup()
    from pipeline.models import Run
    from pipeline.ops import schema
    from pipeline.runtime import api
    from sabotage.campaign import services
    from sabotage.fire import fire, look_again
    from sabotage.kit.evidence import observe

    def answered(run_id: str) -> int:
        now = observe(run_id)  # refused by the lease, with nothing owed, or after the end
        return now.lease_absorbed + now.absorbed.get("DeliveryReceived", 0)

    schema.migrate()
    with services():
        calm, storm = started(api.start), started(api.start)
        wait(lambda: bool(observe(storm).holder) or ended(storm), "no worker took the run")
        attack = fire(storm, "double_exec", {"redeliveries": str(TIMES)}, "storm")
        wait(lambda: ended(calm) and ended(storm), "the runs did not end")
        # its own two messages at most met nothing, and one of each kind is sealed, not counted
        wait(lambda: answered(storm) >= TIMES - 1, "the queue was not worked off")
        told = look_again(attack)
        rows = {name: Run.objects.get(id=run) for name, run in (("calm", calm), ("storm", storm))}
        found = {
            "grown": rows["storm"].workspace.size - rows["calm"].workspace.size,
            "states": sorted({row.state for row in rows.values()}),
            "whole": api.check(storm) is None and api.check(calm) is None,
            "answered": answered(storm),
            "door": told.evidence["door"],
            "verdict": told.verdict,
            "integrity": told.integrity,
            "payments": told.evidence["far_side"]["payments"],
            "twice": told.evidence["effects_done_twice"],
        }
    print(json.dumps(found))


def ended(run_id: str) -> bool:
    """Whether a run has ended."""
    from nanovm_core.core.lifecycle import TERMINAL
    from pipeline.models import Run

    return Run.objects.get(id=run_id).state in TERMINAL


def started(start: Callable[[str, str], object]) -> str:
    """A run in a workspace of its own, that a worker will drive."""
    import samples
    from pipeline.runtime import create_run
    from pipeline.store import workspaces

    path = samples.path("plain")
    run = create_run.create_run(workspaces.create(), path.read_bytes(), path.name, pace_ms=PACE_MS)
    start(str(run.id), "visitor")
    return str(run.id)


def wait(holds: Callable[[], bool], otherwise: str) -> None:
    from sabotage.kit.waiting import wait_until

    if not wait_until(holds, ANSWERED_MS_MAX):
        raise SystemExit(f"In {ANSWERED_MS_MAX // 1000} s {otherwise}.")


if __name__ == "__main__":
    main()
