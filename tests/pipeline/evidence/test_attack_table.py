"""Which attack each layer sees, on real database files; what a layer misses is asserted too."""

import sqlite3
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from django.db import connection, connections, transaction

from nanovm_core import verify
from nanovm_core.core.canonical import decode, encode
from nanovm_core.core.envelope import ZERO, canonical_hash
from nanovm_core.errors import VerificationError
from nanovm_core.proof import notes
from pipeline.evidence import bundles, signer
from pipeline.evidence.fsck.audit import audit
from pipeline.evidence.signer import keys
from pipeline.models import Checkpoint, Envelope, Run, Workspace
from pipeline.runtime import api
from pipeline.store import records, tree, workspaces
from tests.pipeline.databases import Database, on_sqlite_alone
from tests.pipeline.house import House, sql
from tests.pipeline.trees import drop_nodes, plant

pytestmark = on_sqlite_alone  # an old file put back is an attack on a file

SEEN, MISSED = True, False


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """A run that paid under two checkpoints, and what somebody kept of the time between."""

    house: House
    run: Run
    log: Workspace
    early: Path  # the database as it was at the first checkpoint
    known: Path  # the second checkpoint, kept elsewhere
    key: str  # the log's key, pinned


@pytest.fixture
def scene(house: House, tmp_path_factory: pytest.TempPathFactory) -> Scene:
    """The attacks begin when everything is whole, and every layer says so."""
    kept = tmp_path_factory.mktemp("kept")
    run = house.new(stepping=True)
    log = run.workspace
    api.start(str(run.id), "visitor")
    while house.drive(run).step != "charge":
        api.step(str(run.id), "visitor")
    signer.checkpoint(log.id)
    house.database.copy_to(Database(name=str(kept / "early.sqlite3")))
    api.resume(str(run.id), "visitor")
    house.drive(run)
    (kept / "known").write_bytes(bytes(signer.checkpoint(log.id).note))
    key = signer.verifiers(log.origin)[0].vkey
    made = Scene(
        house=house, run=run, log=log, early=kept / "early.sqlite3", known=kept / "known", key=key
    )
    assert [layer(made) for layer in LAYERS.values()] == [MISSED] * len(LAYERS)
    return made


# --- the layers -----------------------------------------------------------------------------


def chain(scene: Scene) -> bool:
    """Recomputing the run's chain, head and snapshot from the database alone."""
    try:
        records.verified(Run.objects.get(id=scene.run.id))
    except VerificationError:
        return SEEN
    return MISSED


def pinned(scene: Scene) -> bool:
    """The stranger's verifier on the log's bundle, with the newest stored checkpoint."""
    return _verified(scene) != 0


def kept_elsewhere(scene: Scene) -> bool:
    """The same, for whoever kept a checkpoint."""
    known = scene.known.with_name("known.now")
    known.write_bytes(scene.known.read_bytes())
    return _verified(scene, "--known", str(known)) != 0


def memory(scene: Scene) -> bool:
    """Our own audit, which knows what the signer remembers: a kept checkpoint, on this host."""
    return audit().exit_status != 0


def _verified(scene: Scene, *more: str) -> int:
    file = scene.known.with_name("bundle.zip")
    checkpoint = bundles.newest(scene.log)
    assert checkpoint is not None
    bundles.write_bundle(scene.log, None, file, checkpoint)
    return verify.main([str(file), "--key", scene.key, *more])


LAYERS: Mapping[str, Callable[[Scene], bool]] = {
    "chain": chain,
    "pinned": pinned,
    "kept elsewhere": kept_elsewhere,
    "signer's memory": memory,
}


# --- the attacks ----------------------------------------------------------------------------


def rewritten(scene: Scene, first: int, count: int, *, own_hash: bool = True) -> None:
    """Envelopes of the run rewritten, each naming the one before, and the tree made anew."""
    rows = list(Envelope.objects.filter(run=str(scene.run.id)).order_by("n"))
    prev = rows[first - 1].hash if first else ZERO
    for row in rows[first : first + count]:
        body: Any = decode(bytes(row.bytes))
        data = encode({**body, "at_ms": body["at_ms"] - 1, "prev": prev})
        leaf = canonical_hash(data) if own_hash else row.hash
        change = (
            "UPDATE pipeline_envelope SET bytes = %s, hash = %s"
            " WHERE workspace_id = %s AND seq = %s"
        )
        sql((change, (data, leaf, row.workspace_id.hex, row.seq)))
        prev = leaf
    if first + count == len(rows):
        sql(("UPDATE pipeline_run SET head = %s WHERE id = %s", (prev, scene.run.id.hex)))
    drop_nodes(scene.log, "level >= 0")
    plant(scene.log.id)


