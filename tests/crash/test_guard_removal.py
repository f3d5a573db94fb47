"""Each guard of the commit path, taken away: some crash gets through."""

import secrets
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from engine.models import Workspace
from engine.privacy import erasable
from engine.store import logs, sql
from engine.store.logs import LogLine
from engine.store.state_file import StateFile
from engine.worker import tasks
from nanovm_core.core.envelope import LOG_RUN
from pipeline.steps.charge import gateway
from tests.crash.crashes import DAY_MS, SECOND_MS, recovered, wrecks
from tests.crash.sim import Stripe
from tests.crash.stories import ERASED, PAID, SIGNED, Story

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

    def late(log: Workspace, lines: Sequence[LogLine]) -> None:
        if any(each.run != LOG_RUN for each in lines):
            sql.execute("COMMIT")
            sql.execute("BEGIN IMMEDIATE")
        append(log, lines)

    patch.setattr(logs, "append", late)


def never_sweep(patch: Patch) -> None:
    patch.setattr(tasks, "stranded", list)


def forget_the_request(patch: Patch) -> None:
    patch.setattr(erasable, "pending", lambda _: None)


def write_the_memory_in_place(patch: Patch) -> None:
    patch.setattr(StateFile, "replace", lambda slot, data: slot.file.write_bytes(data) and None)


TEETH = [
    (send_an_old_key_again, PAID, "payment: answered", DAY_MS, "2 payments for a run"),
    (send_no_idempotency_key, PAID, "payment: request under way", SECOND_MS, "2 payments"),
    (commit_envelopes_after_the_rest, PAID, "after app: commit", SECOND_MS, "fsck: "),
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
