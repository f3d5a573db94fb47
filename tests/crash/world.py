"""What survives a crash of the application: the far side, the queue, the clock. All in memory."""

import json
import random
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import stripe

KEY_LIFE_MS = 24 * 3_600_000  # Stripe's promise: after this a key means nothing
CARD_DECLINED = "pm_card_visa_chargeDeclined"

Said = Callable[[str], None]  # told of every point, before and after


@dataclass(slots=True)
class Message:
    """One message of the queue: a run, its program, and when it may be delivered."""

    due_ms: int
    run: str
    program: str


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

    def __init__(self, world: World, said: Said) -> None:
        self._world, self._said = world, said
        self.v1 = SimpleNamespace(payment_intents=self)

    def create(self, params: Mapping[str, Any], options: Mapping[str, str]) -> Any:
        """A payment: not sent, sent and not arrived, and arrived are three places to die."""
        request = (options["idempotency_key"], json.dumps(params, sort_keys=True))
        self._said("payment: before the request")
        self._world.under_way.append(request)
        self._said("payment: request under way")
        self._world.under_way.remove(request)
        intent = self._world.post(*request)
        self._said("payment: answered")
        if intent["status"] != "succeeded":
            raise stripe.CardError("declined", None, "card_declined", http_status=402)  # type: ignore[no-untyped-call]
        return _made(intent)

    def list(self, params: Mapping[str, Any]) -> Any:
        """The payments since a time; what a dead sender sent arrives just after the look."""
        self._said("list: before")
        since = params["created"]["gte"]
        found = [_made(each) for each in self._world.intents if each["created"] >= since]
        self._world.arrive()
        self._said("list: after")
        return SimpleNamespace(auto_paging_iter=lambda: iter(found))


class Queue:
    """Celery's current application as far as ``queue.wake`` uses it."""

    def __init__(self, world: World, said: Said) -> None:
        self._world, self._said = world, said

    def send_task(self, _: str, *, args: Sequence[str], countdown: float, retry: bool) -> None:
        """Queue a message."""
        assert not retry
        self._said("queue: before the message")
        self._world.queue.append(Message(self._world.now_ms + int(countdown * 1000), *args))
        self._said("queue: after the message")


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


def _made(intent: Mapping[str, Any]) -> Any:
    return stripe.PaymentIntent.construct_from(dict(intent), "sk_test_crash")
