"""A gated call among real processes that are killed: it is made once, or not known to be."""

import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from functools import partial
from multiprocessing import get_context
from shutil import copytree
from typing import Any

import pytest

from engine.evidence.fsck.audit import audit
from engine.models import Envelope, Run
from engine.ops import processes
from engine.runtime import api
from engine.store import leases
from engine.worker.drive import take_turns
from tests.crash.gated import POINTS, sent, sent_at_once
from tests.gate.conftest import DESK, Desk
from tests.gate.conftest import desk as desk
from tests.gate.test_calls import TIMEOUT_MS
from tests.kit.clock import Leap
from tests.kit.house import ROOT, bodies

SECONDS_MAX, POLL_SECONDS, COPIES = 120, 0.05, 50
CALLS, TAG = 60, "00000007"
ARGS = {"send": {"to": "ada", "cents": 1}, "mail": {"to": "ada", "body": "Hi"}}
ARGS["held"] = {"to": "all", "body": "Hi"}
# Who is killed at a point of a call, its verdict then, and how often the upstream ran it.
SENDS = {
    **dict.fromkeys(("judged", "unsent", "unanswered", "waits"), ("web", "done", 1)),
    "claimed": ("payer", "unknown", 0),
    **dict.fromkeys(("arrived", "booked", "answered"), ("payer", "unknown", 1)),
    "stored": ("payer", "done", 1),
    "arrived there": ("bank", "unknown", 0),
    "booked there": ("bank", "unknown", 1),
}
MAILER = """
import os, sys
from nanovm_client import Gate, request_id
request_id.set("mailer")

@Gate(*sys.argv[1:]).guarded("mail", on_error=lambda error: error.code)
def mail(to, body):
    os.write(1, b"mailed")
    os.kill(os.getpid(), 9)

print(mail("ada", "Hi"), end="")
"""


class Stage:
    """The desk with a web server, a payer and an upstream, each in a process of its own."""

    def __init__(self, desk: Desk, broker: str) -> None:
        self.desk, self.folder = desk, desk.house.folder
        self.gate = copytree(DESK, self.folder / "gate")
        self.ports = {each: processes.free_port() for each in ("web", "bank")}
        self.env = {"NANOVM_DATA": str(self.folder), "NANOVM_GATE": str(self.gate)}
        self.env["REDIS_URL"] = broker
        self.children: dict[str, processes.Child] = {}
        self.repeats(False)

    def repeats(self, may: bool) -> None:
        """Say in the list of upstreams whether ``send`` may be called again."""
        url = f"http://127.0.0.1:{self.ports['bank']}/plain"
        entry = f"[upstreams.bank]\nkind = 'http'\nurl = '{url}'\nrepeats = {['send'] * may}"
        (self.gate / "upstreams.toml").write_text(entry)

    def spawn(self, name: str) -> None:
        """Start a process, or start it again as the supervisor does."""
        program = ["tests.crash.gated", str(self.folder / f"{name} dies")]
        if name == "payer":
            leases.free_of(TAG)
            env = {**self.env, "NANOVM_PROCESS": TAG}
            child = processes.spawn_celery_worker(env, (*program, "celery"))
        else:
            port = str(self.ports[name])
            program += ["config.web", "--port", port, "--verbosity", "0", "config.asgi:application"]
            program = program if name == "web" else ["tests.gate.upstream", port, str(self.folder)]
            command = [sys.executable, "-m", *program]
            child = processes.spawn(name, name, command, self.folder, env=self.env)
            child.answers = partial(processes.serves, int(port))
        self.children[name] = processes.ready(child)

    def send(self, path: str, **body: Any) -> tuple[int, Any]:
        """What the gate answers; (0, {}) where it died."""
        return sent(self.ports["web"], self.desk.token, f"/gate/v1/{path}", body)

    def call(self, request: str, args: str = "send", wait: int = 0) -> tuple[int, Any]:
        """What a call is answered with."""
        tool = "send" if args == "send" else "mail"
        return self.send(f"calls?wait={wait}", request=request, tool=tool, args=ARGS[args])

    def arm(self, point: str, victim: str = "web") -> None:
        """Have a process killed at a point: by itself, or by the upstream."""
        pid, by_bank = self.children[victim].popen.pid, point.partition(" ")[0]
        name, text = (f"{victim} dies", point) if point in POINTS else (by_bank, str(pid))
        (self.folder / name).write_text(text)

    def revive(self, victim: str = "web") -> None:
        """Wait for its end, and start it again."""
        assert self.children[victim].popen.wait(SECONDS_MAX) == -signal.SIGKILL
        self.spawn(victim)

    def verdict(self, request: str) -> str:
        """What became of a call, asked for until it is known, the same by POST and GET."""
        until = time.monotonic() + SECONDS_MAX
        while (found := self.call(request)) != self.send(f"calls/{request}") or found[0] != 200:
            assert time.monotonic() < until, found
            time.sleep(POLL_SECONDS)
        return str(found[1]["verdict"])

    def times(self, request: str) -> int:
        """How often the upstream ran a call, whose intents have one key."""
        sealed = bodies(self.desk.run(request))
        [key] = {each["idempotency_key"] for each in sealed if each.get("warrant")}
        ran = self.folder / "ran"
        return ran.read_text().count(key) if ran.exists() else 0

    def survives(self, point: str, repeats: bool = False, lists: bool = True) -> None:
        """Kill at a point of a new call, and ask for it again; ``lists``: its upstream is known."""
        victim, verdict, times = SENDS[point]
        again = repeats and lists and verdict == "unknown"
        request = f"{point} {repeats} {lists}".replace(" ", "-")
        self.repeats(repeats)
        self.arm(point, victim)
        self.call(request, wait=25 if victim == "web" else 0)
        self.children[victim].popen.wait(SECONDS_MAX)
        if not lists:
            (self.gate / "upstreams.toml").write_text("[[[")
        self.revive(victim)
        assert self.verdict(request) == ("done" if again else verdict), request
        assert self.times(request) == times + again, request
        if verdict == "unknown" and not again:  # until a person lets it be made again
            self.repeats(repeats)
            api.approve(str(self.desk.run(request).id), "visitor")
            assert (self.verdict(request), self.times(request)) == ("done", times + 1), request

    def copies(self, door: str) -> None:
        """Two processes ask for one call, each COPIES times at once: all hear of one run."""
        call = {"tool": "mail", "request": door, "args": ARGS["mail"]}
        meta = {"name": "mail", "arguments": ARGS["mail"], "_meta": {"nanovm/request": door}}
        mcp = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": meta}
        path, body = ("/gate/mcp", mcp) if door == "mcp" else ("/gate/v1/calls", call)
        asked = (COPIES, self.ports["web"], self.desk.token, path, body)
        with ProcessPoolExecutor(2, get_context("spawn")) as clients:
            both = [clients.submit(sent_at_once, *asked) for _ in range(2)]
            found = [each for client in both for each in client.result()]
        told = [each for each in found if "GAT-004" not in each]
        assert all(self.desk.run(door).code in each for each in told), told
        warrants = [each for each in told if '"warrant": ' in each]
        assert (len(found), len(warrants)) == (2 * COPIES, 1)
        assert told == warrants


