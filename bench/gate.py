"""A gated call over real HTTP beside a step of a run.

``python -m bench.gate [ROUNDS]`` starts web server, queue, worker, signer and an upstream on SQLite
in a folder of its own and prints the table. ``python -m bench.gate agents`` prints how much slower
a page and a lone run are while AGENTS agents make EACH calls, one after the other; 3 where a bar is
not reached.
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
from threading import Thread

from bench import queue
from bench.kit import report, rounds
from bench.seven import STEPS
from engine.ops import processes

PROGRAMS = Path(__file__).parents[1] / "gate" / "programs"
ROUNDS, STEP = 201, "a step of a run"
CALLS = {
    "a call, allowed": ("get_iban", "allowed"),
    "refused": ("none", "refused"),
    "made": ("get_balance", "done"),
}
AGENTS, EACH, ALONE = 62, 50, 60
PAGE, PAGE_MAX, LATE_MAX = "/runs/", 1.3, 3.0
_numbers = count()


class Upstream(BaseHTTPRequestHandler):
    """Performs each call at once."""

    def do_POST(self) -> None:
        self.wfile.write(b"HTTP/1.0 200 OK\r\n\r\n{}")


@contextmanager
def served(folder: Path) -> Iterator[Callable[[], HTTPConnection]]:
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
        stack.enter_context(queue.servers(folder))
        port = processes.free_port()
        stack.enter_context(processes.running(processes.spawn_daphne(os.environ, port)))
        stack.callback(bank.shutdown)
        yield lambda: HTTPConnection(processes.LOOPBACK, port, timeout=60)


def took(line: HTTPConnection, token: str, call: tuple[str, str]) -> float:
    """Nanoseconds of a call whose verdict is checked."""
    body = json.dumps({"request": str(next(_numbers)), "tool": call[0], "args": {}})
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    began = time.perf_counter_ns()
    line.request("POST", "/gate/v1/calls", body, headers)
    answer = line.getresponse()
    said = answer.read()
    ns = time.perf_counter_ns() - began
    if answer.status != 200 or json.loads(said)["verdict"] != call[1]:
        raise RuntimeError(f"{call}: {answer.status} {said[:500]!r}")
    return float(ns)


def table(line: HTTPConnection, number: int) -> report.Table:
    """The rows, and the times of each call."""
    from bench.kit import fill
    from engine.runtime import chains
    from gate import identity

    log = chains.create()
    token = identity.issue(log.id, "a0", "bench", by="bench")

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


def beside(opened: Callable[[], HTTPConnection]) -> int:
    """Print what agents cost a page and a lone run; 3 where a bar is not reached."""
    from engine.runtime import chains
    from gate import identity

    log, cookie = chains.create(), page(opened(), "")[1]

    def calls(token: str) -> None:
        line = opened()
        for _ in range(EACH):
            took(line, token, CALLS["a call, allowed"])

    def seen() -> tuple[float, int]:
        run = queue.ready_runs(1, shared=True)
        return page(opened(), cookie)[0], -queue.started(run) + queue.ended(run)[0]

    tokens = [identity.issue(log.id, f"a{n}", "bench", by="bench") for n in range(AGENTS)]
    alone, under = [seen() for _ in range(ALONE)], []
    with ThreadPoolExecutor(AGENTS) as threads:
        made = [threads.submit(calls, token) for token in tokens]
        while not all(each.done() for each in made):
            under.append(seen())
        for each in made:
            each.result()
    late = [median(then[at] for then in under) / median(now[at] for now in alone) for at in (0, 1)]
    names = f"a page beside {AGENTS} agents, in units of it alone", "a lone run, likewise"
    return report.bars(zip(names, late, "≤≤", (PAGE_MAX, LATE_MAX), strict=True))


def page(line: HTTPConnection, cookie: str) -> tuple[float, str]:
    """Nanoseconds of a page, and the visitor's cookie."""
    began = time.perf_counter_ns()
    line.request("GET", PAGE, headers={"Cookie": cookie})
    answer = line.getresponse()
    if answer.status != 200 or not answer.read():
        raise RuntimeError(f"{PAGE}: {answer.status}")
    return float(time.perf_counter_ns() - began), answer.headers.get("Set-Cookie", "").split(";")[0]


def main(arguments: Sequence[str]) -> int:
    """Measure and print."""
    with tempfile.TemporaryDirectory(prefix=queue.FOLDER) as name, served(Path(name)) as at:
        if arguments[:1] == ["agents"]:
            return beside(at)
        return report.shown(table(at(), int(arguments[0]) if arguments else ROUNDS))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
