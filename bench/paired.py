"""Durable runs of two checkouts, in turns: ``python -m bench.paired BEFORE AFTER [ROUNDS]``.

``python -m bench.paired [ROUNDS]`` measures this checkout by itself, with no bar.

A turn is a process of its own on an empty data folder, with the plugin ``bench/durable.py`` of its
checkout, for SECONDS. Printed are the medians of the ratios AFTER : BEFORE, of runs per second and
of runs per CPU second; the second one holds on a busy machine, too. 3 where it is under the bar.
"""

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

ROUNDS, SECONDS = 11, 4.0
ROUNDS_ALONE, IN_FLIGHT = 5, (1, 32)
BAR, SHORT = 0.98, 3  # and the exit status of a bench that misses its bar
RATES = ("per_s", "per_cpu_s")
SUBJECT = "nanovm_sqlite"


class Base:
    """What ``bench/durable.py`` asks of a bench: tools that do nothing, and the count of runs."""

    def __init__(self, folder: str, conc: int) -> None:
        self.d, self.conc, self.runs, self.effects = folder, conc, 0, 0
        self.setup()

    def setup(self) -> None:
        """The contestant's own start."""

    def one(self) -> None:
        """The contestant's one run."""
        raise NotImplementedError

    def tool(self, i: int, clock: object = None) -> dict[str, str]:
        """An effect that does nothing."""
        self.effects += 1
        return {"ref": "done"}

    def done(self, began: float, clock: object = None) -> None:
        """Count a run that has ended."""
        self.runs += 1

    def run_many(self, secs: float) -> None:
        """Run after run until the time is up, one at least."""
        end = time.perf_counter() + secs
        while True:
            began = time.perf_counter()
            self.one()
            self.done(began)
            if time.perf_counter() >= end:
                return


def contestant(plugin: str, folder: str, conc: str, secs: str) -> dict[str, Any]:
    """What a checkout does in so many seconds, in this process; its envelopes are audited."""
    sys.path.insert(0, str(Path(plugin).resolve().parents[1]))
    from bench import seven  # the checkout's own

    given: dict[str, Any] = {"Base": Base, "N": seven.STEPS, "CTX": seven.CONTEXT}
    exec(compile(Path(plugin).read_text("utf-8"), plugin, "exec"), given)  # noqa: S102 - a plugin
    subject = given["CONTESTANTS"][SUBJECT](folder, int(conc))
    subject.run_many(float(secs) / 10)  # connections, compiled programs
    warm, wall, cpu = subject.runs, time.perf_counter(), time.process_time()
    subject.run_many(float(secs))
    runs = subject.runs - warm
    per_s, per_cpu_s = runs / (time.perf_counter() - wall), runs / (time.process_time() - cpu)
    counted = {"runs": subject.runs, "effects": subject.effects, "rows": subject.rows()}
    return {**counted, "per_s": per_s, "per_cpu_s": per_cpu_s}


def turn(checkout: Path, conc: int = 1, secs: float = SECONDS) -> dict[str, Any]:
    """A contestant's answer, from a process of its own."""
    with tempfile.TemporaryDirectory(prefix="nanovm-bench-") as folder:
        plugin = str(checkout.resolve() / "bench" / "durable.py")
        # -P: beside this file lie modules that bear names of the standard library.
        command = [sys.executable, "-P", __file__, "--plugin", plugin, folder, str(conc), str(secs)]
        said = subprocess.run(command, cwd=checkout, stdout=subprocess.PIPE, check=True)  # noqa: S603
    found: dict[str, Any] = json.loads(said.stdout.splitlines()[-1])
    return found


def alone(rounds: int) -> int:
    """Print the rates of this checkout, with one run at a time and with many in flight."""
    for conc in IN_FLIGHT:
        found = [turn(Path(__file__).parents[1], conc) for _ in range(rounds)]
        per_s, per_cpu_s = (median(each[name] for each in found) for name in RATES)
        print(f"- {conc} in flight: {per_s:.1f} runs a second, {per_cpu_s:.1f} in a CPU second")
    return 0


def compared(before: Path, after: Path, rounds: int) -> int:
    """Have both take turns, and print the ratios; 3 where AFTER is under the bar."""
    pairs = []
    for _ in range(rounds):
        pairs.append((turn(before), turn(after)))
        print(*[f"{each['per_s']:.1f}/s {each['per_cpu_s']:.1f}/CPU s" for each in pairs[-1]])
    ratios = {name: median(b[name] / a[name] for a, b in pairs) for name in RATES}
    print(*[f"{name}: {ratio:.3f}" for name, ratio in ratios.items()])
    return SHORT if ratios["per_s"] < BAR else 0


def main(arguments: Sequence[str]) -> int:
    """Measure what is asked for."""
    if len(arguments) < 2:
        return alone(int(arguments[0]) if arguments else ROUNDS_ALONE)
    before, after, *rounds = arguments
    return compared(Path(before), Path(after), int(rounds[0]) if rounds else ROUNDS)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--plugin"]:
        print(json.dumps(contestant(*sys.argv[2:6])))
    else:
        sys.exit(main(sys.argv[1:]))