def cut_off(scene: Scene, *, checkpoints: bool) -> None:
    """The end of the log removed, and every row set back to what it was at the first checkpoint."""
    with closing(sqlite3.connect(scene.early)) as early:
        early.row_factory = sqlite3.Row
        run = dict(early.execute("SELECT * FROM pipeline_run").fetchone())
        log = dict(early.execute("SELECT * FROM pipeline_workspace").fetchone())
    for table, row in (("run", run), ("workspace", log)):
        columns = ", ".join(f"{name} = %s" for name in row)
        sql((f"UPDATE pipeline_{table} SET {columns}", (*row.values(),)))
    size = log["size"]
    sql(("DELETE FROM pipeline_envelope WHERE seq >= %s", (size,)))
    drop_nodes(scene.log, '("index" + 1) * (1 << level) > %s', (size,))
    sql(("DELETE FROM pipeline_secret WHERE created_ms > %s", (_last_ms(),)))
    if checkpoints:
        sql(("DELETE FROM pipeline_checkpoint WHERE size > %s", (size,)))


def _last_ms() -> int:
    newest = Envelope.objects.order_by("-seq")[0]
    body: Any = decode(bytes(newest.bytes))
    return int(body["at_ms"])


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


def false_when_written(scene: Scene) -> None:
    """A statement that is not true, through the front door, and signed as all others are."""
    with transaction.atomic():
        locked = records.lock_log(scene.log.id)
        workspaces.seal(locked, "budget", {"out": {"spent": 0}}, actor="operator")
    signer.checkpoint(scene.log.id)


Attack = tuple[Callable[[Scene], None], tuple[bool, bool, bool, bool]]

TABLE: Mapping[str, Attack] = {
    "edit a row": (lambda scene: rewritten(scene, 4, 1, own_hash=False), (SEEN, SEEN, SEEN, SEEN)),
    "edit a row and its hash": (lambda scene: rewritten(scene, 4, 1), (SEEN, SEEN, SEEN, SEEN)),
    "edit the last row and its hash": (
        lambda scene: rewritten(scene, scene.run.length - 1, 1),
        (MISSED, SEEN, SEEN, SEEN),
    ),
    "rewrite the whole suffix": (
        lambda scene: rewritten(scene, 4, scene.run.length - 4),
        (MISSED, SEEN, SEEN, SEEN),
    ),
    "truncate the tail": (
        lambda scene: cut_off(scene, checkpoints=False),
        (MISSED, SEEN, SEEN, SEEN),
    ),
    "truncate the tail and the later checkpoints": (
        lambda scene: cut_off(scene, checkpoints=True),
        (MISSED, MISSED, SEEN, SEEN),
    ),
    "restore an old snapshot": (restored, (MISSED, MISSED, SEEN, SEEN)),
    "stolen log key": (stolen_key, (MISSED, MISSED, SEEN, SEEN)),
    "never logged, or false when written": (false_when_written, (MISSED, MISSED, MISSED, MISSED)),
}


@pytest.mark.parametrize("name", [*TABLE])
def test_each_layer_sees_and_misses_what_the_table_says(scene: Scene, name: str) -> None:
    attack, expected = TABLE[name]
    attack(scene)
    found = {layer: sees(scene) for layer, sees in LAYERS.items()}
    assert found == dict(zip(LAYERS, expected, strict=True))


def test_a_stolen_key_with_a_rewritten_memory_is_seen_by_a_checkpoint_elsewhere_alone(
    scene: Scene,
) -> None:
    stolen_key(scene)
    note = bytes(Checkpoint.objects.get().note)
    for file in keys.logs().glob("*.note"):
        file.write_bytes(note)
    found = [layer(scene) for layer in LAYERS.values()]
    assert found == [MISSED, MISSED, SEEN, MISSED]


def test_the_signer_signs_none_of_what_it_remembers_otherwise(scene: Scene) -> None:
    cut_off(scene, checkpoints=True)
    with pytest.raises(VerificationError, match="does not continue") as refused:
        signer.checkpoint(scene.log.id)
    assert refused.value.code == "LOG-006"
    assert connection.in_atomic_block is False
