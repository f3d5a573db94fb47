"""Each guard of the commit path, taken away: some crash, or some second delivery, gets through."""

import secrets
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from django.db import transaction

from pipeline.models import AdapterCall, Run
from pipeline.privacy import erasure
from pipeline.steps import adapters
from pipeline.steps.charge import gateway
from pipeline.store import leases, logs, sql
from pipeline.store.budgets import BudgetLedger
from pipeline.store.state_file import Slot
from pipeline.worker import tasks
from tests.crash.crashes import DAY_MS, SECOND_MS, recovered, wrecks
from tests.crash.points import hooked, watched
from tests.crash.sim import new_world, opened
from tests.crash.stories import ERASED, PAID, SIGNED, Story
from tests.crash.verdict import PAY, faults
from tests.crash.world import Stripe

Patch = pytest.MonkeyPatch


def send_an_old_key_again(patch: Patch) -> None:
    pay = gateway.pay
    patch.setattr(gateway, "KEY_LIFE_MS", 10 * DAY_MS)
    patch.setattr(
        gateway, "pay", lambda charge, *, at_ms, **_: pay(charge, begun_before=False, at_ms=at_ms)
    )


def send_no_idempotency_key(patch: Patch) -> None:
    create = Stripe.create
    patch.setattr(
        Stripe,
        "create",
        lambda far, params, _: create(far, params, {"idempotency_key": secrets.token_hex(8)}),
    )


def commit_envelopes_after_the_rest(patch: Patch) -> None:
    append = logs.append

    def late(*args: Any) -> None:
        sql.execute("COMMIT")
        sql.execute("BEGIN IMMEDIATE")
        append(*args)

    patch.setattr(logs, "append", late)


def book_after_the_rest(patch: Patch) -> None:
    book = BudgetLedger.book

    def alone(ledger: BudgetLedger) -> None:
        with transaction.atomic():
            book(ledger)

    def late(ledger: BudgetLedger) -> None:
        transaction.on_commit(partial(alone, ledger))

    patch.setattr(BudgetLedger, "book", late)


def never_sweep(patch: Patch) -> None:
    patch.setattr(tasks, "stranded", list)


def forget_the_request(patch: Patch) -> None:
    patch.setattr(erasure, "_pending", lambda _: None)


def write_the_memory_in_place(patch: Patch) -> None:
    patch.setattr(Slot, "replace", lambda slot, data: slot.file.write_bytes(data) and None)


TEETH = [
    (send_an_old_key_again, PAID, "payment: answered", DAY_MS, "2 payments for a run"),
    (send_no_idempotency_key, PAID, "payment: request under way", SECOND_MS, "2 payments"),
    (commit_envelopes_after_the_rest, PAID, "after app: commit", SECOND_MS, "fsck: "),
    (book_after_the_rest, PAID, "after app: commit", SECOND_MS, "the budget "),
    (never_sweep, PAID, "queue: before the message", SECOND_MS, "still running"),
    (forget_the_request, ERASED, "after keys: commit", SECOND_MS, "PII-003"),
    (write_the_memory_in_place, SIGNED, "in the middle of a file", SECOND_MS, "LOG-007"),
]


@pytest.mark.parametrize(
    ("remove", "story", "point", "outage_ms", "fault"),
    TEETH,
    ids=[each[0].__name__ for each in TEETH],
)
def test_without_a_guard_a_crash_gets_through(
    remove: Callable[[Patch], None],
    story: Story,
    point: str,
    outage_ms: int,
    fault: str,
    data: Path,
    monkeypatch: Patch,
) -> None:
    remove(monkeypatch)
    found, _ = wrecks(story, data, lambda passed: passed == point)
    bad = (each for left in found for each in recovered(story, left, outage_ms))
    assert any(fault in each for each in bad)


def tell_with_a_second_delivery(data: Path, at: str) -> tuple[list[str], int, int]:
    """Deliver the run's message to a second worker while the first is at a point."""
    twice: list[int] = []
    with opened(data, new_world(seed=7)) as sim, hooked():

        def again(_: int, point: str) -> None:
            if point == at and not twice:
                twice.append(1)
                run = Run.objects.get()
                tasks.drive(str(run.id), run.program_hash)

        with watched(data, again):
            PAID.tell(sim)
            sim.settle()
        assert twice
        found = [*faults(sim), *PAID.faults(sim)]
        return found, AdapterCall.objects.count(), len(sim.world.posts)


EFFECTS = tuple(f"before the effect {tool}" for tool in adapters.ADAPTERS)


@pytest.mark.parametrize("at", EFFECTS)
def test_message_that_comes_twice_is_worked_off_once(data: Path, at: str) -> None:
    assert tell_with_a_second_delivery(data, at) == ([], len(EFFECTS), 1)


def test_without_leases_a_second_delivery_acts_too(data: Path, monkeypatch: Patch) -> None:
    monkeypatch.setattr(leases, "is_held", lambda *_: False)
    bad, calls, posts = tell_with_a_second_delivery(data, f"before the effect {PAY}")
    assert calls > len(EFFECTS)
    assert posts == 2
    assert bad == []  # and the key still has one payment made
