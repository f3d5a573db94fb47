"""The cost of a verification: in full against a naive loop, in memory, and of new entries alone.

``python -m bench.verification [ENVELOPES]``. The log is a run of the bench's program as the
kernel seals it, again and again under other ids; no database has a part in it.
"""

import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from itertools import count, islice
from os import wait4
from pathlib import Path
from typing import Any, NamedTuple

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from bench.kit import report, subject
from nanovm_core import verify
from nanovm_core.core.canonical import Json, decode, encode
from nanovm_core.core.envelope import VERSION, ZERO, canonical_hash
from nanovm_core.core.events import RunStarted
from nanovm_core.proof import merkle, notes
from nanovm_core.vm import Done, ExecutionVM, Said

ORIGIN = "bench.example/log"
KEY = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))  # a bench's key guards nothing
ENVELOPES = 10_000
SMALL = 1_000  # verified too, for what a verification holds in memory in any case
NEW = 1_000
OPEN_RUNS = 50  # their envelopes alternate
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


class Took(NamedTuple):
    """What a process took: seconds of CPU, and seconds by the clock."""

    cpu_s: float
    wall_s: float


class Parts(NamedTuple):
    """Three exports of one log: its beginning, all but the newest envelopes, and those."""

    small: Path
    full: Path
    new: Path


def main() -> int:
    """Make a log, measure, print; 3 where a bar is not reached."""
    size = int(sys.argv[1]) if len(sys.argv) > 1 else ENVELOPES
    with tempfile.TemporaryDirectory(prefix="nanovm-bench-") as name:
        parts = write_log(Path(name), size)
        megabytes = parts.full.stat().st_size / 1e6
        print(f"{size:,} envelopes, {megabytes:,.0f} MB, then {NEW:,} more.")
        fulls, naives, news = measured(parts, size)
        growth_mb = (peak_kb(parts.full) - peak_kb(parts.small)) / 1000
        tail = parts.full.with_name("known.tail").stat().st_size / 1e6
        print(f"NOTE.tail has {tail:.1f} MB.\n")
    print("| | CPU s | clock s | rounds |\n| --- | --- | --- | --- |")
    for what, times in (("in full", fulls), ("naive loop", naives), (f"{NEW:,} new", news)):
        print(f"| {what} | {cpu_s(times):.3f} | {wall_s(times):.3f} | {len(times)} |")
    print("\n| | | bar | |\n| --- | --- | --- | --- |")
    rate, share = cpu_s(naives) / cpu_s(fulls), cpu_s(news) / cpu_s(fulls)
    reached = [
        bar("rate in full : naive loop", rate, f"≥ {RATE_MIN}", rate >= RATE_MIN),
        bar("growth of memory, MB", growth_mb, f"≤ {GROWTH_MB_MAX}", growth_mb <= GROWTH_MB_MAX),
        bar(
            f"{NEW:,} new : in full",
            share,
            f"≤ {SHARE_MAX}, of {SHARE_FROM:,} or more",
            share <= SHARE_MAX if size >= SHARE_FROM else None,
        ),
    ]
    return report.status(each is not False for each in reached)


def bar(name: str, value: float, least: str, holds: bool | None) -> bool | None:
    """Print a bar; None where it is for other logs."""
    verdict = "" if holds is None else "PASS" if holds else "**short of it**"
    print(f"| {name} | {value:.4f} | {least} | {verdict} |")
    return holds


def cpu_s(times: Sequence[Took]) -> float:
    """The median of the CPU times."""
    return statistics.median(each.cpu_s for each in times)


def wall_s(times: Sequence[Took]) -> float:
    """The median of the times by the clock."""
    return statistics.median(each.wall_s for each in times)


# --- measuring -------------------------------------------------------------------------------


