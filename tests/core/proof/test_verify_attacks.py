"""The verifier under attack: flipped bytes, forged containers, and rewrites of what is known."""

import hashlib
import io
import json
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from nanovm_core.verify import LINE_BYTES_MAX
from tests.core.proof import bundles as kit

KEY = ("--key", kit.LOG_KEY.vkey)
RUN = kit.run_id(0)
LOG = kit.whole_log(1)


def code(data: bytes, *arguments: str) -> int:
    return kit.judged(data, *KEY, *arguments)[0]


SMALL = kit.Log()
SMALL.add("log", "genesis")
SMALL.add(RUN, "genesis", secrets=[{"slot": "payee", "ref": kit.REF, "c": kit.commitment()}])
SMALL.add(RUN, "terminal", outcome="completed")
WHOLE = {
    "log": kit.log_members(SMALL, disclosures=kit.disclosed()),
    "run": kit.run_members(SMALL, RUN, disclosures=kit.disclosed()),
    "cosigned": kit.log_members(SMALL, kit.LOG_KEY, kit.WITNESS),
}
MEMBERS = [(kind, name) for kind in ("log", "run") for name in WHOLE[kind]]


# Every 31st byte, and all of them in `make soak`.
EVERY = pytest.mark.parametrize("every", [31, pytest.param(1, marks=pytest.mark.soak)])


@EVERY
@pytest.mark.parametrize(("kind", "name"), [*MEMBERS, ("cosigned", "checkpoint")])
def test_no_flipped_byte_of_a_member_passes(kind: str, name: str, every: int) -> None:
    asked = ("--witness", kit.WITNESS.vkey) if kind == "cosigned" else ()
    assert code(kit.packed(WHOLE[kind]), *asked) == 0
    for flipped in kit.flips(WHOLE[kind][name], every):
        assert code(kit.packed({**WHOLE[kind], name: flipped}), *asked) in (1, 2, 3), flipped


@EVERY
@pytest.mark.parametrize("kind", ["log", "run"])
def test_a_flipped_byte_of_the_zip_changes_no_member_unseen(kind: str, every: int) -> None:
    """Dates and the like may change: what is read is then the same, byte for byte."""
    for flipped in kit.flips(kit.packed(WHOLE[kind]), every):
        if code(flipped) == 0:
            with zipfile.ZipFile(io.BytesIO(flipped)) as archive:
                assert {name: archive.read(name) for name in archive.namelist()} == WHOLE[kind]


@EVERY
@pytest.mark.parametrize("data", [kit.export(SMALL.lines, SMALL.note()), kit.receipt(SMALL, 2)])
def test_no_flipped_byte_of_an_export_or_a_receipt_passes(data: bytes, every: int) -> None:
    for flipped in kit.flips(data, every):
        found = code(flipped)
        if found == 0:  # white space, and a receipt's own words: its caveat says so
            held, other = json.loads(data), json.loads(flipped)
            assert {k for k in held if held[k] != other[k]} <= {"run", "n"}
        assert found in (0, 1, 2)


@pytest.mark.parametrize("data", [kit.packed(WHOLE["run"]), kit.export(SMALL.lines, SMALL.note())])
def test_whatever_is_cut_off_is_missed(data: bytes) -> None:
    for end in range(0, len(data), 29):
        assert code(data[:end]) in (1, 2)
    assert code(data + b"x") in (1, 2)


def without(members: Mapping[str, Any], name: str) -> dict[str, Any]:
    return {key: data for key, data in members.items() if key != name}


def test_missing_and_additional_members() -> None:
    members = kit.run_members(LOG, RUN)
    assert {code(kit.packed(without(members, name))) for name in members} <= {1, 2}
    for name in ("notes.txt", "./checkpoint", "Checkpoint", "x/", "proofs.json"):
        assert code(kit.packed({**kit.log_members(LOG), name: b"{}"})) == 1


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_member_twice() -> None:
    members = kit.log_members(LOG)
    for name, data in members.items():
        assert code(kit.packed([*members.items(), (name, data)])) == 1
        assert code(kit.packed([(name, b"other"), *members.items()])) == 1


