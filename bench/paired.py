"""The one table: our runtime beside a floor, its peers and a naive script, in ratios of one run.

``python -m bench.paired [ROUNDS]`` prints it; 3 where a bar is missed or was not measured.
``python -m bench.paired BEFORE AFTER [ROUNDS]`` compares two checkouts; 3 where AFTER is slower.

Each contestant has a process and an empty folder of its own, and one at a time works, for SECONDS,
in shuffled order. A ratio of runs per CPU second holds on a busy machine, too; what a database's
server spends is not in it.
"""

import json
import os
import sys
import tempfile
import time
import traceback
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:  # a contestant imports the bench of its own checkout
    from bench.kit.report import Row

ROUNDS, SECONDS, WARM_UP_SECONDS = 7, 0.6, 3.0  # the first runs grow the write-ahead log
LONG_SECONDS = 4.0  # a turn of two checkouts, whose ratio is near 1
INVOICES = 11
BAR = 0.98  # of AFTER : BEFORE
PGURL = os.environ.get("BENCH_POSTGRES", "")  # where contestants make their databases
ROOT = Path(__file__).resolve().parents[1]
SQLITE, POSTGRES = "nanovm_sqlite", "nanovm_postgres"


class Field(NamedTuple):
    """Contestants that take turns, and how many times as many runs ours should make."""

    says: str
    ours: str
    in_flight: int
    peers: Mapping[str, float | None]

    def absent(self, peer: str, why: str) -> "Row":
        """The row of what was not measured, or was not yet."""
        from bench.kit.report import Bar, missing

        least = self.peers[peer]
        bar = Bar("≥", least) if least else None
        return missing(f"{self.says}: nanovm : {peer}", why, bar)


ONE = {"floor": 0.45, "dbos_wal": 3.0, "langgraph_sqlite": 2.4, "llm_nano_vm": None}
MANY = {"llm_nano_vm": 0.18, "langgraph_sqlite": 7.5, "floor": None, "dbos_wal": None}
FIELDS = (
    Field("SQLite, one run at a time", SQLITE, 1, ONE),
    Field("SQLite, 32 in flight", SQLITE, 32, MANY),
    Field("PostgreSQL, one", POSTGRES, 1, {"dbos_postgres": 3.0, "langgraph_postgres": None}),
    Field("PostgreSQL, 32", POSTGRES, 32, {"dbos_postgres": 7.0, "langgraph_postgres": None}),
)


class Base:
    """What a contestant asks of a bench: tools that do nothing, and the count of runs."""

    durable, least = "", 0  # what it stores, and how many rows of a run at the least

    def __init__(self, folder: str, conc: int) -> None:
        self.d, self.conc, self.runs, self.effects = folder, conc, 0, 0
        self.setup()

    def setup(self) -> None:
        """The contestant's own start."""

    def one(self) -> None:
        """The contestant's one run."""
        raise NotImplementedError

    def rows(self) -> int:
        """What it stored."""
        return 0

    def tool(self, i: int, clock: object = None) -> dict[str, str]:
        """An effect that does nothing."""
        self.effects += 1
        return {"ref": "done"}

    def done(self, began: float, clock: object = None) -> None:
        """Count a run that has ended."""
        self.runs += 1

    def run_many(self, secs: float) -> None:
        """Run after run until the time is up, one at least, in as many threads as are asked for."""
        end = time.perf_counter() + secs

        def line() -> None:
            while True:
                began = time.perf_counter()
                self.one()
                self.done(began)
                if time.perf_counter() >= end:
                    return

        if self.conc == 1:
            return line()
        with ThreadPoolExecutor(self.conc) as threads:
            for each in [threads.submit(line) for _ in range(self.conc)]:
                each.result()
        return None


# --- in the process of a contestant -----------------------------------------------------------


def serve(plugin: str, name: str, folder: str, conc: str) -> None:
    """Run for the seconds of each line of standard input; say nanoseconds of a run, twice.

    It ends with the stored rows, which ours recomputes; where they are too few it fails.
    """
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # what else is printed is no answer
    sys.path.insert(0, str(Path(plugin).resolve().parents[1]))
    from bench import seven  # the checkout's own

    given: dict[str, Any] = {"Base": Base, "N": seven.STEPS, "CTX": seven.CONTEXT}
    exec(compile(Path(plugin).read_text("utf-8"), plugin, "exec"), given)  # noqa: S102 - a plugin
    try:
        subject = given["CONTESTANTS"][name](folder, int(conc))
    except ModuleNotFoundError as error:
        print(json.dumps({"why": f"{error}; see bench/requirements.txt"}), file=answers)
        return
    print(json.dumps({"stores": subject.durable}), file=answers)
    for line in sys.stdin:
        before, wall, cpu = subject.runs, time.perf_counter_ns(), time.process_time_ns()
        subject.run_many(float(line))
        took = time.perf_counter_ns() - wall, time.process_time_ns() - cpu
        print(json.dumps([each / (subject.runs - before) for each in took]), file=answers)
    stored, least = subject.rows(), subject.runs * subject.least
    if stored < least or subject.effects != subject.runs * seven.STEPS:
        raise RuntimeError(f"{name}: {subject.runs} runs, {subject.effects} effects, {stored} rows")


