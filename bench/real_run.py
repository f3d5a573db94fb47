"""Where the time of a real invoice goes, from its submission until its run stands.

Rows of the one table: sample invoices through the whole pipeline in one warm process, on SQLite, by
the parts that ``run_invoice --timings`` has, in units of ``bench/naive.py``, which reads and pays
the same page. Both pay at one local counterpart, whose processor time is in neither.
"""

import json
import os
import tempfile
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from bench.kit import report, rounds
from bench.kit.held import ROOT, Held, answer
from bench.kit.processor import spent as spent_s
from engine.ops import timings

WARM_UP = 2  # of each: connections, compiled programs, imports
SAMPLES = {"without XML": "plain", "with XML": "en16931"}
OURS, NAIVE = "an invoice {}: nanovm", "a script with PDFium and a regex, {}"
FOLDER = "nanovm-bench-"
KEY = "sk_test_nanovm_control"  # another account than ours, at the same counterpart


def rows(count: int) -> list[report.Row]:
    """Both samples, ours and the script's in turns, and the parts of ours."""
    from pipeline.ops.stripe_counterpart import stripe_counterpart

    spent: dict[str, list[float]] = defaultdict(list)  # nanoseconds by part, and of processors

    def ours(held: Held, name: str) -> float:
        parts: dict[str, float] = json.loads(held.ask(SAMPLES[name]))
        for part, took in parts.items():
            spent[f"{part} {name}"].append(took)
        return parts[timings.WHOLE]

    def naive(held: Held, name: str) -> float:
        wall, cpu = json.loads(held.ask(str(ROOT / "samples" / f"{SAMPLES[name]}.pdf")))
        spent[NAIVE.format(name)].append(cpu)
        return float(wall)

    with tempfile.TemporaryDirectory(prefix=FOLDER) as name, stripe_counterpart(Path(name)) as url:
        given = {**os.environ, "STRIPE_API_BASE": url, "NANOVM_DATA": f"{name}/data"}
        held = Held(["-m", "bench.real_run"], env=given)
        script = Held(["-m", "bench.naive", KEY, url])
        batches: dict[str, Callable[[], float]] = {}
        for each in SAMPLES:
            batches[OURS.format(each)] = partial(ours, held, each)
            batches[NAIVE.format(each)] = partial(naive, script, each)
        rounds.measure(batches, rounds=WARM_UP)
        spent.clear()
        wall = rounds.measure(batches, rounds=count)
        held.end()
        script.end()
    return [row for name in SAMPLES for row in _rows(wall.rounds, spent, name)]


def _rows(
    wall: Mapping[str, Sequence[float]], spent: Mapping[str, Sequence[float]], name: str
) -> list[report.Row]:
    """An invoice's row, and those of its parts."""
    script, whole = NAIVE.format(name), OURS.format(name)
    parts = {f"of it {part}": spent[f"{part} {name}"] for part in (*timings.PARTS, timings.REST)}
    found = rounds.Measured({script: wall[script], whole: wall[whole], **parts})
    cpu = sum(spent[f"cpu {name}"]) / sum(spent[script])
    first = report.row(found, whole, script, name=f"{whole} : {script.partition(',')[0]}")
    return [first._replace(cpu=cpu), *(report.row(found, part, script) for part in parts)]


# --- in the process that pays -----------------------------------------------------------------


def hold() -> None:
    """Pay the sample of each line of standard input; say nanoseconds by part."""
    from bench.kit.migrated import migrated

    migrated(os.environ["NANOVM_DATA"], STRIPE_API_BASE=os.environ["STRIPE_API_BASE"])
    from pipeline.register import sample_register

    answer(partial(paid, sample_register.new_workspace()))


def paid(workspace: Any, sample: str) -> dict[str, float]:
    """A sample under a number of its own, paid: nanoseconds by part, and of processors."""
    from dashboard.start import sample_files
    from engine.worker.drive import drive_patiently
    from nanovm_core.core.lifecycle import COMPLETED
    from pipeline.create_run import create_run

    document, before = sample_files.sample(sample), spent_s()
    with timings.recording() as made:
        run = create_run(workspace, document, f"{sample}.pdf", started_by="bench")
        drive_patiently(str(run.id))
    cpu_ns = (spent_s() - before) * 1e9
    run.refresh_from_db()
    if run.state != COMPLETED:
        raise RuntimeError(f"The run of {sample} ended in {run.state}.")
    return {"cpu": cpu_ns} | {part: ms * 1e6 for part, ms in made.parts_ms().items()}


if __name__ == "__main__":
    hold()