def manifested(members: Mapping[str, bytes], **changed: Any) -> bytes:
    held = json.loads(members["manifest.json"])
    return kit.packed({**members, "manifest.json": kit.dumps({**held, **changed})})


SIZE, RUNS = len(LOG.lines), len(LOG.of(RUN))
BAD_MANIFESTS: list[dict[str, Any]] = [
    {"v": "nanovm-bundle/2"}, {"v": None}, {"log": "log.example/other"}, {"log": None},
    {"size": SIZE - 1}, {"size": SIZE + 1}, {"size": str(SIZE)}, {"size": True}, {"size": -1},
    {"leaves": RUNS - 1}, {"leaves": RUNS + 1}, {"leaves": 0}, {"leaves": None}, {"more": 1},
    {"scope": {"kind": "log"}}, {"scope": {"kind": "run", "run": kit.run_id(1)}}, {"scope": {}},
    {"scope": {"kind": "run", "run": RUN, "n": 1}}, {"scope": "log"}, {"scope": None},
    {"scope": {"kind": "run"}}, {"scope": {"kind": "log", "run": RUN}}, {"scope": ["log"]},
]  # fmt: skip


def test_bad_manifests() -> None:
    members = kit.run_members(LOG, RUN)
    assert code(manifested(members)) == 0
    for changed in BAD_MANIFESTS:
        assert code(manifested(members, **changed)) in (1, 2), changed
    for leaves in (0, SIZE - 1, SIZE + 1):
        assert code(manifested(kit.log_members(LOG), leaves=leaves)) == 1


def test_manifest_and_proofs_are_canonical() -> None:
    members = kit.run_members(LOG, RUN)
    for name in ("manifest.json", "proofs.json"):
        for data in (members[name] + b"\n", json.dumps(json.loads(members[name])).encode(), b"[]"):
            assert code(kit.packed({**members, name: data})) == 1


def test_proofs_are_of_these_envelopes_and_lead_to_the_root() -> None:
    members = kit.run_members(LOG, RUN)
    held = json.loads(members["proofs.json"])
    first, last, *_ = held
    other = json.loads(kit.run_members(LOG, "log")["proofs.json"])
    bad: list[dict[str, Any]] = [
        without(held, first), {**held, **other}, {**held, first: held[last]}, {**held, "99": []},
        {**held, first: held[first][:-1]}, {**held, first: [*held[first], held[first][0]]},
        {**held, first: []}, {**held, first: None}, {**held, first: [1]}, {},
        {**held, first: [held[first][0] + "\n", *held[first][1:]]},
        {**without(held, first), "0" + first: held[first]},
    ]  # fmt: skip
    for proofs in bad:
        assert code(kit.packed({**members, "proofs.json": kit.dumps(proofs)})) == 1, proofs


def test_what_hides_beside_the_members_is_found() -> None:
    whole = kit.packed(kit.log_members(LOG))
    commented = io.BytesIO(whole)
    with zipfile.ZipFile(commented, "a") as archive:
        archive.comment = b"see you at the server"
    start = zipfile.ZipFile(io.BytesIO(whole)).start_dir
    patched = bytearray(whole[:start] + b"hidden!!" + whole[start:])
    patched[-6:-2] = (start + 8).to_bytes(4, "little")
    for data in (commented.getvalue(), b"PK-before" + whole, whole + b"\0" * 30, bytes(patched)):
        assert code(data) in (1, 2)


def test_zip_bombs_are_not_unpacked() -> None:
    random = hashlib.shake_256(b"").digest(LINE_BYTES_MAX + 1)  # no bomb, but over its limit
    for name, data in (("envelopes.ndjson", bytes(2 * LINE_BYTES_MAX)), ("manifest.json", random)):
        found, text = kit.judged(kit.packed({**kit.log_members(LOG), name: data}), *KEY)
        assert (found, "unpacks to more" in text) == (2, True)


