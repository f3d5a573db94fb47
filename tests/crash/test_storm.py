"""Reader and payer, killed at random; messages late and twice; in the end all is as it must be."""

import random
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from celery import Celery
from django.conf import settings
from django.db import connection, connections

from engine.clock import now_ms
from engine.evidence.signer import Rounds
from engine.models import AdapterCall, Envelope, Run, Workspace
from engine.ops import processes
from engine.ops.processes import redis_server, spawn_celery_worker, stop
from engine.runtime import api, queue
from engine.store import leases
from engine.worker import tasks
from nanovm_core.core import lifecycle as life
from nanovm_core.core.envelope import decode_snapshot
from pipeline.ops.stripe_counterpart import stripe_counterpart
from pipeline.steps.charge import gateway
from sabotage.kit.evidence import observe
from samples import fresh
from tests.crash.sim import CARD_DECLINED, Sim, World
from tests.crash.verdict import faults
from tests.house.demo import wait_for_none
from tests.kit.house import accepted_run, invoice, known_workspace

WORKSPACES = 4
AGENTS = ("reader", "payer")
DELAY_MS_MAX = 2_000
POLL_SECONDS = 0.05
SECONDS_MAX = 240  # and one for each run: enough for leases to run out several times
COPIES = 500
GROWN_MAX = 10  # envelopes more than a run has that nobody attacked
ENDED = (*life.TERMINAL, life.APPROVAL)


class Unreliable:
    """A way to the queue on which messages are late, and some come twice."""

    def __init__(self, broker: str, dice: random.Random) -> None:
        self.app, self._dice = Celery("storm", broker=broker), dice

    def send_task(self, name: str, *, args: Sequence[str], queue: str, **_: object) -> None:
        """Send it once or twice, some time later."""
        for _times in range(self._dice.choice((1, 1, 2))):
            late = self._dice.uniform(0, DELAY_MS_MAX / 1000)
            self.app.send_task(name, args=args, countdown=late, retry=False, queue=queue)


@dataclass(slots=True, kw_only=True)
class Storm:
    """The data folder, the processes of the agents, and what decides whom it hits."""

    folder: Path
    env: dict[str, str]
    dice: random.Random
    workers: dict[str, processes.Child]
    tags: dict[str, str]
    killed: Counter[str]

    def begin(self) -> None:
        """Start them; what was queued before keeps them busy when the first is hit."""
        self.workers |= {agent: self._spawned(agent) for agent in AGENTS}

    def _spawned(self, agent: str) -> processes.Child:
        self.tags[agent] = tag = f"{self.dice.getrandbits(32):08x}"
        return spawn_celery_worker({**self.env, "NANOVM_AGENT": agent, "NANOVM_PROCESS": tag})

    def kill(self) -> bool:
        """Kill the process that was hit less often, once some more envelopes are there.

        A message comes again, for any run.

        Whether a run was under way then.
        """
        wanted = Envelope.objects.count() + self.dice.randint(3, 25)
        _until(lambda: Envelope.objects.count() >= wanted or not left())
        fewest = min(self.killed[agent] for agent in AGENTS)
        agent = self.dice.choice([each for each in AGENTS if self.killed[each] == fewest])
        self.killed[agent] += 1
        self.workers[agent].popen.kill()
        self.workers[agent].popen.wait()
        hit = bool(left())
        if self.dice.random() < 0.5:  # as the supervisor does; else its leases have to run out
            leases.free_of(self.tags[agent])
        self.workers[agent] = self._spawned(agent)
        if self.dice.random() < 0.5:  # else it may be hit while it starts
            processes.ready(self.workers[agent])
        queue.wake(
            str(self.dice.choice([*Run.objects.order_by("id").values_list("id", flat=True)]))
        )
        return hit

    def calm(self) -> None:
        """Wait until no run is under way; approve what is held, until the day's sum holds none."""
        _until(lambda: not left())
        while held := [*Run.objects.filter(state=life.APPROVAL)]:
            for run in held:
                api.approve(str(run.id), "operator")
            _until(lambda: not left())
        stop([*self.workers.values()])
        Rounds().round(now_ms())

    def world(self) -> World:
        """What the real far side holds."""
        listed = gateway.configured().v1.payment_intents.list({"limit": 100})
        intents: list[dict[str, Any]] = [each.to_dict() for each in listed.auto_paging_iter()]
        return World(now_ms=now_ms(), dice=self.dice, intents=intents)


def left() -> list[UUID]:
    """The runs that have neither ended nor wait for a person."""
    return [*Run.objects.exclude(state__in=ENDED).values_list("id", flat=True)]


