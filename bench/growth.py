"""Appends and pages of a log of a million envelopes, compared with one of ten thousand.

``python -m bench.growth [FEW MANY ROUNDS]`` fills two databases on SQLite in folders of their own,
a process each, has them take turns, and prints the table; 3 where a bar is not reached. Rows of
pages are remembered, and more of a short log than of a long one: each page begins without any.
"""

import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any
from uuid import UUID

from bench.kit import report, rounds
from bench.kit.held import Held, answer
from bench.kit.migrated import migrated
from bench.kit.report import Bar, Table

FEW, MANY, ROUNDS = 10_000, 1_000_000, 21
CALLS = 3  # in a turn, of which the quickest counts
WARM_UP = 1  # a turn
BAR = Bar("≤", 1.3)
APPENDS = {
    "a run of seven steps": "run",
    "one runtime.submit": "submit",
}
PAGES = {
    "newest page": "newest",
    "a page from the middle on": "middle",
    "by kind": "kind",
    "by step, from the middle on": "step",
    "of one run": "one",
    "up to a moment": "moment",
    "by a rule that nothing tripped": "rule",
}


@contextmanager
def holders(counts: Sequence[int]) -> Iterator[Mapping[int, Held]]:
    """A filled database for each count, one after the other."""
    with ExitStack() as stack:
        found = {}
        for count in counts:
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="nanovm-bench-"))
            found[count] = Held(["-m", "bench.growth", "--hold", folder, str(count)])
            stack.callback(found[count].end)
            sys.stderr.write(f"{found[count].said()}\n")
        yield found


def _took(held: Held, what: str) -> float:
    return float(held.ask(what))


def tables(few: int, many: int, count: int) -> list[Table]:
    """Both tables, measured."""
    with holders((few, many)) as held:
        batches = {
            f"{name} at {size}": partial(_took, held[size], what)
            for name, what in {**APPENDS, **PAGES}.items()
            for size in held
        }
        for batch in batches.values():
            for _ in range(WARM_UP):
                batch()
        found = rounds.measure(batches, rounds=count)
    made = []
    for title, rows in (("Appending to a long log", APPENDS), ("A page of a long log", PAGES)):
        says = f"At {many:,} stored envelopes, in units of the same at {few:,}; on SQLite."
        each = [report.row(found, f"{n} at {many}", f"{n} at {few}", BAR, n) for n in rows]
        made.append(Table(title=title, says=says, rows=each))
    return made


# --- in the process of one database -----------------------------------------------------------


def hold(folder: str, envelopes: int) -> None:
    """Fill a database, then do what each line of standard input names, and say how long it took."""
    migrated(folder)
    from bench.kit.fill import filled
    from engine.models import Envelope

    began = time.monotonic()
    workspace = filled(envelopes)
    took = time.monotonic() - began
    sys.stdout.write(f"{Envelope.objects.count():,} envelopes stored in {took:.0f} s\n")
    sys.stdout.flush()
    calls = actions(workspace)
    answer(lambda what: min(calls[what]() for _ in range(CALLS)))


def actions(workspace: Any) -> Mapping[str, Callable[[], float]]:
    """The timed calls, by name."""
    return {**_appends(workspace), **_pages(workspace.pk)}


def _appends(workspace: Any) -> dict[str, Callable[[], float]]:
    from bench.kit import fill
    from engine.runtime import api
    from nanovm_core.core.events import PauseRequested, ResumeRequested

    def submit() -> float:
        run = fill.made(workspace).run
        paused = PauseRequested()
        took = _timed(lambda: api.submit(str(run.id), [paused], actor="bench"))
        back = ResumeRequested(program=run.program_hash)
        api.submit(str(run.id), [back], actor="bench")
        return took

    return {"run": lambda: _timed(lambda: fill.driven(workspace)), "submit": submit}


def _pages(workspace: UUID) -> dict[str, Callable[[], float]]:
    from engine.models import Envelope
    from engine.queries import log, timeline
    from engine.queries.runs import body_of
    from engine.queries.timeline import Filter

    dice, rows = random.Random(rounds.SEED), Envelope.objects.filter(workspace=workspace)  # noqa: S311
    newest = rows.order_by("-seq").values_list("seq", flat=True)[0]

    def middle() -> Envelope:
        return rows.get(seq=dice.randint(newest // 4, 3 * newest // 4))

    def page(asked: Filter, cursor: str = "") -> float:
        log.entry_from.cache_clear()
        return _timed(lambda: timeline.page(workspace, asked, cursor))

    def moment() -> float:
        at_ms = body_of(middle().bytes)["at_ms"]
        return page(Filter(until_ms=at_ms))

    return {
        "newest": lambda: page(Filter()),
        "middle": lambda: page(Filter(), str(middle().seq)),
        "kind": lambda: page(Filter(kind="terminal")),
        "step": lambda: page(Filter(step="s3"), str(middle().seq)),
        "one": lambda: page(Filter(run=middle().run)),
        "moment": moment,
        "rule": lambda: page(Filter(rule="CAP-001")),
    }


def _timed(work: Callable[[], object]) -> float:
    began = time.perf_counter_ns()
    work()
    return float(time.perf_counter_ns() - began)


def main(arguments: Sequence[str]) -> int:
    """Measure and print; 3 where a bar is not reached."""
    if arguments[:1] == ["--hold"]:
        hold(arguments[1], int(arguments[2]))
        return 0
    few, many, count = map(int, arguments) if arguments else (FEW, MANY, ROUNDS)
    return report.shown(*tables(few, many, count))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