def test_files_of_other_kinds() -> None:
    others = (
        b"",
        b"seq,run\n1,2\n",
        b"PK\5\6" + bytes(18),
        kit.packed({"x": b""}),
        b"\x1f\x8b",
        b"{",
    )
    for data in others:
        assert kit.judged(data)[0] == 2


def test_exports() -> None:
    lines, run = LOG.lines, [LOG.lines[seq] for seq in LOG.of(RUN)]
    assert code(kit.export(lines, LOG.note())) == 0
    assert code(kit.export(lines, LOG.note(size=5))) == 3  # five are signed, the others are not
    assert code(kit.export(lines, None)) == 3
    assert code(kit.export(run, LOG.note())) == 3
    assert code(kit.export(run, None)) == 3
    assert code(kit.export([LOG.lines[seq] for seq in LOG.of("log")], LOG.note())) == 3
    for bad in (lines[:-1], lines[1:], lines[:3] + lines[4:], [*lines, lines[-1]], lines[::-1]):
        assert code(kit.export(bad, LOG.note())) == 1
        assert code(kit.export(bad, None)) == (3 if bad == lines[:-1] else 1)
    for bad in (run[1:], run[:1] + run[2:], [*run, run[-1]], [*run, lines[0]], run[::-1]):
        assert code(kit.export(bad, LOG.note())) == 1
    assert code(kit.export(lines, kit.note(SIZE, bytes(32)))) == 1
    assert code(kit.export(lines, LOG.note(kit.OTHER_KEY))) == 1


def test_export_trailers() -> None:
    whole = kit.export(LOG.lines, LOG.note())
    assert code(b"".join(line + b"\n" for line in LOG.lines)) == 2
    assert code(kit.export(LOG.lines, LOG.note(), filter="kind=refused")) == 2
    assert code(whole.replace(b"nanovm-export/1", b"nanovm-filtered/1")) == 2
    for changed in ({"count": 1}, {"head": kit.HASH}, {"count": "9"}, {"head": None}, {"count": 0}):
        assert code(kit.export(LOG.lines, LOG.note(), **changed)) == 1
    assert code(kit.export(LOG.lines, None, checkpoint=1)) == 1
    assert code(whole + b"\n") == 2


def test_receipts() -> None:
    assert code(kit.receipt(LOG, 0)) == 0
    proof = json.loads(kit.receipt(LOG, 0))["proof"]
    changed: dict[str, Any]
    for changed in (
        {"seq": 4}, {"seq": SIZE}, {"seq": "3"}, {"n": 99}, {"n": -1}, {"run": "x"}, {"more": 1},
        {"canonical_hash": kit.HASH}, {"canonical_hash": kit.leaf(LOG.lines[3]).hex().upper()},
        {"proof": []}, {"proof": proof}, {"proof": None}, {"checkpoint": ""}, {"checkpoint": None},
        {"checkpoint": LOG.note(size=5).decode()}, {"checkpoint": LOG.note(kit.OTHER_KEY).decode()},
    ):  # fmt: skip
        assert code(kit.receipt(LOG, 3, **changed)) == 1, changed
    assert code(kit.receipt(LOG, 3).replace(b'"n"', b'"n": 1, "n"')) in (1, 2)


def test_receipt_whose_own_words_are_wrong_is_told_so_and_not_that_its_hash_is() -> None:
    assert code(kit.receipt(LOG, 3, n=3)) == 0  # seq 3 has three envelopes before it, n = 0 to 2
    found, text = kit.judged(kit.receipt(LOG, 3, n=4), *KEY)
    assert (found, "its n, run or seq is another's" in text, "its hash" in text) == (1, True, False)
    assert ("expected: n = 3 at most" in text, "found: n = 4" in text) == (True, True)
    assert (
        "its hash is not there" in kit.judged(kit.receipt(LOG, 3, canonical_hash=kit.HASH), *KEY)[1]
    )


def rewritten(log: kit.Log, first: int) -> kit.Log:
    """The log with other content from ``first`` on, its chains made whole again."""
    other = kit.Log()
    for seq, line in enumerate(log.lines):
        held = json.loads(line)
        own = {key: held[key] for key in held.keys() - {"seq", "prev", "n", "log", "v", "run"}}
        if seq >= first:
            own["at_ms"] += 1
        other.add(held["run"], **own)
    return other