@contextmanager
def storm(data: Path, seed: int) -> Iterator[Storm]:
    """A queue, a counterpart and workers on a data folder, for the length of the block."""
    dice = random.Random(seed)  # noqa: S311 - of a test
    before = connection.settings_dict["NAME"]
    with ExitStack() as stack:
        broker = stack.enter_context(redis_server(data))
        far_side = stack.enter_context(stripe_counterpart(data))
        patch = stack.enter_context(pytest.MonkeyPatch.context())
        way = Unreliable(broker, dice)
        stack.callback(way.app.close)
        patch.setattr(settings, "NANOVM_DATA", data)
        patch.setattr(settings, "REDIS_URL", broker)
        patch.setitem(settings.STRIPE, "api_base", far_side)
        patch.setattr(queue, "current_app", way)
        connections.close_all()
        connection.settings_dict["NAME"] = str(data / "app.sqlite3")
        env = {"NANOVM_DATA": str(data), "REDIS_URL": broker, "STRIPE_API_BASE": far_side}
        blown = Storm(folder=data, env=env, dice=dice, workers={}, tags={}, killed=Counter())
        try:
            yield blown
        finally:
            stop([*blown.workers.values()])
            connections.close_all()
            connection.settings_dict["NAME"] = before


def _new(log: Workspace, number: int, pace_ms: int = 0) -> Run:
    """Most are paid; one in ten is held, one in ten has a card that is declined."""
    own = sha256(str(number).encode()).hexdigest()  # of no run besides it
    over = fresh.drawn("over_limit", str(int(own, 16))[:10])
    document = over if number % 10 == 3 else invoice(number=f"S-{own[:12]}")
    card = CARD_DECLINED if number % 10 == 7 else "pm_card_visa"
    return accepted_run(log, document, "invoice.pdf", payment_method=card, pace_ms=pace_ms)


def _until(reached: Callable[[], bool]) -> None:
    seconds_max = SECONDS_MAX + Run.objects.count()
    deadline = time.monotonic() + seconds_max
    while not reached():
        if time.monotonic() > deadline:
            states = [*Run.objects.exclude(state__in=ENDED).values_list("code", "state", "step")]
            raise AssertionError(f"after {seconds_max} s: {states}, stranded {tasks.stranded()}")
        time.sleep(POLL_SECONDS)


def weathered(data: Path, runs: int, kills: int, seed: int) -> int:
    """How many effects had to be begun again."""
    with storm(data, seed) as blown:
        logs = [known_workspace() for _ in range(WORKSPACES)]
        for number in range(runs):
            api.start(str(_new(logs[number % WORKSPACES], number).id), "visitor")
        blown.begin()
        under_way = sum(blown.kill() for _ in range(kills))
        blown.calm()
        assert faults(Sim(folder=data, world=blown.world())) == []
        ended = Counter(Run.objects.values_list("state", flat=True))
        failed = Counter(
            decode_snapshot(bytes(each)).reason
            for each in Run.objects.filter(state=life.FAILED).values_list("snapshot", flat=True)
        )
        paid = len(blown.world().succeeded())
        keys = AdapterCall.objects.values_list("run_id", "key")
        again = len(keys) - len({*keys})
    assert wait_for_none(data) == []
    print(f"storm: {runs} runs, {under_way} kills under way, {again} effects begun again")
    assert ended == {life.COMPLETED: paid, life.FAILED: runs - paid}
    assert paid == runs - runs // 10, failed
    assert under_way >= kills // 2, "it was over before it began"
    return again


@pytest.mark.soak
@pytest.mark.parametrize(("runs", "kills", "seed"), [(100, 20, 1), (100, 20, 2), (1_000, 420, 3)])
def test_a_storm_loses_nothing_and_pays_nothing_twice(
    data: Path, runs: int, kills: int, seed: int
) -> None:
    assert weathered(data, runs=runs, kills=kills, seed=seed) > 0


@pytest.mark.soak
def test_five_hundred_copies_of_a_message_are_one_payment_and_no_flood(data: Path) -> None:
    def answered() -> int:
        now = observe(str(hit.id))  # refused by the lease, with nothing owed, or after the end
        return now.lease_absorbed + now.absorbed.get("DeliveryReceived", 0)

    with storm(data, seed=1) as blown:
        blown.begin()
        calm, hit = (_new(known_workspace(), 0, pace_ms=400) for _ in range(2))
        for run in (calm, hit):
            api.start(str(run.id), "visitor")
        for _ in range(COPIES):
            queue.wake(str(hit.id))
        _until(lambda: answered() >= COPIES)
        blown.calm()
        assert faults(Sim(folder=data, world=blown.world())) == []
        assert len(blown.world().succeeded(str(hit.id))) == 1
        calm.refresh_from_db()
        hit.refresh_from_db()
    assert hit.length <= calm.length + GROWN_MAX
