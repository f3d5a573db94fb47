"""The real runtime on a data folder, with the simulated world behind its ports."""

import os
import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from django.conf import settings
from django.db import connection, connections

from nanovm_core.core.lifecycle import ACTIVE
from pipeline import clock, entropy
from pipeline.evidence.signer import Rounds
from pipeline.models import Run
from pipeline.runtime import queue
from pipeline.steps.charge import gateway
from pipeline.worker import drive, tasks
from pipeline.worker.lease_renewal import LeaseRenewal
from tests.crash.points import said
from tests.crash.world import Queue, Stripe, World, clock_of, delivered, dice_of

SWEEP_MS = 2_000
SWEEPS_MAX = 80  # a lease that nobody gives back runs out long before
BEGIN_MS = 1_790_000_000_000
TIDY_MS = 11 * 60_000  # what a crash left lying is old enough then


@dataclass(frozen=True, slots=True, kw_only=True)
class Sim:
    """A data folder, and the world that it stands in."""

    folder: Path
    world: World

    def work(self) -> None:
        """What workers do: deliver messages and sweep, until nothing runs any more."""
        for _ in range(SWEEPS_MAX):
            for message in delivered(self.world):
                tasks.drive(message.run, message.program)
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
        patch.setattr(gateway, "configured", lambda: Stripe(world, said))
        patch.setattr(queue, "current_app", Queue(world, said))
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