GROWN = kit.whole_log(1)
kit.begin(GROWN, kit.run_id(5))
EDITED = {
    **kit.log_members(GROWN),
    "envelopes.ndjson": kit.log_members(GROWN)["envelopes.ndjson"].replace(b"128450", b"999999", 1),
}
REWRITTEN = rewritten(GROWN, 3)


def test_known_is_made_and_then_moved_on_by_what_extends_it(tmp_path: Path) -> None:
    kept = tmp_path / "known"
    asked = ("--known", str(kept))
    assert code(kit.packed(EDITED), *asked) == 1
    assert not kept.exists()
    assert code(kit.packed(kit.log_members(LOG)), *asked) == 0
    assert kept.read_bytes() == LOG.note()
    assert code(kit.packed(kit.log_members(GROWN)), *asked) == 0
    assert kept.read_bytes() == GROWN.note()
    assert code(kit.packed(kit.log_members(LOG)), *asked) == 5
    assert code(kit.packed(kit.log_members(REWRITTEN)), *asked) == 4
    assert code(kit.export(REWRITTEN.lines, None), *asked) == 4
    run = [REWRITTEN.lines[seq] for seq in REWRITTEN.of(RUN)]
    assert code(kit.export(run, REWRITTEN.note()), *asked) == 4
    assert {each.name for each in tmp_path.iterdir()} == {"known", "known.tail"}


@pytest.mark.parametrize("new", [kit.run_members(GROWN, RUN), None])
def test_a_longer_log_is_not_proved_by_a_run_or_a_receipt(
    new: dict[str, bytes] | None, tmp_path: Path
) -> None:
    kept = tmp_path / "known"
    kept.write_bytes(LOG.note())
    data = kit.packed(new) if new else kit.receipt(GROWN, 3)
    found, text = kit.judged(data, *KEY, "--known", str(kept))
    assert (found, "that it extends the 7 known envelopes" in text) == (0, True)
    assert kept.read_bytes() == LOG.note()


def test_known_without_a_key_is_made_but_not_replaced(tmp_path: Path) -> None:
    kept = tmp_path / "known"
    forked = kit.log_members(rewritten(LOG, 3))
    for members, status in (
        (kit.log_members(LOG), 3),
        (kit.log_members(GROWN, kit.OTHER_KEY), 3),
        (forked, 4),
    ):
        assert kit.judged(kit.packed(members), "--known", str(kept))[0] == status
        assert kept.read_bytes() == LOG.note()


def test_known_under_another_key_or_of_another_log(tmp_path: Path) -> None:
    kept = tmp_path / "known"
    asked = ("--known", str(kept))
    other = kit.Log("log.example/other")
    other.add("log", "genesis")
    theirs = other.note(kit.Signer(other.origin))
    for held in (LOG.note(kit.OTHER_KEY), theirs, b"", b"\xff", b"{}"):
        kept.write_bytes(held)
        found, text = kit.judged(kit.packed(kit.log_members(LOG)), *KEY, *asked)
        assert (found, text.splitlines()[0]) == (2, "UNREADABLE")
        assert kept.read_bytes() == held
    kept.write_bytes(theirs)
    assert kit.judged(kit.packed(kit.log_members(LOG)), *asked)[0] == 2
    kept.write_bytes(LOG.note(kit.OTHER_KEY))
    assert (
        code(kit.packed(kit.log_members(GROWN)), "--key", kit.OTHER_KEY.vkey, *asked) == 0
    )  # rotated


def test_known_in_a_folder_that_is_not_there_or_without_its_witness(tmp_path: Path) -> None:
    kept, data = tmp_path / "no" / "known", kit.packed(kit.log_members(LOG))
    status, said = kit.judged(data, *KEY, "--known", str(kept))
    assert (status, f"make the folder of {kept} first" in said) == (2, True)
    kept = tmp_path / "known"
    assert code(data, "--known", str(kept), "--witness", kit.WITNESS.vkey) == 3
    assert not kept.exists()