@pytest.fixture
def stage(desk: Desk) -> Iterator[Stage]:
    """They run, and in the end the log has each call once, undamaged."""
    with processes.redis_server(desk.house.folder) as broker:
        found = Stage(desk, broker)
        try:
            for name in ("bank", "web", "payer"):
                found.spawn(name)
            yield found
        finally:
            processes.stop([*found.children.values()])
    sealed = [body for run in Run.objects.all() for body in bodies(run)]
    keys = {(body["run"], body["idempotency_key"]) for body in sealed if body.get("warrant")}
    assert {*Counter(run for run, _ in keys).values()} == {1}
    assert audit().damage == ()


def test_a_call_is_made_once_whoever_dies(stage: Stage) -> None:
    stage.survives("booked")  # at the other points in the soak
    command = [sys.executable, "-c", MAILER, f"http://127.0.0.1:{stage.ports['web']}"]
    for said in ("mailed", "GAT-004"):  # its warrant is out, and nobody knows what it did
        ran = subprocess.run([*command, stage.desk.token], cwd=ROOT, capture_output=True, text=True)
        assert ran.stdout == said, ran.stderr


@pytest.mark.soak
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_no_point_loses_or_doubles_a_call(stage: Stage, seed: int) -> None:
    points = [(point, repeats, True) for point in SENDS for repeats in (False, True)]
    points += [(point, True, False) for point in SENDS if SENDS[point][1] == "unknown"]
    random.Random(seed).shuffle(points)  # noqa: S311 - of a test
    for each in points:
        stage.survives(*each)


@pytest.mark.soak
def test_a_warrant_is_handed_out_at_most_once(stage: Stage, leap: Leap) -> None:
    for door in ("http", "mcp"):
        stage.copies(door)
    stage.call("told", "mail")
    stage.arm("reported")
    assert stage.send("calls/told/report", outcome="done") == (0, {})
    stage.revive()
    assert stage.send("calls/told/report", outcome="done")[1]["error"]["code"] == "GAT-007"
    assert stage.call("told", "mail")[1]["verdict"] == "done"
    assert stage.call("held", "held")[1]["verdict"] == "held"
    api.approve(str(stage.desk.run("held").id), "visitor")
    for request, args, point in (("lost", "mail", "unanswered"), ("held", "held", "handed out")):
        stage.arm(point)
        assert stage.call(request, args) == (0, {})
        stage.revive()
        assert stage.call(request, args)[1]["error"]["code"] == "GAT-004"
    leap(TIMEOUT_MS + 1)
    take_turns()
    found = [stage.send(f"calls/{each}")[1]["verdict"] for each in ("http", "mcp", "lost", "held")]
    assert found == ["unknown"] * 4


@pytest.mark.soak
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_kills_at_any_moment_lose_no_call(stage: Stage, seed: int) -> None:
    dice, names = random.Random(seed), [f"r{each}" for each in range(CALLS)]  # noqa: S311
    stage.repeats(True)
    with ThreadPoolExecutor(8) as threads:
        asked = [threads.submit(stage.verdict, each) for each in names]
        while not all(each.done() for each in asked):
            wanted = Envelope.objects.count() + dice.randint(5, 40)
            while Envelope.objects.count() < wanted and not all(each.done() for each in asked):
                time.sleep(POLL_SECONDS)
            victim = dice.choice(("web", "payer", "bank"))
            stage.children[victim].popen.kill()
            stage.revive(victim)
    assert [each.result() for each in asked] == ["done"] * CALLS
    assert min(map(stage.times, names)) > 0
