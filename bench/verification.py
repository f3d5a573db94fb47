"""The cost of a verification: in full against a naive loop, in memory, and of new entries alone.

``python -m bench.verification [ENVELOPES]`` fills a log and exports it, as the product does; no
database has a part in what is measured.
"""

import shutil
import subprocess
import sys
import tempfile
from os import wait4
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from bench.kit import report
from bench.kit.migrated import migrated
from nanovm_core import verify

ENVELOPES = 10_000
SMALL = 1_000  # verified too, for what a verification holds in memory in any case
NEW = 1_000
ROUNDS_MAX = 5
ROUNDS_ENVELOPES = 500_000  # as many are verified in full, in as many rounds as that makes
RATE_MIN, GROWTH_MB_MAX, SHARE_MAX = 0.5, 20, 0.01
SHARE_FROM = 1_000_000  # a smaller log is verified in full in less time than a process starts

NAIVE = """
import hashlib, json, sys
with open(sys.argv[1], "rb") as file:
    for line in file:
        data = line[:-1]
        hashlib.sha256(data).digest()
        value = json.loads(data)
        json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
"""
# A process's own peak: getrusage never says less than what its parent had.
PEAK = """
import sys
sys.argv = sys.argv[1:]
with open(sys.argv[0], encoding="utf-8") as file:
    code = compile(file.read(), sys.argv[0], "exec")
try:
    exec(code, {"__name__": "__main__"})
finally:
    with open("/proc/self/status") as file:
        print(*(line for line in file if line.startswith("VmHWM")), file=sys.stderr)
"""


class Export(NamedTuple):
    """A file of a log's envelopes, and the key that it is verified with."""

    file: Path
    key: str


class Parts(NamedTuple):
    """Three exports: a short log, all but the newest envelopes of a long one, and those."""

    small: Export
    full: Export
    new: Export


def main() -> int:
    """Make a log, measure, print; 3 where a bar is not reached."""
    size = int(sys.argv[1]) if len(sys.argv) > 1 else ENVELOPES
    with tempfile.TemporaryDirectory(prefix="nanovm-bench-") as name:
        parts = write_log(Path(name), size)
        megabytes = parts.full.file.stat().st_size / 1e6
        print(f"{size:,} envelopes, {megabytes:,.0f} MB, then {NEW:,} more.")
        fulls, naives, news = measured(parts, size)
        growth_mb = (peak_kb(parts.full) - peak_kb(parts.small)) / 1000
    rate, share = median(naives) / median(fulls), median(news) / median(fulls)
    bars = [
        ("rate in full : naive loop", rate, "≥", RATE_MIN),
        ("growth of memory, MB", growth_mb, "≤", GROWTH_MB_MAX),
        (f"{NEW:,} new : in full (a bar from {SHARE_FROM:,} on)", share, "≤", SHARE_MAX),
    ]
    bars = bars if size >= SHARE_FROM else bars[:2]
    for what, times in (("in full", fulls), ("naive loop", naives), (f"{NEW:,} new", news)):
        print(f"- {what}: {median(times):.3f} CPU s; {len(times)} rounds")
    return report.bars(bars)


# --- measuring -------------------------------------------------------------------------------


def measured(parts: Parts, size: int) -> tuple[list[float], list[float], list[float]]:
    """A full verification, the naive loop over the same bytes, and one of the new entries."""
    known = parts.full.file.with_name("known")
    fulls, naives, news = [], [], []
    for _ in range(max(1, min(ROUNDS_MAX, ROUNDS_ENVELOPES // size))):
        naives.append(took("-c", NAIVE, str(parts.full.file)))
        known.unlink(missing_ok=True)
        fulls.append(took(*command(parts.full), "--known", str(known)))
    for number in range(ROUNDS_MAX):
        kept = known.with_name(f"known-{number}")
        shutil.copy(known, kept)
        shutil.copy(f"{known}.tail", f"{kept}.tail")
        news.append(took(*command(parts.new), "--known", str(kept)))
    return fulls, naives, news


def command(export: Export) -> tuple[str, ...]:
    """The verifier on a file, with the log's key."""
    return verify.__file__, str(export.file), "--key", export.key


def took(*arguments: str) -> float:
    """Run a program that must succeed; the seconds of CPU that it took."""
    with subprocess.Popen(  # noqa: S603 - the project's own program
        [sys.executable, "-I", *arguments], stdout=subprocess.PIPE, text=True
    ) as process:
        output = process.stdout.read() if process.stdout else ""
        _, status, usage = wait4(process.pid, 0)
        process.returncode = status
    if status:
        raise RuntimeError(f"{arguments} ended with {status}: {output}")
    return usage.ru_utime + usage.ru_stime


def peak_kb(export: Export) -> int:
    """The most memory that a verification of this file ever held at once."""
    known = ("--known", f"{export.file}.known")
    ran = subprocess.run(  # noqa: S603 - the project's own program
        [sys.executable, "-I", "-c", PEAK, *command(export), *known],
        check=True,
        capture_output=True,
        text=True,
    )
    return int(ran.stderr.split()[1])


# --- the log ---------------------------------------------------------------------------------


def write_log(folder: Path, size: int) -> Parts:
    """Export a log of ``size`` envelopes at least, and then the new ones."""
    migrated(str(folder / "data"))
    from bench.kit import fill
    from engine.evidence import published, signer
    from engine.evidence.bundles import write_export
    from engine.store import logs

    def exported(log: Any, name: str, first: int = 0) -> Export:
        signer.checkpoint(log.pk)
        write_export(log, folder / name, first)
        key = published.verifier(log.origin)
        if key is None:
            raise RuntimeError("The signer published no key.")
        return Export(folder / name, key.vkey)

    small, log = exported(fill.filled(SMALL), "small"), fill.filled(size)
    full, first = exported(log, "full"), logs.size(log.pk)
    while logs.size(log.pk) < first + NEW:
        fill.driven(log)
    return Parts(small, full, exported(log, "new", first))


if __name__ == "__main__":
    sys.exit(main())
