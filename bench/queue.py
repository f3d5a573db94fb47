"""Seven trivial steps through the queue, compared with one task that does nothing; and its turns.

``python -m bench.queue [ROUNDS]`` starts a queue server, a worker and a signer as the demo does, on
SQLite in a folder of its own (DATABASE_URL is heeded), and prints the table; 3 where the bar is
not reached. The same client sends both, and waits on the same list at the queue server.

``python -m bench.queue turns [ROUNDS]`` measures how fairly workspaces have their turns where a
reader and a payer have a process each, and hand over each run three times: a lone run behind
BACKLOG of another workspace, and WORKSPACES with EACH runs at once, whose messages arrive workspace
by workspace.
"""

import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median
from typing import Any

from bench.kit import report, rounds
from bench.kit.migrated import migrated
from bench.kit.report import Bar, Table
from engine.ops import processes
from nanovm_core.core.events import RunStarted
from nanovm_core.core.lifecycle import COMPLETED

ROUNDS = 101
FOLDER = "nanovm-bench-"
WARM_UP = 5  # of each: connections, compiled programs
WAIT_SECONDS_MAX = 60
TASK, STEPS = "a task that does nothing", "seven steps"
BAR = Bar("≤", 2.5)
TURNS, TURN_ROUNDS, AGENTS = "turns", 5, ("reader", "payer")
BACKLOG, WORKSPACES, EACH, WINDOW = 200, 10, 20, 40
PLACE_MAX, LATE_MAX, FAIR_MEDIAN, FAIR_WORST = 5, 3.0, 0.95, 0.90


@contextmanager
def servers(folder: Path, agents: Sequence[str] = ("",)) -> Iterator[None]:
    """A queue server, a migrated database, workers and a signer, and Django set up on them.

    ``agents``: each has a worker of its own; without a name it acts for all.
    """
    with ExitStack() as stack:
        url = stack.enter_context(processes.redis_server(folder))
        given = {"DJANGO_SETTINGS_MODULE": "bench.worker.settings", "REDIS_URL": url}
        os.environ.update(given)
        import config.celery  # noqa: F401 # the application that sends

        migrated(str(folder), DATABASE_URL=os.environ.get("DATABASE_URL", ""), **given)
        import bench.worker.tasks  # noqa: F401 # the applications, which say whose each tool is

        for agent in agents:
            env = {**os.environ, "NANOVM_AGENT": agent}
            stack.enter_context(processes.running(processes.spawn_celery_worker(env)))
        signer = processes.ready(processes.spawn_signer(os.environ))
        stack.callback(processes.stop, [signer])
        yield


def measured(count: int) -> rounds.Measured:
    """What each took, in turns."""
    timed_each = batches()
    for batch in timed_each.values():
        for _ in range(WARM_UP):
            batch()
    return rounds.measure(timed_each, rounds=count)


def batches() -> Mapping[str, Callable[[], float]]:
    """The timed calls; each checks that its run completed."""
    from bench.kit import fill
    from bench.worker import tasks
    from engine.runtime import api, chains, queue

    workspace = chains.create()

    def task() -> float:
        run = fill.made(workspace, starts=False).run
        return timed(lambda: tasks.nothing.apply_async((str(run.id), run.program_hash)))

    def steps() -> float:
        run = fill.made(workspace, starts=False).run
        api.submit(str(run.id), [RunStarted()], actor="bench")
        took = timed(lambda: queue.wake(str(run.id)))
        finished(run)
        return took

    return {TASK: task, STEPS: steps}


def finished(run: Any) -> None:
    """Check that a run completed."""
    run.refresh_from_db()
    if run.state != COMPLETED:
        raise RuntimeError(f"The run {run.id} ended in {run.state}; see the worker's log.")


def timed(send: Callable[[], object]) -> float:
    """Nanoseconds from before a message is sent until its task has ended, as the client sees it."""
    from bench.worker import tasks

    tasks.server().delete(tasks.DONE)
    began = time.perf_counter_ns()
    send()
    if tasks.server().blpop([tasks.DONE], WAIT_SECONDS_MAX) is None:
        raise RuntimeError(f"No task ended within {WAIT_SECONDS_MAX} s; see the worker's log.")
    return float(time.perf_counter_ns() - began)


def table(found: rounds.Measured) -> Table:
    """The rows of the bench."""
    return Table(
        title="Seven trivial steps through the queue",
        says="One worker process, the real queue server, everything durable and signed: in units "
        "of one round trip of a task that does nothing.",
        rows=[report.row(found, STEPS, TASK, BAR)],
    )


