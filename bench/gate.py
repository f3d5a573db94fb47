"""A gated call over real HTTP beside a step of a run, and what many agents cost the others.

``python -m bench.gate [ROUNDS]`` starts web server, queue, worker, signer and an upstream on SQLite
in a folder of its own and prints the table. ``python -m bench.gate load [ROUNDS PER_S]`` measures
the start page and the turns of ``bench.queue`` alone, and while AGENTS agents ask for EACH calls at
least, so many a second; 3 where a bar is not reached.
"""

import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from functools import partial
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from pathlib import Path
from statistics import median, quantiles
from threading import Event, Thread
from typing import Any

from bench import queue
from bench.kit import report, rounds
from bench.seven import STEPS
from engine.ops import processes

PROGRAMS = Path(__file__).parents[1] / "gate" / "programs"
ROUNDS, PER_S, AGENTS, EACH, PAGES = 201, 40, 64, 50, 50  # a second: what one address may ask for
STEP, PAGE_MAX = "a step of a run", 1.3
ALLOWED = ("get_iban", "allowed")
CALLS = {
    "a call, allowed": ALLOWED,
    "refused": ("none", "refused"),
    "made": ("get_balance", "done"),
}
_numbers = count()


class Upstream(BaseHTTPRequestHandler):
    """Performs each call at once."""

    def do_POST(self) -> None:
        self.wfile.write(b"HTTP/1.0 200 OK\r\n\r\n{}")


@contextmanager
def served(folder: Path, agents: Sequence[str]) -> Iterator[Callable[[], HTTPConnection]]:
    """Connections to the web server, beside whose workers an upstream runs in this process."""
    gate = shutil.copytree(PROGRAMS / "policies", folder / "gate" / "policies").parent
    text = (PROGRAMS / "bank_assistant.toml").read_text().replace('"bank_assistant"', '"bench"', 1)
    text = text.replace("get_balance = {}", 'get_balance = { at = "bank" }')
    (gate / "bench.toml").write_text(text)
    with ThreadingHTTPServer((processes.LOOPBACK, 0), Upstream) as bank, ExitStack() as stack:
        Thread(target=bank.serve_forever, daemon=True).start()
        url = f"http://{processes.LOOPBACK}:{bank.server_port}/bank"
        (gate / "upstreams.toml").write_text(f"upstreams.bank = {{ kind = 'http', url = '{url}' }}")
        os.environ.update(NANOVM_GATE=str(gate), NANOVM_QUOTA_FACTOR="0")
        stack.enter_context(queue.servers(folder, agents))
        port = processes.free_port()
        stack.enter_context(processes.running(processes.spawn_daphne(os.environ, port)))
        stack.callback(bank.shutdown)
        yield lambda: HTTPConnection(processes.LOOPBACK, port, timeout=60)


def tokens(number: int) -> list[str]:
    """The tokens of so many agents, in two logs."""
    from engine.runtime import chains
    from gate import identity

    logs = [chains.create().id for _ in range(2)]
    return [identity.issue(logs[at % 2], f"a{at}", "bench", by="bench") for at in range(number)]


def took(line: HTTPConnection, token: str = "", call: tuple[str, str] = ALLOWED) -> float:
    """Nanoseconds of a call whose verdict is checked; without a token, of the start page."""
    body = json.dumps({"request": str(next(_numbers)), "tool": call[0], "args": {}})
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    asked: tuple[Any, ...] = ("POST", "/gate/v1/calls", body, headers) if token else ("GET", "/")
    began = time.perf_counter_ns()
    line.request(*asked)
    answer = line.getresponse()
    said = answer.read()
    ns = time.perf_counter_ns() - began
    if answer.status != 200 or (token and json.loads(said)["verdict"] != call[1]):
        raise RuntimeError(f"{call}: {answer.status} {said[:500]!r}")
    return float(ns)


def table(line: HTTPConnection, number: int) -> report.Table:
    """The rows, and the times of each call."""
    from bench.kit import fill
    from engine.runtime import chains

    log, [token] = chains.create(), tokens(1)

    def step() -> float:
        began = time.perf_counter_ns()
        fill.driven(log)
        return (time.perf_counter_ns() - began) / STEPS

    calls = {name: partial(took, line, token, call) for name, call in CALLS.items()}
    batches: dict[str, Callable[[], float]] = {STEP: step, **calls}
    rounds.measure(batches, rounds=queue.WARM_UP)
    found = rounds.measure(batches, rounds=number)
    cuts = {name: quantiles(found.rounds[name], n=100) for name in batches}
    notes = [f"- {k}: p50 {c[49] / 1e6:.1f} ms, p99 {c[98] / 1e6:.1f} ms" for k, c in cuts.items()]
    says = "One agent over one open connection, everything durable and signed: in units of a step."
    rows = [report.row(found, name, STEP) for name in CALLS]
    return report.Table("A gated call", says, rows, notes)


def load(opened: Callable[[], HTTPConnection], number: int, per_s: int) -> list[bool]:
    """The start page and the turns, alone and beside the agents."""
    over, line, made = Event(), opened(), list[float]()

    def ask(token: str) -> None:
        own = opened()
        while not over.wait(AGENTS / per_s):
            made.append(took(own, token))

    alone = median([took(line) for _ in range(PAGES)])
    queue.turns(number)
    sys.stdout.write(f"\nBeside {AGENTS} agents:\n\n")
    with ThreadPoolExecutor(AGENTS) as threads:
        asking = [threads.submit(ask, token) for token in tokens(AGENTS)]
        try:
            beside, reached = median([took(line) for _ in range(PAGES)]), queue.turns(number)
            while len(made) < AGENTS * EACH and not any(each.done() for each in asking):
                time.sleep(0.1)
        finally:
            over.set()
    for each in asking:
        each.result()
    cuts = [each / 1e6 for each in quantiles(made, n=100)]
    sys.stdout.write(f"- {len(made)} calls: p50 {cuts[49]:.1f} ms, p99 {cuts[98]:.1f} ms\n")
    sys.stdout.write(f"- the start page: {beside / 1e6:.1f} ms, {beside / alone:.2f} x alone\n")
    return [*reached, beside <= PAGE_MAX * alone]


def main(arguments: Sequence[str]) -> int:
    """Measure and print; 3 where a bar is not reached."""
    loads, numbers = arguments[:1] == ["load"], [int(each) for each in arguments if each != "load"]
    agents = queue.AGENTS if loads else ("",)
    with tempfile.TemporaryDirectory(prefix=queue.FOLDER) as name, served(Path(name), agents) as at:
        if loads:
            return report.status(load(at, *(numbers or (queue.TURN_ROUNDS, PER_S))))
        sys.stdout.write(report.markdown(table(at(), *(numbers or [ROUNDS]))))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
