"""Five hundred copies of one message, at once, to a real queue and its worker: one payment.

``python -m tests.sabotage.injectors.test_storm`` on an empty data folder is the program.
"""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.house.demo import ran, wait_for_none

TIMES = 500
ANSWERED_MS_MAX = 180_000  # a loaded machine's worker takes its time over five hundred
PACE_MS = 400  # slow enough that the run is still being driven when they come
GROWN_MAX = 10  # envelopes more than a run has that nobody attacked


@pytest.mark.soak
def test_five_hundred_copies_are_one_payment_and_no_flood(tmp_path: Path) -> None:
    done = ran(tmp_path, "-m", __name__, DJANGO_SETTINGS_MODULE="config.settings")
    assert done.returncode == 0, done.stderr[-2_000:]
    said = json.loads(done.stdout)
    assert said["door"] == "queue"
    assert said["answered"] >= TIMES - 1
    assert (said["states"], said["whole"]) == (["terminated.completed"], True)
    assert said["verdict"] == ["IGNORED", "HELD", 0]
    paid = [(each["amount_minor"], each["currency"], each["status"]) for each in said["payments"]]
    assert paid == [(128_450, "EUR", "succeeded")]
    assert 0 < said["grown"] <= GROWN_MAX
    assert wait_for_none(tmp_path) == []


def main() -> None:
    """Let one run go in peace and one in the storm, and print what came of both as JSON."""
    import django

    django.setup()
    from nanovm_core.core.lifecycle import TERMINAL
    from pipeline.models import Run
    from pipeline.ops import schema
    from pipeline.runtime import api
    from sabotage.campaign import services
    from sabotage.fire import fire, look_again
    from sabotage.kit.evidence import observe

    def answered() -> int:
        now = observe(storm)  # refused by the lease, with nothing owed, or after the end
        return now.lease_absorbed + now.absorbed.get("DeliveryReceived", 0)

    schema.migrate()
    with services():
        calm, storm = started(), started()
        rows = Run.objects.filter(id__in=[calm, storm])
        wait(
            lambda: bool(observe(storm).holder) or rows.get(id=storm).state in TERMINAL, "no worker"
        )
        attack = fire(storm, "double_exec", {"redeliveries": str(TIMES)}, "storm")
        wait(lambda: {*rows.values_list("state", flat=True)} <= TERMINAL, "the runs did not end")
        # its own two messages at most met nothing, and one of each kind is sealed, not counted
        wait(lambda: answered() >= TIMES - 1, "the queue was not worked off")
        told = look_again(attack)
        sizes = {str(row.id): row.workspace.size for row in rows}
        found = {
            "grown": sizes[storm] - sizes[calm],
            "states": sorted({row.state for row in rows.all()}),
            "whole": api.check(storm) is None and api.check(calm) is None,
            "answered": answered(),
            "door": told.evidence["door"],
            "verdict": [told.verdict, told.integrity, told.evidence["effects_done_twice"]],
            "payments": told.evidence["far_side"]["payments"],
        }
    print(json.dumps(found))


def started() -> str:
    """A run in a workspace of its own, that a worker will drive."""
    import samples
    from pipeline.runtime import api, create_run
    from pipeline.store import workspaces

    path = samples.path("plain")
    run = create_run.create_run(workspaces.create(), path.read_bytes(), path.name, pace_ms=PACE_MS)
    api.start(str(run.id), "visitor")
    return str(run.id)


def wait(holds: Callable[[], bool], otherwise: str) -> None:
    from sabotage.kit.waiting import wait_until

    if not wait_until(holds, ANSWERED_MS_MAX):
        raise SystemExit(f"In {ANSWERED_MS_MAX // 1000} s {otherwise}.")


if __name__ == "__main__":
    main()
