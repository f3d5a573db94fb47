"""Which attack each layer sees, on real database files; what a layer misses is asserted too."""

import sqlite3
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest
from django.db import connection, connections, transaction

from nanovm_core import verify
from nanovm_core.errors import VerificationError
from nanovm_core.proof import notes
from pipeline.evidence import bundles, signer
from pipeline.evidence.fsck.audit import audit
from pipeline.evidence.signer import keys
from pipeline.models import Checkpoint, Envelope, Run, Workspace
from pipeline.store import records, tree, workspaces
from tests.pipeline.databases import Database, on_sqlite_alone
from tests.pipeline.house import House, bodies, sql
from tests.pipeline.trees import drop_nodes, exchange, plant

pytestmark = on_sqlite_alone  # an old file put back is an attack on a file

SEEN, MISSED = True, False


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """A run that paid under two checkpoints, and what somebody kept of the time between."""

    house: House
    run: Run
    log: Workspace
    key: str  # the log's key, pinned

    @property
    def early(self) -> Path:
        """The database as it was at the first checkpoint."""
        return self.house.folder / "kept" / "early.sqlite3"

    @property
    def known(self) -> Path:
        return self.early.with_name("known")


def paid_under_two_checkpoints(house: House) -> Run:
    kept = house.folder / "kept"
    kept.mkdir()
    run = house.paused()
    signer.checkpoint(run.workspace_id)
    house.database.copy_to(Database(name=str(kept / "early.sqlite3")))
    house.resumed(run)
    (kept / "known").write_bytes(bytes(signer.checkpoint(run.workspace_id).note))
    return run


@pytest.fixture
def scene(house: House) -> Scene:
    """The attacks begin when everything is whole."""
    run = house.once(paid_under_two_checkpoints)
    log = run.workspace
    return Scene(house=house, run=run, log=log, key=signer.verifiers(log.origin)[0].vkey)


# --- the layers -----------------------------------------------------------------------------


def chain(scene: Scene) -> bool:
    """Recomputing the run's chain, head and snapshot from the database alone."""
    try:
        records.verified(Run.objects.get(id=scene.run.id))
    except VerificationError:
        return SEEN
    return MISSED


def pinned(scene: Scene, *more: str) -> bool:
    """The stranger's verifier on the log's bundle, with the newest stored checkpoint."""
    file = scene.known.with_name("bundle.zip")
    checkpoint = bundles.newest(scene.log)
    assert checkpoint is not None
    bundles.write_bundle(scene.log, None, file, checkpoint)
    return verify.main([str(file), "--key", scene.key, *more]) != 0


def kept_elsewhere(scene: Scene) -> bool:
    """The same, for whoever kept a checkpoint."""
    known = scene.known.with_name("known.now")
    known.write_bytes(scene.known.read_bytes())
    return pinned(scene, "--known", str(known))


def memory(scene: Scene) -> bool:
    """Our own audit, which knows what the signer remembers: a kept checkpoint, on this host."""
    return audit().exit_status != 0


LAYERS = (chain, pinned, kept_elsewhere, memory)


# --- the attacks ----------------------------------------------------------------------------


def rewritten(scene: Scene, first: int, count: int) -> None:
    """Envelopes of the run rewritten, each naming the one before, and the tree made anew."""
    rows = Envelope.objects.filter(run=str(scene.run.id), n__gte=first).order_by("n")[:count]
    head = exchange(rows, at_ms=1)[-1]
    if first + count == scene.run.length:
        sql(("UPDATE pipeline_run SET head = %s WHERE id = %s", (head, scene.run.id.hex)))
    drop_nodes(scene.log, "level >= 0")
    plant(scene.log.id)


def edited(scene: Scene) -> None:
    """Other bytes, with the old hash beside them."""
    row = Envelope.objects.get(run=str(scene.run.id), n=4)
    rewritten(scene, 4, 1)
    sql(("UPDATE pipeline_envelope SET hash = %s WHERE seq = %s", (row.hash, row.seq)))