def ready_runs(count: int, *, shared: bool = False) -> list[Any]:
    """So many runs of a new workspace, made and not started; ``shared``: of two agents."""
    from bench.kit import fill
    from engine.runtime import chains

    workspace = chains.create()
    return [fill.made(workspace, starts=False, shared=shared).run for _ in range(count)]


def started(runs: Sequence[Any]) -> int:
    """Start runs, and queue their messages one after the other: when all of them were due."""
    from django.db import transaction

    from engine.clock import now_ms
    from engine.runtime import api, queue

    with transaction.atomic():
        for run in runs:
            api.submit(str(run.id), [RunStarted()], actor="bench")
    due_ms = now_ms()
    for run in runs:
        queue.wake(str(run.id))
    return due_ms


def ended(runs: Sequence[Any]) -> list[int]:
    """When each of these runs had ended, in order; waits for all of them."""
    from engine.models import Run

    until = time.monotonic() + WAIT_SECONDS_MAX
    while time.monotonic() < until:
        found = Run.objects.filter(id__in=[each.id for each in runs], ended_ms__isnull=False)
        times = sorted(each for each in found.values_list("ended_ms", flat=True) if each)
        if len(times) == len(runs):
            return times
        time.sleep(0.005)
    raise RuntimeError(f"Not all runs ended within {WAIT_SECONDS_MAX} s; see the worker's log.")


def lone() -> tuple[float, float, int]:
    """Milliseconds of a run alone, and behind BACKLOG of another workspace; its place then."""

    def timed_run(run: Sequence[Any]) -> tuple[int, int]:
        return started(run), ended(run)[0]

    backlog, first, second = (ready_runs(n, shared=True) for n in (BACKLOG, 1, 1))
    alone = timed_run(first)
    started(backlog)
    behind = timed_run(second)
    before = [each for each in ended(backlog) if behind[0] <= each < behind[1]]
    return alone[1] - alone[0], behind[1] - behind[0], len(before) + 1


def shared() -> tuple[list[float], float]:
    """Jain's index of each window of WINDOW starts, and runs per second, of WORKSPACES at once."""
    from engine.models import AdapterCall

    runs = [run for _ in range(WORKSPACES) for run in ready_runs(EACH, shared=True)]
    started(runs)
    last_ms = ended(runs)[-1]
    calls = AdapterCall.objects.filter(number=1, run__in=[each.id for each in runs])
    begun = [*calls.order_by("at_ms", "run_id").values_list("run__workspace_id", "at_ms")]
    windows = [begun[at : at + WINDOW] for at in range(0, len(begun), WINDOW)]
    per_s = 1000 * len(runs) / (last_ms - begun[0][1])
    return [jain([owner for owner, _ in each]) for each in windows], per_s


def jain(owners: Sequence[object]) -> float:
    """Jain's fairness index of how often each of WORKSPACES is among these: 1 is equal shares."""
    shares = Counter(owners).values()
    return sum(shares) ** 2 / (WORKSPACES * sum(each * each for each in shares))


def turns(count: int) -> int:
    """Measure the turns and print them; 3 where a bar is not reached."""
    first = ready_runs(WARM_UP, shared=True)
    started(first)
    ended(first)
    behind, together = [lone() for _ in range(count)], [shared() for _ in range(count)]
    late = median(after / alone for alone, after, _ in behind)
    place = median(each for *_, each in behind)
    windows = [each for found, _ in together for each in found]
    sys.stdout.write(f"- alone, behind (ms), place: {behind}\n")
    sys.stdout.write(f"- runs per second: {[round(each, 1) for _, each in together]}\n")
    bars = [
        (f"a lone run behind {BACKLOG}: finishing place", place, "≤", PLACE_MAX),
        ("its latency, in units of the same run alone", late, "≤", LATE_MAX),
        ("Jain's index, median", median(windows), "≥", FAIR_MEDIAN),
        ("Jain's index, least", min(windows), "≥", FAIR_WORST),
    ]
    return report.bars(bars)


def main(arguments: Sequence[str]) -> int:
    """Measure and print; 3 where a bar is not reached."""
    if arguments[:1] == [TURNS]:
        count = int(arguments[1]) if arguments[1:] else TURN_ROUNDS
        with tempfile.TemporaryDirectory(prefix=FOLDER) as folder, servers(Path(folder), AGENTS):
            return turns(count)
    count = int(arguments[0]) if arguments else ROUNDS
    with tempfile.TemporaryDirectory(prefix=FOLDER) as folder, servers(Path(folder)):
        return report.shown(table(measured(count)))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
