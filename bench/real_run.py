"""Where the time of a real invoice goes, from its submission until its run stands.

``python -m bench.real_run [ROUNDS]`` runs sample invoices through the whole pipeline in one
warm process, on SQLite in a folder of its own (DATABASE_URL is heeded) with the local counterpart,
in one workspace that has paid their suppliers before. It prints medians: milliseconds of each part
as ``run_invoice --timings`` has them, processor time with that of the children (the counterpart
and the processes that read), and, where ``strace`` is installed, the syncs of a run.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

from bench.kit.processor import spent as spent_s
from engine.ops import processes, timings

ROUNDS = 11
WARM_UP = 1  # of each: connections, compiled programs, imports
SAMPLES = {"without XML": "plain", "with XML": "en16931"}
CPU = "processor"
SYNCS = ("fdatasync", "fsync")
ROWS = (*timings.PARTS, timings.REST, timings.WHOLE, CPU)
COUNTED = 3  # runs more than in the other count: what differs is theirs
NOT_COUNTED = "Syncs were not counted: strace is not installed."
ROOT = processes.ROOT


@contextmanager
def prepared(folder: Path) -> Iterator[None]:
    """A migrated database, a counterpart where none is named, and Django set up on them."""
    with tempfile.TemporaryDirectory(prefix="nanovm-bench-stripe-") as beside:
        os.environ["NANOVM_DATA"] = str(folder)
        os.environ["DJANGO_SETTINGS_MODULE"] = "config.settings"
        os.environ.pop("REDIS_URL", None)
        if "STRIPE_API_BASE" in os.environ:
            _set_up()
            yield
            return
        from pipeline.ops.stripe_counterpart import stripe_counterpart

        with stripe_counterpart(Path(beside)) as url:
            os.environ["STRIPE_API_BASE"] = url
            try:
                _set_up()
                yield
            finally:
                del os.environ["STRIPE_API_BASE"]


def _set_up() -> None:
    import django

    django.setup()
    from engine.management import schema

    schema.migrate()


def paid(workspace: Any, sample: str) -> dict[str, float]:
    """A sample under a number of its own, paid: milliseconds by part, and of processors."""
    from dashboard.start import sample_files
    from engine.worker.drive import drive_patiently
    from nanovm_core.core.lifecycle import COMPLETED
    from pipeline.create_run import create_run

    document = sample_files.sample(sample)
    before = spent_s()
    with timings.recording() as made:
        run = create_run(workspace, document, f"{sample}.pdf", started_by="bench")
        drive_patiently(str(run.id))
    spent = {**made.parts_ms(), CPU: (spent_s() - before) * 1000}
    run.refresh_from_db()
    if run.state != COMPLETED:
        raise RuntimeError(f"The run of {sample} ended in {run.state}.")
    return spent


def measured(rounds: int) -> dict[str, dict[str, float]]:
    """The medians of each sample, which take turns."""
    from pipeline.register import sample_register

    workspace = sample_register.new_workspace()
    found: dict[str, list[dict[str, float]]] = {name: [] for name in SAMPLES}
    for number in range(WARM_UP + rounds):
        for name, sample in SAMPLES.items():
            spent = paid(workspace, sample)
            if number >= WARM_UP:
                found[name].append(spent)
    return {
        name: {row: median(each[row] for each in spent) for row in ROWS}
        for name, spent in found.items()
    }


def syncs(sample: str) -> dict[str, float]:
    """How often a run brings data to the disk, by call; empty without strace."""
    if shutil.which("strace") is None:
        return {}
    few, many = (_traced(sample, count) for count in (WARM_UP, WARM_UP + COUNTED))
    return {call: (many[call] - few[call]) / COUNTED for call in SYNCS}


def _traced(sample: str, runs: int) -> Counter[str]:
    """The calls of a process that pays so many invoices; the counterpart's are not among them."""
    with tempfile.TemporaryDirectory(prefix="nanovm-bench-") as folder:
        trace = Path(folder) / "syncs"
        strace = ["strace", "-f", "-qq", "-e", f"trace={','.join(SYNCS)}", "-o", str(trace)]
        own = [
            sys.executable,
            "-m",
            "bench.real_run",
            "--only",
            sample,
            str(runs),
            f"{folder}/data",
        ]
        subprocess.run([*strace, *own], cwd=ROOT, check=True)  # noqa: S603 - this module
        return Counter(re.findall(r"\b(fsync|fdatasync)\(", trace.read_text()))


def markdown(
    found: Mapping[str, Mapping[str, float]], counted: Mapping[str, Mapping[str, float]]
) -> str:
    """The table, its syncs in the last row."""
    lines = [f"| milliseconds | {' | '.join(found)} |", "| --- |" + " ---: |" * len(found)]
    for row in ROWS:
        lines.append(
            f"| {row} | " + " | ".join(f"{each[row]:,.1f}" for each in found.values()) + " |"
        )
    if not all(counted.values()):
        return "\n".join([*lines, "", NOT_COUNTED, ""])
    for call in SYNCS:
        lines.append(
            f"| {call} (calls) | " + " | ".join(f"{n[call]:g}" for n in counted.values()) + " |"
        )
    return "\n".join([*lines, ""])


def _pay(sample: str, count: str, folder: str) -> None:
    """Pay one sample so often, and measure nothing."""
    Path(folder).mkdir()
    with prepared(Path(folder)):
        from pipeline.register import sample_register

        workspace = sample_register.new_workspace()
        for _ in range(int(count)):
            paid(workspace, sample)


def main(arguments: Sequence[str]) -> int:
    """Measure and print; ``--only SAMPLE COUNT FOLDER`` just pays."""
    if arguments[:1] == ["--only"]:
        _pay(*arguments[1:])
        return 0
    rounds = int(arguments[0]) if arguments else ROUNDS
    with tempfile.TemporaryDirectory(prefix="nanovm-bench-") as folder, prepared(Path(folder)):
        found = measured(rounds)
        counted = {name: syncs(sample) for name, sample in SAMPLES.items()}
    sys.stdout.write(f"Medians of {rounds} invoices each.\n\n{markdown(found, counted)}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
