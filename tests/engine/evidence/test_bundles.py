"""Bundles, receipts and exports, read by the stranger's verifier and never by ourselves."""

import json
import os
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from engine.evidence import bundles, signer
from engine.models import Checkpoint, Envelope, Run, Secret, Workspace
from engine.privacy import erasure
from engine.runtime import api, chains
from engine.store import tree
from nanovm_core import verify
from nanovm_core.errors import VerificationError
from tests.kit.house import House, failing_once, invoice, sql
from tests.kit.trees import drop_nodes, grown, set_node

HOLDS, INVALID, UNREADABLE, UNPINNED = 0, 1, 2, 3


@pytest.fixture
def run(house: House) -> Run:
    """A run that paid, in a log that holds another one and is signed."""
    return house.once(paid_beside_another)


def paid_beside_another(house: House) -> Run:
    """Two paid runs of a signed log: the first of them."""
    run = house.run()
    house.run(invoice("Total  EUR 95.00"), workspace=run.workspace)
    signer.checkpoint(run.workspace_id)
    return run


def judged(file: Path, log: Workspace, *more: str) -> int:
    """What the verifier says, with the log's key pinned."""
    return verify.main([str(file), "--key", signer.verifiers(log.origin)[0].vkey, *more])


def written(log: Workspace, run: Run | None, file: Path, *, disclosures: bool = False) -> Path:
    """The bundle of a log or a run over its present tree."""
    bundles.write_bundle(log, run, file, signer.checkpoint(log.id), disclosures=disclosures)
    return file


def exported(log: Workspace, run: Run | None, file: Path, *first: int) -> Path:
    """The export of a log or a run."""
    file.write_bytes(b"".join(bundles.export_lines(log, run, *first)))
    return file


def kept(file: Path, value: Any) -> Path:
    file.write_text(json.dumps(value))
    return file


def members(file: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(file) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def test_bundle_holds_exactly_its_members(run: Run, tmp_path: Path) -> None:
    log = members(written(run.workspace, None, tmp_path / "log.zip"))
    assert {*log} == {"manifest.json", "envelopes.ndjson", "checkpoint"}
    one = members(written(run.workspace, run, tmp_path / "run.zip"))
    assert {*one} == {*log, "proofs.json"}
    assert judged(tmp_path / "log.zip", run.workspace) == HOLDS
    assert judged(tmp_path / "run.zip", run.workspace) == HOLDS
    rows = Envelope.objects.filter(workspace=run.workspace).order_by("seq")
    assert log["envelopes.ndjson"] == b"".join(bytes(row.bytes) + b"\n" for row in rows)
    size = rows.count()
    assert json.loads(one["manifest.json"]) == {
        "v": "nanovm-bundle/1",
        "log": run.workspace.origin,
        "scope": {"kind": "run", "run": str(run.id)},
        "size": size,
        "leaves": run.length,
    }
    assert json.loads(log["manifest.json"])["scope"] == {"kind": "log"}
    own = rows.filter(run=str(run.id)).values_list("seq", flat=True)
    assert [*json.loads(one["proofs.json"])] == sorted(map(str, own))
    assert one["checkpoint"] == bytes(Checkpoint.objects.get(size=size).note)


def test_failed_export_leaves_the_file_before_it(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = written(run.workspace, run, tmp_path / "b.zip")
    before, names = file.read_bytes(), {*tmp_path.iterdir()}
    assert written(run.workspace, run, file).read_bytes() == before  # the same archive
    full = failing_once(tree.inclusion, OSError("disk full"))
    monkeypatch.setattr(tree, "inclusion", full)
    with pytest.raises(OSError, match="disk full"):
        written(run.workspace, run, file)
    assert (file.read_bytes(), {*tmp_path.iterdir()}) == (before, names)


def test_what_was_sealed_after_the_checkpoint_is_in_no_bundle(run: Run, tmp_path: Path) -> None:
    row = signer.checkpoint(run.workspace_id)
    before = exported(run.workspace, None, tmp_path / "log.ndjson").read_bytes()
    grown(run.workspace, 3)
    assert exported(run.workspace, None, tmp_path / "log.ndjson").read_bytes() == before
    bundles.write_bundle(run.workspace, None, tmp_path / "b.zip", row)
    assert judged(tmp_path / "b.zip", run.workspace) == HOLDS
    assert json.loads(members(tmp_path / "b.zip")["manifest.json"])["leaves"] == row.size


def test_disclosed_values_open_their_commitments(run: Run, tmp_path: Path) -> None:
    file = written(run.workspace, run, tmp_path / "b.zip", disclosures=True)
    assert judged(file, run.workspace) == HOLDS
    lines = members(file)["disclosures.ndjson"].splitlines()
    told = {each["ref"]: each["value"] for each in map(json.loads, lines)}
    texts = Secret.objects.filter(run=run, erased_ms=None, file="")
    assert set(told) == set(texts.values_list("ref", flat=True))
    assert "invoice.pdf" in told.values()
    erasure.erase_run(str(run.id), "art17-1-a", "operator")
    file = written(run.workspace, run, tmp_path / "c.zip", disclosures=True)
    assert members(file)["disclosures.ndjson"] == b""
    assert judged(file, run.workspace) == HOLDS


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE pipeline_envelope SET bytes = x'7b7d'",
        "UPDATE pipeline_envelope SET bytes = x'0a0a'",
        "DELETE FROM pipeline_envelope",
        "UPDATE pipeline_envelope SET seq = 900000",
    ],
)
def test_damage_is_exported_as_it_is_and_found_by_the_stranger(
    run: Run, tmp_path: Path, change: str
) -> None:
    other = Run.objects.filter(workspace=run.workspace).exclude(id=run.id).get()
    sql((f"{change} WHERE run = %s AND n = 2", (str(run.id),)))
    for scope in (run, None):
        assert judged(written(run.workspace, scope, tmp_path / "b.zip"), run.workspace) == INVALID
    assert judged(written(run.workspace, other, tmp_path / "o.zip"), run.workspace) == HOLDS
    assert (
        judged(kept(tmp_path / "r", bundles.receipt(other.workspace, other.name, 3)), run.workspace)
        == HOLDS
    )


