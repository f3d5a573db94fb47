"""Which attack each layer sees, on real database files; what a layer misses is asserted too."""

import sqlite3
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest
from django.db import connection, connections

from engine.evidence import bundles, signer
from engine.evidence.fsck.audit import audit
from engine.evidence.signer import keys
from engine.models import Checkpoint, Envelope, Run, Workspace
from engine.runtime import chains
from engine.store import records, tree
from nanovm_core import verify
from nanovm_core.errors import VerificationError
from nanovm_core.proof import notes
from tests.kit.databases import Database, on_sqlite_alone
from tests.kit.house import House, bodies, sql
from tests.kit.trees import drop_nodes, exchange, grown, plant

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


def signer_refuses(scene: Scene) -> bool:
    """What the signer remembers is asked before it signs; damage below it stops no checkpoint."""
    try:
        signer.checkpoint(scene.log.id)
    except VerificationError as error:
        return error.code == "LOG-006" and not connection.in_atomic_block
    return MISSED


LAYERS = (chain, pinned, kept_elsewhere, memory, signer_refuses)


def rewritten(scene: Scene, first: int, count: int) -> None:
    """Envelopes of the run rewritten, each naming the one before, and the tree made anew."""
    rows = Envelope.objects.filter(run=str(scene.run.id), n__gte=first).order_by("n")[:count]
    head = exchange(rows, actor="forger")[-1]
    if first + count == scene.run.length:
        sql(("UPDATE pipeline_run SET head = %s WHERE id = %s", (head, scene.run.id.hex)))
    drop_nodes(scene.log, "level >= 0")
    plant(scene.log.id)


def edited(scene: Scene) -> None:
    """Other bytes, with the old hash beside them."""
    row = Envelope.objects.get(run=str(scene.run.id), n=4)
    rewritten(scene, 4, 1)
    sql(("UPDATE pipeline_envelope SET hash = %s WHERE seq = %s", (row.hash, row.seq)))


def cut_off(scene: Scene, *, checkpoints: bool, nodes: bool = True) -> None:
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
    if nodes:
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


def forge(scene: Scene) -> None:
    """A note over the tree as it stands, by whoever stole the log's key."""
    size = tree.size(scene.log.id)
    head = tree.head(scene.log.id, scene.log.origin, size)
    note = notes.sign(head.text, head.origin, [keys.current()])
    sql(("DELETE FROM pipeline_checkpoint", ()))
    Checkpoint.objects.create(workspace=scene.log, size=size, note=note, at_ms=1)


def stolen_key(scene: Scene, *, memory_too: bool = False) -> None:
    """The end rewritten, and signed with the log's own key; perhaps the signer's memory too."""
    rewritten(scene, 4, scene.run.length - 4)
    forge(scene)
    for file in keys.logs().glob("*.note") if memory_too else ():
        file.write_bytes(bytes(Checkpoint.objects.get().note))


def forked(scene: Scene) -> None:
    """The end replaced by a longer one, and signed with the log's own key."""
    cut_off(scene, checkpoints=True)
    grown(scene.log, scene.run.length, "policy")
    forge(scene)


def false_when_written(scene: Scene) -> None:
    """A statement that is not true, through the front door, and signed as all others are."""
    chains.seal(scene.log.id, "budget", {"out": {"spent": 0}}, actor="operator")
    signer.checkpoint(scene.log.id)


def changed(scene: Scene) -> None:
    """Other bytes, and nothing else."""
    where = "WHERE run = %s AND n = 4"
    sql((f"UPDATE pipeline_envelope SET bytes = x'7b7d' {where}", (str(scene.run.id),)))


# The chain alone, the pinned key, the kept checkpoint, our own audit; and whether the signer stops.
TABLE: Mapping[str, tuple[Callable[[Scene], object], str]] = {
    "nothing": (lambda _: None, "-----"),
    "edit a row": (changed, "XXXX-"),
    "edit a row and the tree": (edited, "XXXXX"),
    "edit a row and its hash": (lambda each: rewritten(each, 4, 1), "XXXXX"),
    "edit the last row": (lambda each: rewritten(each, each.run.length - 1, 1), "-XXXX"),
    "rewrite the suffix": (lambda each: rewritten(each, 4, each.run.length - 4), "-XXXX"),
    "truncate the tail": (lambda each: cut_off(each, checkpoints=False), "-XXXX"),
    "and the later checkpoints": (lambda each: cut_off(each, checkpoints=True), "--XXX"),
    "truncate, nodes kept": (lambda each: cut_off(each, checkpoints=False, nodes=False), "-XXXX"),
    "the same, no checkpoints": (
        lambda each: cut_off(each, checkpoints=True, nodes=False),
        "--XXX",
    ),
    "restore an old snapshot": (restored, "--XXX"),
    "stolen key: rewrite": (stolen_key, "--XXX"),
    "stolen key: fork": (forked, "--XXX"),
    "stolen key and memory": (lambda each: stolen_key(each, memory_too=True), "--X--"),
    "false when written": (false_when_written, "-----"),
}


@pytest.mark.parametrize("name", TABLE)
def test_each_layer_sees_and_misses_what_the_table_says(scene: Scene, name: str) -> None:
    attack, expected = TABLE[name]
    attack(scene)
    assert "".join("X" if layer(scene) else "-" for layer in LAYERS) == expected
