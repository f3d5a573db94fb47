"""The real runtime on a data folder, and the world that survives its crash, simulated in memory."""

import json
import os
import random
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import stripe
from django.conf import settings
from django.db import connection, connections

from engine import clock, entropy
from engine.evidence.signer import Rounds
from engine.models import Run
from engine.runtime import queue, step_times
from engine.worker import drive, tasks
from engine.worker.lease_renewal import LeaseRenewal
from nanovm_core.core.lifecycle import ACTIVE
from pipeline.steps.charge import gateway
from tests.crash.points import said

SWEEP_MS = 2_000
SWEEPS_MAX = 80  # a lease that nobody gives back runs out long before
BEGIN_MS = 1_790_000_000_000
TIDY_MS = 11 * 60_000  # what a crash left lying is old enough then
KEY_LIFE_MS = 24 * 3_600_000  # Stripe's promise: after this a key means nothing
TASKS = {queue.DRIVE: tasks.drive, queue.TURN: tasks.turn}
CARD_DECLINED = "pm_card_visa_chargeDeclined"


@dataclass(slots=True)
class Message:
    """One message of the queue: the task, what it is given, and when it may be delivered."""

    due_ms: int
    task: str
    args: Sequence[Any]


@dataclass(slots=True)
class Posted:
    """What the far side remembers of a key: the request, its answer, when."""

    params: str
    intent: dict[str, Any]
    at_ms: int


@dataclass(slots=True)
class World:
    """Everything outside the application. It is pickled, so that a crash can be gone back to."""

    now_ms: int
    dice: random.Random
    intents: list[dict[str, Any]] = field(default_factory=list)
    accounts: dict[str, dict[str, Any]] = field(default_factory=dict)  # by their key
    keys: dict[str, Posted] = field(default_factory=dict)
    under_way: list[tuple[str, str]] = field(default_factory=list)  # sent, and not arrived
    posts: list[str] = field(default_factory=list)  # the key of each request that arrived
    queue: list[Message] = field(default_factory=list)
    kept: dict[str, Any] = field(default_factory=dict)  # what a story wants to find again

    def tick(self) -> int:
        """The time; it goes on by itself, a millisecond each time somebody looks."""
        self.now_ms += 1
        return self.now_ms

    def post(self, key: str, params: str) -> dict[str, Any]:
        """Take a request to pay, with Stripe's promise: the same key, the same answer.

        Raises:
            stripe.IdempotencyError: the key came with another request before.
        """
        self.posts.append(key)
        known = self.keys.get(key)
        if known is not None and self.now_ms - known.at_ms < KEY_LIFE_MS:
            if known.params != params:
                raise stripe.IdempotencyError("other parameters", http_status=400)
            return known.intent
        given = json.loads(params)
        declined = given["payment_method"] == CARD_DECLINED
        intent = {
            "id": f"pi_{self.dice.getrandbits(64):016x}",
            "object": "payment_intent",
            "livemode": False,
            "payment_method": None if declined else "pm_1simulated",
            "amount_received": 0 if declined else given["amount"],
            "amount": given["amount"],
            "currency": given["currency"],
            "metadata": given["metadata"],
            "transfer_data": given.get("transfer_data"),
            "status": "requires_payment_method" if declined else "succeeded",
            "created": self.now_ms // 1000,
        }
        self.intents.append(intent)
        self.keys[key] = Posted(params, intent, self.now_ms)
        return intent

    def arrive(self) -> None:
        """Let the requests of dead senders arrive."""
        while self.under_way:
            self.post(*self.under_way.pop(0))

    def succeeded(self, run: str = "") -> list[dict[str, Any]]:
        """The payments that were made, of one run or of all."""
        return [
            each
            for each in self.intents
            if each["status"] == "succeeded" and run in ("", each["metadata"]["run"])
        ]


