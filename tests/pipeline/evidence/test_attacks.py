"""Attacks on a real database file: which attack each layer sees, and which it misses."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from nanovm_core import verify
from nanovm_core.core.canonical import decode, encode
from nanovm_core.core.envelope import canonical_hash
from nanovm_core.errors import VerificationError
from nanovm_core.proof import merkle, notes
from pipeline.evidence import bundles, signer
from pipeline.models import Checkpoint, Envelope, Workspace
from pipeline.store import tree, workspaces
from tests.pipeline.house import House, sql
from tests.pipeline.trees import drop_nodes, grown, plant, truncated

EARLY, LATE = 6, 11  # the sizes that were signed
SEEN, MISSED = True, False


class Evidence(NamedTuple):
    """What a stranger holds: the log's key, and the checkpoint that was kept elsewhere."""

    folder: Path
    key: str
    known: Path


def rewrite(log: Workspace, first: int, *, chained: bool = True) -> None:
    """Other envelopes from a place on, each naming the one before, and a tree over them.

    Not ``chained``: the first alone is another, with its own hash beside it.
    """
    rows = [*Envelope.objects.filter(workspace=log, seq__gte=first).order_by("seq")]
    changes, prev = [], ""
    for row in rows if chained else rows[:1]:
        body = decode(bytes(row.bytes))
        assert isinstance(body, dict)
        said = {**body, "out": {"number": 1_000_000}}
        data = encode({**said, "prev": prev} if prev else said)
        prev = canonical_hash(data)
        change = (
            "UPDATE pipeline_envelope SET bytes = %s, hash = %s"
            " WHERE workspace_id = %s AND seq = %s"
        )
        changes.append((change, (data, prev, row.workspace_id.hex, row.seq)))
    sql(*changes)
    sql(("UPDATE pipeline_workspace SET log_head = %s WHERE id = %s", (prev, log.id.hex)))
    drop_nodes(log, '("index" + 1) * (1 << level) > %s', (first,))
    plant(log.id)


def edit_bytes_alone(log: Workspace) -> None:
    """Other bytes in the middle, and the old hash beside them."""
    sql(("UPDATE pipeline_envelope SET bytes = x'7b7d' WHERE seq = 4", ()))


def forge(log: Workspace, folder: Path) -> None:
    """A note over the tree as it stands, by whoever stole the key."""
    key = Ed25519PrivateKey.from_private_bytes((folder / "signer" / "key").read_bytes())
    head = tree.head(log.id, log.origin, tree.size(log.id))
    note = notes.sign(head.text, log.origin, [key])
    Checkpoint.objects.create(workspace=log, size=head.size, note=note, at_ms=0)


def truncate(log: Workspace, size: int) -> None:
    """The tail gone, and the signed checkpoints as they were."""
    kept = [*Checkpoint.objects.filter(workspace=log)]
    truncated(log, size)
    Checkpoint.objects.bulk_create([each for each in kept if each.size > size])


def restore(log: Workspace) -> None:
    """A copy of the database from then in the present one's place; it went on since."""
    truncated(log, EARLY)
    grown(log, 2, "policy")


def rewrite_and_forge(log: Workspace, folder: Path) -> None:
    """Another past, signed with the stolen key."""
    rewrite(log, 4)
    forge(log, folder)


def fork_and_forge(log: Workspace, folder: Path) -> None:
    """Another end, longer than the true one, signed with the stolen key."""
    truncated(log, 8)
    grown(log, 4, "policy")
    forge(log, folder)


def write_what_is_false(log: Workspace, folder: Path) -> None:
    """An envelope that says what never was, written by the runtime itself."""
    grown(log, 1)
    signer.checkpoint(log.id)


