"""Seven trivial steps through the queue, compared with one task that does nothing.

``python -m bench.queue [ROUNDS]`` starts a queue server, a worker and a signer as the demo does, on
SQLite in a folder of its own (DATABASE_URL is heeded), and prints the table; 1 where the bar is
not reached. The same client sends both, and waits on the same list at the queue server.
"""

import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from bench import seven
from bench.kit import report, rounds
from bench.kit.report import Bar, Table
from pipeline.ops import processes

ROUNDS = 101
WARM_UP = 5  # of each: connections, compiled programs
WAIT_SECONDS_MAX = 60
TASK, STEPS, WHOLE = "a task that does nothing", "seven steps", "made, started and seven steps"
BAR = Bar("≤", 2)


@contextmanager
def servers(folder: Path) -> Iterator[None]:
    """A queue server, a migrated database, a worker and a signer, and Django set up on them."""
    with ExitStack() as stack:
        os.environ["NANOVM_DATA"] = str(folder)
        os.environ["DJANGO_SETTINGS_MODULE"] = "bench.settings"
        os.environ["REDIS_URL"] = stack.enter_context(processes.redis_server(folder))
        import django

        import config.celery  # noqa: F401 # the application that sends

        django.setup()
        from django.core.management import call_command

        call_command("migrate", verbosity=0, interactive=False)
        stack.enter_context(processes.celery_worker(os.environ))
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
    from bench import tasks
    from nanovm_core.core.events import RunStarted
    from pipeline import entropy
    from pipeline.models import Run
    from pipeline.runtime import api, create_run, queue
    from pipeline.store import workspaces

    source, given, workspace = seven.program(), seven.slots(), workspaces.create()

    def made() -> Run:
        new = create_run.NewRun(
            workspace=workspace, program=source, policy=seven.POLICY, slots=given, actor="bench"
        )
        return create_run.make_run(new, entropy.uuid7()).run

    def task() -> float:
        run = made()
        return timed(lambda: tasks.nothing.apply_async((str(run.id), run.program_hash)))

    def steps() -> float:
        run = made()
        api.submit(str(run.id), [RunStarted()], actor="bench")
        took = timed(lambda: queue.wake(str(run.id)))
        finished(run)
        return took

    def whole() -> float:
        runs: list[Run] = []

        def begin() -> None:
            runs.append(made())
            api.start(str(runs[0].id), "bench")

        took = timed(begin)
        finished(runs[0])
        return took

    return {TASK: task, STEPS: steps, WHOLE: whole}


def finished(run: Any) -> None:
    """Check that a run completed."""
    from nanovm_core.core.lifecycle import COMPLETED

    run.refresh_from_db()
    if run.state != COMPLETED:
        raise RuntimeError(f"The run {run.id} ended in {run.state}; see the worker's log.")


def timed(send: Callable[[], object]) -> float:
    """Nanoseconds from before a message is sent until its task has ended, as the client sees it."""
    from bench import tasks

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
        rows=[
            report.row(found, STEPS, TASK, BAR),
            report.row(found, WHOLE, TASK),
        ],
    )


def main(arguments: Sequence[str]) -> int:
    """Measure and print; 1 where the bar is not reached."""
    count = int(arguments[0]) if arguments else ROUNDS
    with tempfile.TemporaryDirectory(prefix="nanovm-bench-") as folder, servers(Path(folder)):
        found = table(measured(count))
    sys.stdout.write(report.markdown(found))
    return int(any(each.verdict not in ("", "PASS") for each in found.rows))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