def cut_off(scene: Scene, *, checkpoints: bool) -> None:
    """The end of the log removed, and every row set back to what it was at the first checkpoint."""
    with closing(sqlite3.connect(scene.early)) as early:
        early.row_factory = sqlite3.Row
        run = dict(early.execute("SELECT * FROM pipeline_run").fetchone())
        log = dict(early.execute("SELECT * FROM pipeline_workspace").fetchone())
    last_ms = max(body["at_ms"] for body in bodies(scene.run))
    for table, row in (("run", run), ("workspace", log)):
        columns = ", ".join(f"{name} = %s" for name in row)
        sql((f"UPDATE pipeline_{table} SET {columns}", (*row.values(),)))
    size = log["size"]
    sql(("DELETE FROM pipeline_envelope WHERE seq >= %s", (size,)))
    drop_nodes(scene.log, '("index" + 1) * (1 << level) > %s', (size,))
    sql(("DELETE FROM pipeline_secret WHERE created_ms > %s", (last_ms,)))
    if checkpoints:
        sql(("DELETE FROM pipeline_checkpoint WHERE size > %s", (size,)))


def restored(scene: Scene) -> None:
    """An old copy of the whole database put back."""
    connections.close_all()
    for file in scene.house.folder.glob("app.sqlite3-*"):
        file.unlink()
    Database(name=str(scene.early)).copy_to(scene.house.database)


def stolen_key(scene: Scene) -> None:
    """The end rewritten, and signed with the log's own key."""
    rewritten(scene, 4, scene.run.length - 4)
    size = tree.size(scene.log.id)
    head = tree.head(scene.log.id, scene.log.origin, size)
    note = notes.sign(head.text, head.origin, [keys.current()])
    sql(("DELETE FROM pipeline_checkpoint", ()))
    Checkpoint.objects.create(workspace=scene.log, size=size, note=note, at_ms=1)


def stolen_key_and_memory(scene: Scene) -> None:
    """The same, and the signer's own memory rewritten too."""
    stolen_key(scene)
    for file in keys.logs().glob("*.note"):
        file.write_bytes(bytes(Checkpoint.objects.get().note))


def false_when_written(scene: Scene) -> None:
    """A statement that is not true, through the front door, and signed as all others are."""
    with transaction.atomic():
        locked = records.lock_log(scene.log.id)
        workspaces.seal(locked, "budget", {"out": {"spent": 0}}, actor="operator")
    signer.checkpoint(scene.log.id)


TABLE: Mapping[str, tuple[Callable[[Scene], object], tuple[bool, bool, bool, bool]]] = {
    "nothing": (lambda _: None, (MISSED, MISSED, MISSED, MISSED)),
    "edit a row": (edited, (SEEN, SEEN, SEEN, SEEN)),
    "edit a row and its hash": (lambda each: rewritten(each, 4, 1), (SEEN, SEEN, SEEN, SEEN)),
    "edit the last row and its hash": (
        lambda each: rewritten(each, each.run.length - 1, 1),
        (MISSED, SEEN, SEEN, SEEN),
    ),
    "rewrite the whole suffix": (
        lambda each: rewritten(each, 4, each.run.length - 4),
        (MISSED, SEEN, SEEN, SEEN),
    ),
    "truncate the tail": (
        lambda each: cut_off(each, checkpoints=False),
        (MISSED, SEEN, SEEN, SEEN),
    ),
    "truncate the tail and the later checkpoints": (
        lambda each: cut_off(each, checkpoints=True),
        (MISSED, MISSED, SEEN, SEEN),
    ),
    "restore an old snapshot": (restored, (MISSED, MISSED, SEEN, SEEN)),
    "stolen log key": (stolen_key, (MISSED, MISSED, SEEN, SEEN)),
    "stolen log key, rewritten memory": (stolen_key_and_memory, (MISSED, MISSED, SEEN, MISSED)),
    "never logged, or false when written": (false_when_written, (MISSED,) * 4),
}


@pytest.mark.parametrize("name", [*TABLE])
def test_each_layer_sees_and_misses_what_the_table_says(scene: Scene, name: str) -> None:
    attack, expected = TABLE[name]
    attack(scene)
    assert tuple(layer(scene) for layer in LAYERS) == expected


def test_the_signer_signs_none_of_what_it_remembers_otherwise(scene: Scene) -> None:
    cut_off(scene, checkpoints=True)
    with pytest.raises(VerificationError, match="does not continue") as refused:
        signer.checkpoint(scene.log.id)
    assert refused.value.code == "LOG-006"
    assert connection.in_atomic_block is False
