"""Dying at a point of a story, coming back, and telling it to its end."""

import hashlib
import pickle
import random
import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from engine.models import Run
from tests.crash.points import hooked, watched
from tests.crash.sim import Sim, World, new_world, opened
from tests.crash.stories import Story

SECOND_MS = 1_000
DAY_MS = 25 * 3_600_000  # warrants have run out, and Stripe has forgotten every key


@dataclass(frozen=True, slots=True, kw_only=True)
class Wreck:
    """What a process leaves that dies at a point: its files as they lie there, and the world."""

    number: int
    point: str
    folder: Path
    world: World

    def state(self) -> bytes:
        """A digest of all that lasts; the time and SQLite's index of its own log do not."""
        found = hashlib.sha256(pickle.dumps(replace(self.world, now_ms=0)))
        for file in sorted(self.folder.rglob("*")):
            if file.is_file() and not file.name.endswith("-shm"):
                found.update(f"\0{file.relative_to(self.folder)}\0".encode())
                found.update(hashlib.sha256(file.read_bytes()).digest())
        return found.digest()


def prepared(story: Story, data: Path) -> World:
    """What lies there when the story begins."""
    with opened(data, new_world(seed=7)) as sim:
        story.before(sim)
    return sim.world


def wrecks(
    story: Story, data: Path, at: Callable[[str], bool] = lambda _: True
) -> tuple[list[Wreck], int]:
    """Tell a story once, and keep what a crash would leave: at these points, of so many.

    What is kept are the bytes that the operating system has, with every journal: what the
    next process finds. Nobody else writes to them while they are copied.
    """
    kept: list[Wreck] = []
    with opened(data, prepared(story, data)) as sim, hooked():

        def keep(number: int, point: str) -> None:
            if at(point):
                kept.append(_left(sim, number, point, data.parent / f"wreck-{number}"))

        with watched(data, keep) as watch:
            story.tell(sim)
    return kept, len(watch.names)


def _left(sim: Sim, number: int, point: str, folder: Path) -> Wreck:
    shutil.copytree(sim.folder, folder)
    world = pickle.loads(pickle.dumps(sim.world))  # noqa: S301 - our own bytes
    return Wreck(number=number, point=point, folder=folder, world=world)


def recovered(story: Story, left: Wreck, outage_ms: int = SECOND_MS) -> list[str]:
    """What does not hold after the process came back and the story was told to its end."""
    with opened(left.folder, left.world) as sim:
        found = _told(story, sim, left.number, outage_ms)
    if not found:
        shutil.rmtree(left.folder)
    return [f"{story.name}, point {left.number}, {left.point}: {each}" for each in found]


def _told(story: Story, sim: Sim, seed: int, outage_ms: int) -> list[str]:
    sim.restart(seed, outage_ms)
    try:
        story.tell(sim)
        sim.settle()
        found = [*story.of_all(sim), *story.faults(sim)]
    except (Exception, AssertionError) as error:  # noqa: BLE001 - told with its place
        return [repr(error)]
    ended = {*Run.objects.values_list("state", flat=True)}
    if outage_ms == SECOND_MS and ended != {*story.ends}:
        found.append(f"it ended as {ended}")
    return found


def wrecked_again(story: Story, left: Wreck, count: int) -> list[Wreck]:
    """Come back from a crash, and crash again at so many points of the recovery."""
    kept: list[Wreck] = []
    chosen = random.Random(left.number).sample(range(60), count)  # noqa: S311 - of a test
    with opened(left.folder, left.world) as sim, hooked():

        def keep(number: int, point: str) -> None:
            if number in chosen:
                folder = left.folder.with_name(f"{left.folder.name}-{number}")
                kept.append(_left(sim, number, f"{left.point}, then {point}", folder))

        sim.restart(left.number, SECOND_MS)
        with watched(left.folder, keep):
            story.tell(sim)
            sim.settle()
    return kept