ATTACKS: Mapping[str, tuple[Callable[[Workspace, Path], object], tuple[bool, bool, bool]]] = {
    "nothing": (lambda log, folder: None, (MISSED, MISSED, MISSED)),
    "edit a row": (lambda log, folder: edit_bytes_alone(log), (SEEN, SEEN, SEEN)),
    "edit a row and its hash": (
        lambda log, folder: rewrite(log, 4, chained=False),
        (SEEN, SEEN, SEEN),
    ),
    "edit the last row and its hash": (
        lambda log, folder: rewrite(log, LATE - 1),
        (MISSED, SEEN, SEEN),
    ),
    "rewrite the whole suffix": (lambda log, folder: rewrite(log, 4), (MISSED, SEEN, SEEN)),
    "truncate the tail": (lambda log, folder: truncate(log, EARLY), (MISSED, SEEN, SEEN)),
    "truncate the tail and the later checkpoints": (
        lambda log, folder: truncated(log, EARLY),
        (MISSED, MISSED, SEEN),
    ),
    "restore an old snapshot": (lambda log, folder: restore(log), (MISSED, MISSED, SEEN)),
    "stolen key: rewrite": (rewrite_and_forge, (MISSED, MISSED, SEEN)),
    "stolen key: fork": (fork_and_forge, (MISSED, MISSED, SEEN)),
    "never logged, or false when written": (write_what_is_false, (MISSED, MISSED, MISSED)),
}


@pytest.fixture
def log(house: House) -> Workspace:
    """A log that was signed at two sizes."""
    log = grown(workspaces.create(), EARLY - 1)
    signer.checkpoint(log.id)
    signer.checkpoint(grown(log, LATE - EARLY).id)
    return log


@pytest.fixture
def evidence(log: Workspace, tmp_path: Path) -> Evidence:
    """What the stranger took home before the attack."""
    file, known = tmp_path / "before.zip", tmp_path / "known"
    row = bundles.newest(log)
    assert row is not None
    bundles.write_bundle(log, None, file, row)
    key = signer.verifiers(log.origin)[0].vkey
    assert verify.main([str(file), "--key", key, "--known", str(known)]) == 0
    return Evidence(tmp_path, key, known)


def layers(log: Workspace, evidence: Evidence) -> tuple[bool, bool, bool]:
    """Whether the chain alone, the pinned key, and the kept checkpoint see that it is not so."""
    bundle, chain = evidence.folder / "after.zip", evidence.folder / "after.ndjson"
    row = bundles.newest(log)
    assert row is not None
    bundles.write_bundle(log, None, bundle, row)
    sql(("DELETE FROM pipeline_checkpoint", ()))
    chain.write_bytes(b"".join(bundles.export_lines(log, None)))
    pinned = [str(bundle), "--key", evidence.key]
    found = (
        verify.main([str(chain)]),
        verify.main(pinned),
        verify.main([*pinned, "--known", str(evidence.known)]),
    )
    assert (found[0] in (1, 3), found[1] in (0, 1), 2 not in found) == (True, True, True)
    return (found[0] == 1, found[1] != 0, found[2] != 0)


@pytest.mark.parametrize("name", sorted(ATTACKS))
def test_each_layer_sees_what_the_table_says_and_misses_the_rest(
    log: Workspace, evidence: Evidence, name: str
) -> None:
    attack, seen = ATTACKS[name]
    attack(log, evidence.folder)
    assert layers(log, evidence) == seen


@pytest.mark.parametrize(
    "name", [name for name, (_, seen) in ATTACKS.items() if seen[2] and name != "edit a row"]
)
def test_the_signer_refuses_by_its_memory_what_a_kept_checkpoint_sees(
    log: Workspace, evidence: Evidence, name: str
) -> None:
    ATTACKS[name][0](log, evidence.folder)
    with pytest.raises(VerificationError):
        signer.checkpoint(log.id)


def test_rewriting_makes_a_chain_that_holds(log: Workspace) -> None:
    rewrite(log, 4)
    leaves = [bytes.fromhex(row.hash) for row in Envelope.objects.order_by("seq")]
    assert merkle.root(merkle.append((), 0, leaves)[0]) == tree.head(log.id, "x", LATE).root
