"""A restore that dies at any point is told again: logs are closed once, and nothing is read."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.evidence import restore, signer
from engine.evidence.fsck.audit import audit
from engine.evidence.published import unsigned_logs
from engine.models import Checkpoint, Envelope, Run, Secret, Workspace
from engine.privacy import erasure
from engine.runtime import api, chains
from engine.vault.key_store import keystore
from engine.worker import tasks
from nanovm_core.core import lifecycle as life
from tests.crash.crashes import recovered, wrecks
from tests.crash.sim import Sim
from tests.crash.stories import Story
from tests.crash.test_enumeration import different
from tests.engine.privacy.test_erasure import CANARIES, canary_invoice, found
from tests.kit.databases import Backup
from tests.kit.house import accepted_run, invoice, known_workspace


def put_back_a_backup(sim: Sim) -> None:
    """One run erased and one paid after the backup, a third log begun after it; it is put back."""
    log = known_workspace()
    first = accepted_run(log, canary_invoice(), CANARIES["file"])
    second = accepted_run(log, invoice(), "b.pdf")
    api.start(str(first.id), "visitor")
    sim.work()
    api.start(str(second.id), "visitor")
    signer.checkpoint(log.id)
    backup = Backup(sim.folder, sim.folder.parent / "backup")
    erasure.erase_run(str(first.id), "art17-1-a", "visitor")
    sim.work()
    signer.checkpoint(log.id)
    signer.checkpoint(chains.create().id)
    sim.world.kept["second"] = str(second.id)
    sim.world.queue.clear()
    backup.put_back()


def told(_: Sim) -> None:
    """What the operator does, and does again after a crash."""
    if restore.is_needed():
        assert restore.restore("operator").left == ()


def faults(sim: Sim) -> Iterator[str]:
    """What does not hold after the restore is over; nobody drives an old run on."""
    for name in map(str, Run.objects.values_list("id", flat=True)):
        tasks.sweep()
        tasks.deliver(name, Run.objects.get(id=name).program_hash)
        api.wake(name, "visitor")
    second = Run.objects.get(id=sim.world.kept["second"])
    paid = [each for each in sim.world.intents if each["metadata"]["run"] == str(second.id)]
    if second.state != life.ACTIVE or len(paid) != 1:
        yield f"the run stands at {second.state}, and was paid {len(paid)} times"
    closed = Workspace.objects.exclude(successor=None)
    if closed.count() != 1 or Workspace.objects.filter(successor=None).count() != 2:
        yield f"{closed.count()} logs are closed of {Workspace.objects.count()}"
    for new in Workspace.objects.filter(successor=None):
        kinds = [*Envelope.objects.filter(workspace=new).values_list("kind", flat=True)]
        if kinds[:2] != ["genesis", "restore"] or kinds.count("restore") != 1:
            yield f"the new log holds {kinds}"
        if not Checkpoint.objects.filter(workspace=new, size=new.size).exists():
            yield "the new log is not signed"
    yield from (f"fsck: {each}" for each in audit().damage if not each.explained)
    yield from (f"refused: {each}" for each in unsigned_logs())
    for file in filter(Path.is_file, sim.folder.rglob("*")):
        yield from found(file.name, file.read_bytes())
    erased = Secret.objects.exclude(run=second)
    if erased.filter(erased_ms=None).exists() or {*keystore().refs()} & {
        each.ref for each in erased
    }:
        yield "something erased is there again"
    if restore.is_needed():
        yield "the restore is not over"


RESTORED = Story(
    name="restored",
    before=put_back_a_backup,
    tell=told,
    of_all=faults,
    ends=(life.COMPLETED, life.ACTIVE),
    points_min=60,
)


@pytest.mark.parametrize("every", [8, pytest.param(1, marks=pytest.mark.soak)])
def test_a_restore_that_dies_at_any_point_is_finished_by_the_next(data: Path, every: int) -> None:
    left, points = wrecks(RESTORED, data)
    states = different(left)[1::every]
    assert [bad for each in states for bad in recovered(RESTORED, each)] == []
    print(f"restored: {points} crash points, {len(states)} states tried, all held")
    assert points >= RESTORED.points_min