class Stripe:
    """A Stripe client as far as ``gateway`` uses one, over the world's payments."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.v1 = SimpleNamespace(payment_intents=self, accounts=Accounts(world))

    def create(self, params: Mapping[str, Any], options: Mapping[str, str]) -> Any:
        """A payment: not sent, sent and not arrived, and arrived are three places to die."""
        request = (options["idempotency_key"], json.dumps(params, sort_keys=True))
        said("payment: before the request")
        self._world.under_way.append(request)
        said("payment: request under way")
        self._world.under_way.remove(request)
        intent = self._world.post(*request)
        said("payment: answered")
        if intent["status"] != "succeeded":
            raise stripe.CardError("declined", None, "card_declined", http_status=402)  # type: ignore[no-untyped-call]
        return stripe.PaymentIntent.construct_from(dict(intent), "sk_test_crash")

    def raw_request(self, _: str, __: str, *, created: Mapping[str, int], **___: object) -> Any:
        """The payments since a time; what a dead sender sent arrives just after the look."""
        said("list: before")
        found = [each for each in self._world.intents if each["created"] >= created["gte"]]
        self._world.arrive()
        said("list: after")
        return SimpleNamespace(body=json.dumps({"data": found, "has_more": False}))


class Accounts:
    """The connected accounts as far as ``accounts`` asks for them."""

    def __init__(self, world: World) -> None:
        self._world = world

    def create(self, params: Mapping[str, Any], options: Mapping[str, str]) -> Any:
        """An account; the same key, the same account."""
        said("account: before the request")
        number = len(self._world.accounts)
        made = {"id": f"acct_{number}", "object": "account", "metadata": params["metadata"]}
        account = self._world.accounts.setdefault(options["idempotency_key"], made)
        said("account: answered")
        return stripe.Account.construct_from(account, "sk_test_crash")


class Queue:
    """Celery's current application as far as ``queue.wake`` uses it."""

    def __init__(self, world: World) -> None:
        self._world = world

    def send_task(
        self, name: str, *, args: Sequence[Any], countdown: float, retry: bool, queue: str
    ) -> None:
        """Queue a message; there is one queue, for one worker that acts for all agents."""
        assert not retry
        said("queue: before the message")
        self._world.queue.append(Message(self._world.now_ms + int(countdown * 1000), name, args))
        said("queue: after the message")


def clock_of(world: World) -> SimpleNamespace:
    """The module ``time``, as far as the shell asks it."""

    def sleep(seconds: float) -> None:
        world.now_ms += int(seconds * 1000)

    return SimpleNamespace(time_ns=lambda: world.tick() * 1_000_000, sleep=sleep)


def dice_of(world: World) -> SimpleNamespace:
    """The modules ``os`` and ``uuid``, as far as the shell draws from them."""

    def drawn() -> uuid.UUID:
        return uuid.UUID(bytes=world.dice.randbytes(16), version=4)

    return SimpleNamespace(urandom=world.dice.randbytes, UUID=uuid.UUID, uuid4=drawn)


def delivered(world: World) -> Iterator[Message]:
    """The messages that are due, each gone from the queue once it was worked off."""
    while due := [each for each in world.queue if each.due_ms <= world.now_ms]:
        yield due[0]
        world.queue.remove(due[0])


@dataclass(frozen=True, slots=True, kw_only=True)
class Sim:
    """A data folder, and the world that it stands in."""

    folder: Path
    world: World

    def work(self) -> None:
        """What workers do: deliver messages and sweep, until nothing runs any more."""
        for _ in range(SWEEPS_MAX):
            for message in delivered(self.world):
                TASKS[message.task](*message.args)
            if not self.world.queue and not Run.objects.filter(state=ACTIVE).exists():
                return
            self.world.now_ms += SWEEP_MS
            tasks.sweep()
        raise AssertionError(f"still running after {SWEEPS_MAX} sweeps")

    def settle(self) -> None:
        """What happens in the long run: late requests arrive, rubbish is removed, logs signed."""
        self.world.arrive()
        self.world.now_ms += TIDY_MS
        tasks.tidy()
        Rounds().round(self.world.now_ms)

    def restart(self, seed: int, outage_ms: int) -> None:
        """Come back after an outage; messages come again, twice or not at all."""
        dice = random.Random(seed)  # noqa: S311 - of a test
        for file in self.folder.glob("media/*"):  # real times mean nothing to this clock
            os.utime(file, (self.world.now_ms / 1000, self.world.now_ms / 1000))
        self.world.now_ms += outage_ms
        if outage_ms > 60_000:
            self.world.arrive()
        self.world.queue = [
            message for message in self.world.queue for _ in range(dice.choice((0, 1, 1, 2)))
        ]


def new_world(seed: int) -> World:
    """A world in which nothing happened yet."""
    dice = random.Random(seed)  # noqa: S311 - of a test
    return World(now_ms=BEGIN_MS, dice=dice)


class NoRenewal(LeaseRenewal):
    """Renews no lease: effects take no time here, and the renewing thread keeps real time."""

    def _renew_on(self) -> None:
        return


@contextmanager
def opened(folder: Path, world: World) -> Iterator[Sim]:
    """A process of the application on this folder: fresh connections, nothing remembered."""
    before = connection.settings_dict["NAME"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(settings, "NANOVM_DATA", folder)
        patch.setattr(settings, "REDIS_URL", "redis://simulated/0")
        patch.setattr(step_times, "_keep", lambda *_: None)  # nothing of a run depends on it
        patch.setattr(gateway, "configured", lambda: Stripe(world))
        patch.setattr(queue, "current_app", Queue(world))
        patch.setattr(clock, "time", clock_of(world))
        dice = dice_of(world)
        patch.setattr(entropy, "os", dice)
        patch.setattr(entropy, "uuid", dice)
        patch.setattr(drive, "renewal", NoRenewal())
        connections.close_all()
        connection.settings_dict["NAME"] = str(folder / "app.sqlite3")
        try:
            yield Sim(folder=folder, world=world)
        finally:
            connections.close_all()
            connection.settings_dict["NAME"] = before