def test_receipt_is_kept_by_a_visitor_whatever_becomes_of_the_tree(
    run: Run, tmp_path: Path
) -> None:
    size = signer.checkpoint(run.workspace_id).size
    set_node(run.workspace, 0, Envelope.objects.get(run=str(run.id), n=2).seq, bytes(32))
    drop_nodes(run.workspace, 'level = 1 AND "index" < %s', (size // 4,))
    assert judged(written(run.workspace, run, tmp_path / "b.zip"), run.workspace) == HOLDS
    for n in range(run.length):
        receipt = bundles.receipt(run.workspace, run.name, n)
        assert receipt is not None
        assert {*receipt} == {"run", "n", "seq", "canonical_hash", "checkpoint", "proof"}
        assert receipt["canonical_hash"] == Envelope.objects.get(run=str(run.id), n=n).hash
        assert judged(kept(tmp_path / "receipt.json", receipt), run.workspace) == HOLDS
    with pytest.raises(VerificationError, match="LOG-002"):
        bundles.receipt(run.workspace, run.name, run.length)


def test_receipt_waits_for_its_checkpoint(house: House) -> None:
    run = house.new()
    assert bundles.receipt(run.workspace, run.name, 0) is None
    signer.checkpoint(run.workspace_id)
    assert bundles.receipt(run.workspace, run.name, 0) is not None
    api.start(str(run.id), "visitor")
    assert bundles.receipt(run.workspace, run.name, 1) is None


def test_planted_checkpoint_does_not_stand_before_the_signed_one(
    run: Run, tmp_path: Path, django_assert_num_queries: Any
) -> None:
    signed = bundles.newest(run.workspace)
    assert signed is not None
    other = signer.checkpoint(grown(chains.create(), 3).id)
    for note in (b"x", bytes(other.note), bytes(signed.note)):
        Checkpoint.objects.create(workspace=run.workspace, size=999, note=note, at_ms=0)
    with django_assert_num_queries(1):  # however many were planted
        assert bundles.newest(run.workspace) == signed
    assert judged(exported(run.workspace, None, tmp_path / "e"), run.workspace) == HOLDS


def test_export_of_a_run_and_of_a_log_that_was_never_signed_hold_as_chains_alone(
    run: Run, tmp_path: Path
) -> None:
    file = exported(run.workspace, run, tmp_path / "run.ndjson")
    *lines, trailer = file.read_bytes().splitlines()
    assert (len(lines), json.loads(trailer)["head"]) == (run.length, run.head)
    assert judged(file, run.workspace) == UNPINNED
    *lines, trailer = exported(grown(chains.create(), 2), None, file).read_bytes().splitlines()
    assert (len(lines), json.loads(trailer)["checkpoint"]) == (3, None)
    assert verify.main([str(file)]) == UNPINNED


def test_export_of_what_is_new_goes_on_from_the_one_before(run: Run, tmp_path: Path) -> None:
    log, known = run.workspace, str(tmp_path / "known")
    at = signer.checkpoint(log.id).size
    assert judged(exported(log, None, tmp_path / "full"), log, "--known", known) == HOLDS
    for more in (5, 0):  # and then nothing
        grown(log, more)
        size = signer.checkpoint(log.id).size
        part = exported(log, None, tmp_path / "part", at)
        *lines, trailer = part.read_bytes().splitlines()
        assert (len(lines), json.loads(trailer)["first"]) == (size - at, at)
        assert judged(part, log) == UNREADABLE
        assert judged(part, log, "--known", known) == HOLDS
        at = size
    assert Path(known).read_bytes() == bytes(Checkpoint.objects.get(size=at).note)
    assert [*bundles.export_lines(log, None, 0)] == [*bundles.export_lines(log, None)]
    (line,) = bundles.export_lines(log, None, at + 9)  # beyond the end there is the trailer
    trailer = json.loads(line)
    assert (trailer["count"], trailer["head"], trailer["first"]) == (0, "0" * 64, at + 9)


@pytest.mark.parametrize("words", ["--run {run.code}", "--run {run.id}", "--log", "--log --first"])
def test_command_writes_over_the_present_tree(
    house: House, run: Run, tmp_path: Path, words: str
) -> None:
    log, file, known = run.workspace, tmp_path / "out", str(tmp_path / "known")
    size = signer.checkpoint(log.id).size
    first = [str(size)] if "--first" in words else []
    assert judged(exported(log, None, file), log, "--known", known) == HOLDS
    size = grown(log, 2).size
    done = house.command("export_bundle", *words.format(run=run).split(), *first, "-o", str(file))
    assert (done.returncode, done.stderr) == (0, "")
    assert f"at size {size}." in done.stdout
    assert judged(file, log, *(["--known", known] if first else [])) == HOLDS


def test_command_says_what_is_wrong_in_one_sentence(house: House, run: Run, tmp_path: Path) -> None:
    out = str(tmp_path / "out.zip")
    other = grown(chains.create())
    there = ["--log", "--workspace", other.origin, "--first"]
    wrong = [
        *(["--log"], ["--run", "nope"], ["--log", "--workspace", "x"], []),
        ["--run", run.code, "--workspace", other.origin],
        *(["--run", run.code, "--log"], ["--run", run.code, "--first", "1"]),
        ["--log", "--disclose", "--first", "1"],
        *([*there, text] for text in ("99999", "-1", "x", str(2**53))),
    ]
    for words in wrong:
        assert house.command("export_bundle", *words, "-o", out).returncode == 2, words
    drop_nodes(run.workspace, '"index" > 2')
    done = house.command("export_bundle", "--run", run.code, "-o", out)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "LOG-006" in done.stderr
    assert not Path(out).exists()


def link_to_a_pipe(folder: Path) -> Path:
    os.mkfifo(folder / "pipe")
    (folder / "link").symlink_to(folder / "pipe")
    return folder / "link"


PLACES: dict[str, Callable[[Path], Path]] = {
    "{} is a device, a pipe or a socket": link_to_a_pipe,
    "There is no folder {}/no; make it": lambda folder: folder / "no" / "out.zip",
    "{} is a folder; give -o": lambda folder: folder,
}


@pytest.mark.parametrize("more", [(), ("--first", "0")], ids=["bundle", "export"])
@pytest.mark.parametrize("said", PLACES)
def test_command_says_why_nothing_can_be_written_to_a_place_and_signs_nothing(
    house: House, tmp_path: Path, said: str, more: tuple[str, ...]
) -> None:
    log, place = grown(chains.create()), PLACES[said](tmp_path)
    before = written_to(tmp_path)
    words = ["--log", "--workspace", log.origin, *more, "-o", str(place)]
    done = house.command("export_bundle", *words)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert said.format(place if "link" in place.name else tmp_path) in done.stderr
    assert not Checkpoint.objects.filter(workspace=log).exists()
    assert written_to(tmp_path) == before


def written_to(folder: Path) -> dict[str, int]:
    """The names and modes in a folder, but for the database's files and the locks of processes."""
    modes = {each.name: each.lstat().st_mode for each in folder.iterdir()}
    ours = ("sqlite3", ".lock")
    return {name: mode for name, mode in modes.items() if not any(each in name for each in ours)}


def test_bundle_goes_where_a_link_leads_and_the_link_stays(run: Run, tmp_path: Path) -> None:
    kept, link = tmp_path / "kept.zip", tmp_path / "link.zip"
    link.symlink_to(kept)
    for _ in range(2):  # the link leads nowhere at first
        assert judged(written(run.workspace, run, link), run.workspace) == HOLDS
        assert (link.readlink(), kept.is_symlink(), judged(kept, run.workspace)) == (kept, False, 0)
        kept.write_bytes(b"older")


def test_place_that_takes_no_file_is_named_as_it_was_given(run: Run) -> None:
    with pytest.raises(OSError, match=r"^/proc/bundle\.zip cannot be written") as caught:
        written(run.workspace, run, Path("/proc/bundle.zip"))
    assert ".bundle-" not in str(caught.value)