def measured(parts: Parts, size: int) -> tuple[list[Took], list[Took], list[Took]]:
    """A full verification, the naive loop over the same bytes, and one of the new entries."""
    known = parts.full.with_name("known")
    fulls, naives, news = [], [], []
    for _ in range(max(1, min(ROUNDS_MAX, ROUNDS_ENVELOPES // size))):
        naives.append(took("-c", NAIVE, str(parts.full)))
        known.unlink(missing_ok=True)
        fulls.append(took(*command(parts.full), "--known", str(known)))
    for number in range(ROUNDS_MAX):
        kept = known.with_name(f"known-{number}")
        shutil.copy(known, kept)
        shutil.copy(f"{known}.tail", f"{kept}.tail")
        news.append(took(*command(parts.new), "--known", str(kept)))
    return fulls, naives, news


def command(file: Path) -> tuple[str, ...]:
    """The verifier on a file, with the log's key."""
    return verify.__file__, str(file), "--key", notes.verifier(ORIGIN, KEY).vkey


def took(*arguments: str) -> Took:
    """Run a program that must succeed, and say what it took."""
    began = time.monotonic()
    with subprocess.Popen(  # noqa: S603 - the project's own program
        [sys.executable, "-I", *arguments], stdout=subprocess.PIPE, text=True
    ) as process:
        output = process.stdout.read() if process.stdout else ""
        _, status, usage = wait4(process.pid, 0)
        process.returncode = status
    if status:
        raise RuntimeError(f"{arguments} ended with {status}: {output}")
    return Took(usage.ru_utime + usage.ru_stime, time.monotonic() - began)


def peak_kb(file: Path) -> int:
    """The most memory that a verification of this file ever held at once."""
    known = ("--known", f"{file}.known")
    ran = subprocess.run(  # noqa: S603 - the project's own program
        [sys.executable, "-I", "-c", PEAK, *command(file), *known],
        check=True,
        capture_output=True,
        text=True,
    )
    return int(ran.stderr.split()[1])


# --- the log ---------------------------------------------------------------------------------


class Grown:
    """A log as far as it was written: its envelopes to come, and the edge of its tree."""

    def __init__(self) -> None:
        self.envelopes = envelopes()
        self.edge: tuple[bytes, ...] = ()
        self.size = 0

    def export(self, file: Path, count: int) -> Path:
        """Write the next envelopes and a signed trailer, as the product's exports have them."""
        first, leaf = self.size, ZERO
        with file.open("wb") as opened:
            for data in islice(self.envelopes, count):
                leaf = canonical_hash(data)
                self.edge, _ = merkle.append(self.edge, self.size, [bytes.fromhex(leaf)])
                self.size += 1
                opened.write(data + b"\n")
            head = notes.Head(origin=ORIGIN, size=self.size, root=merkle.root(self.edge))
            note = notes.sign(head.text, ORIGIN, [KEY]).decode()
            said = {"v": "nanovm-export/1", "count": count, "head": leaf, "checkpoint": note}
            opened.write(encode(said | {"first": first} if first else said) + b"\n")
        return file


def write_log(folder: Path, size: int) -> Parts:
    """Write a log of ``size`` envelopes, and then the new ones."""
    log = Grown()
    return Parts(
        small=Grown().export(folder / "small", SMALL),
        full=log.export(folder / "full", size),
        new=log.export(folder / "new", NEW),
    )


def envelopes() -> Iterator[bytes]:
    """A log without end: its genesis, then so many runs at a time, an envelope of each in turn."""
    genesis: dict[str, Json] = {"kind": "genesis", "actor": "runtime", "at_ms": subject.START_MS}
    yield _placed(genesis, "log", 0, 0, ZERO)
    template, seq = [decode(data) for data in a_run()], 1
    for batch in count():
        runs = [f"01990000-0000-7000-8000-{batch * OPEN_RUNS + i:012x}" for i in range(OPEN_RUNS)]
        prevs = dict.fromkeys(runs, ZERO)
        for n, body in enumerate(template):
            for run in runs:
                data = _placed(_own(body, run), run, n, seq, prevs[run])
                prevs[run], seq = canonical_hash(data), seq + 1
                yield data


def _own(body: Any, run: str) -> dict[str, Any]:
    """The body with hashes that are this run's alone."""
    names = {"snapshot", "idempotency_key"} & body.keys()
    own: dict[str, Any] = {
        name: sha256(f"{run}{body[name]}".encode()).hexdigest() for name in names
    }
    return {**body, **own}


def _placed(body: Mapping[str, Json], run: str, n: int, seq: int, prev: str) -> bytes:
    place = {"v": VERSION, "log": ORIGIN, "run": run, "n": n, "seq": seq, "prev": prev}
    return encode({**body, **place})


def a_run() -> list[bytes]:
    """The envelopes of one run of the bench's program, which pays."""
    clock = count(subject.START_MS, 10)
    proposal = json.dumps({"tool": "bank.pay", "args": dict(subject.ARGS)}).encode()
    vm = ExecutionVM(
        subject.program(),
        run=subject.RUN,
        slots={"document": subject.DOCUMENT.ref},
        secrets=[subject.DOCUMENT],
        tools={
            "document.receive": lambda _args, _key: Done(out={"size_bytes": 1000}),
            "invoice.extract": lambda _args, _key: Done(out=subject.FACTS),
            "bank.pay": lambda _args, _key: Done(out={"payment": "pay_1"}),
        },
        model=lambda _view: Said(raw=proposal, tokens=len(proposal)),
        now_ms=lambda: next(clock),
    )
    vm.feed(RunStarted(), actor="visitor")
    vm.run()
    return [stored.data for stored in vm.envelopes]


if __name__ == "__main__":
    sys.exit(main())