# --- in the bench's own process ---------------------------------------------------------------


class Contestant:
    """A process that takes turns; ``why`` says why it does not."""

    def __init__(self, stack: ExitStack, checkout: Path, name: str, conc: int) -> None:
        from bench.kit.held import Held

        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="nanovm-bench-"))
        file = "durable.py" if name in (SQLITE, POSTGRES) else "peers.py"
        plugin = str(checkout.resolve() / "bench" / file)
        # -P: beside this file lie modules that bear names of the standard library.
        self.held = Held(["-P", __file__, "--plugin", plugin, name, folder, str(conc)], checkout)
        self.cpu_ns: list[float] = []
        self.why = str(json.loads(self.held.said()).get("why", ""))
        if not self.why:
            self.turn(WARM_UP_SECONDS)
            self.cpu_ns.clear()

    def turn(self, secs: float = SECONDS) -> float:
        """Nanoseconds of a run; those of the processor are kept."""
        wall, cpu = json.loads(self.held.ask(str(secs)))
        self.cpu_ns.append(float(cpu))
        return float(wall)

    def end(self) -> None:
        """Have it check what it stored; an error where that is too little."""
        self.held.end()
        if self.held.popen.returncode:
            raise RuntimeError("A contestant did not store what it should have; see above.")


def rows(field: Field, count: int) -> list["Row"]:
    """Have a field's contestants take turns; ours beside each of the others."""
    from bench.kit import report, rounds

    with ExitStack() as stack:
        names = (field.ours, *field.peers)
        made = {name: Contestant(stack, ROOT, name, field.in_flight) for name in names}
        present = {name: each for name, each in made.items() if not each.why}
        wall = rounds.measure({name: each.turn for name, each in present.items()}, rounds=count)
        for each in made.values():
            each.end()
    cpu = rounds.Measured({name: each.cpu_ns for name, each in present.items()})
    found = list[report.Row]()
    for peer in field.peers:
        row = field.absent(peer, made[peer].why)
        if not row.why:
            ratio = cpu.ratio(peer, field.ours).median
            row = report.row(wall, peer, field.ours, row.bar, row.name)._replace(cpu=ratio)
        found.append(row)
    return found


def table(count: int) -> int:
    """Print the one table; 3 where a bar is missed or was not measured."""
    from bench import real_run
    from bench.kit import database, report

    found = [each for field in FIELDS if field.ours == SQLITE for each in rows(field, count)]
    served = [field for field in FIELDS if field.ours == POSTGRES]
    try:
        with database.server() as url:
            os.environ["BENCH_POSTGRES"] = url
            found += [each for field in served for each in rows(field, count)]
    except FileNotFoundError as error:
        why = str(error).partition(",")[0]
        found += [field.absent(peer, why) for field in served for peer in field.peers]
    found += real_run.rows(INVOICES)
    says = (
        "Seven steps: runs per second of ours in units of the other's, and runs per CPU second. "
        "An invoice: milliseconds in units of a script that reads with PDFium and a regex and pays."
    )
    return report.shown(report.Table("nanovm beside its peers", says, found, peers=PEERS))


PEERS = ("dbos", "langgraph", "langgraph-checkpoint-sqlite", "llm-nano-vm")


def compared(before: Path, after: Path, count: int) -> int:
    """Have both checkouts take turns, and print the ratios; 3 where AFTER is under the bar."""
    from bench.kit import report, rounds

    with ExitStack() as stack:
        both = [Contestant(stack, each, SQLITE, 1) for each in (before, after)]
        turns = (partial(each.turn, LONG_SECONDS) for each in both)
        batches = dict(zip(("before", "after"), turns, strict=True))
        wall = rounds.measure(batches, rounds=count)
        for each in both:
            each.end()
    cpu = median(one / other for one, other in zip(*(each.cpu_ns for each in both), strict=True))
    ratio = wall.ratio("before", "after")
    print(f"runs per second: {ratio}; per CPU second: {cpu:.3f}")
    return report.status([ratio.median >= BAR])


def main(arguments: Sequence[str]) -> int:
    """Measure what is asked for."""
    if len(arguments) < 2:
        return table(int(arguments[0]) if arguments else ROUNDS)
    before, after, *count = arguments
    return compared(Path(before), Path(after), int(count[0]) if count else ROUNDS)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--plugin"]:
        status = 1
        try:
            serve(*sys.argv[2:6])
            status = 0
        except Exception:  # noqa: BLE001 - it is printed, and the status says it
            traceback.print_exc()
        os._exit(status)  # threads of a peer would keep it
    else:
        sys.exit(main(sys.argv[1:]))
