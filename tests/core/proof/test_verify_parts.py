"""The newest part of a log, verified against what is remembered of the envelopes before it."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from nanovm_core.verify import main
from tests.core.kit.builders import ROOT
from tests.core.proof.bundles import (
    HASH,
    LOG_KEY,
    WITNESS,
    ZEROS,
    begin,
    dumps,
    export,
    flips,
    judged,
    log_members,
    packed,
    receipt,
    run_id,
    run_members,
    whole_log,
)
from tests.core.proof.parts import (
    AT,
    KEY,
    NEW,
    OLD,
    forked,
    grown,
    part,
    refused,
    remembered,
    tail_of,
    verdict,
)


def test_part_leaves_what_a_full_verification_leaves(known: Path, tmp_path: Path) -> None:
    code, text = verdict(part(NEW), known)
    assert (code, text.splitlines()[0]) == (0, "PASS")
    assert f"{len(NEW.lines) - AT} envelopes that follow the {AT} that were verified" in text
    assert f"the export with first={len(NEW.lines)} goes on from here" in text
    assert f"- the first {AT} anew: how their runs ended, {known}.tail says." in text
    assert verdict(packed(log_members(NEW)), tmp_path / "full")[0] == 0
    assert remembered(known) == remembered(tmp_path / "full")


def test_log_is_followed_from_every_place_and_an_envelope_at_a_time(tmp_path: Path) -> None:
    assert verdict(export(NEW.lines, NEW.note()), tmp_path / "full")[0] == 0
    whole, one_by_one = remembered(tmp_path / "full"), tmp_path / "one by one"
    for first in range(len(NEW.lines)):
        note = NEW.note(size=first + 1)
        assert verdict(export([NEW.lines[first]], note, first=first), one_by_one)[0] == 0
        if first % 2 == 0:
            kept = tmp_path / str(first)
            assert verdict(export(NEW.lines[: first + 1], note), kept)[0] == 0
            assert verdict(part(NEW, first + 1), kept)[0] == 0
            assert remembered(kept) == whole
    assert remembered(one_by_one) == whole


def test_part_that_begins_at_0_is_the_whole_log(known: Path, tmp_path: Path) -> None:
    data = export(NEW.lines, NEW.note(), first=0)
    assert judged(main, data, *KEY)[0] == 0
    tail_of(known).unlink()
    assert verdict(data, known)[0] == 0
    assert verdict(part(NEW, len(NEW.lines)), known)[0] == 0


def test_nothing_new_holds(known: Path) -> None:
    before = remembered(known)
    data = part(OLD)
    assert data.count(b"\n") == 1
    assert (verdict(data, known)[0], remembered(known)) == (0, before)
    for changed in ({"head": HASH}, {"head": ""}, {"count": 1}, {"count": -1}, {"first": -AT}):
        refused(part(OLD, AT, None, **changed), known, 1)
    refused(part(NEW, AT, None, count=0, head=ZEROS), known, 1)


def test_part_that_is_not_witnessed_or_not_pinned_moves_nothing(known: Path) -> None:
    asked, before = ("--witness", WITNESS.vkey), remembered(known)
    assert verdict(part(NEW), known, *asked)[0] == 3
    code, text = judged(main, part(NEW), "--known", str(known))
    assert (code, text.splitlines()[0], remembered(known)) == (3, "UNPINNED", before)
    assert verdict(part(NEW, AT, NEW.note(LOG_KEY, WITNESS)), known, *asked)[0] == 0


def test_envelopes_behind_the_checkpoint_move_nothing(known: Path) -> None:
    for size in (AT - 1, AT, len(NEW.lines) - 2):
        text = refused(part(NEW, AT, NEW.note(size=size)), known, 3)
        assert f"the last {len(NEW.lines) - size} envelopes are later" in text
    lines = export(NEW.lines[AT:], None, first=AT)
    assert "no checkpoint came with it" in refused(lines, known, 3)


@pytest.mark.parametrize("first", [1, AT - 1, AT + 1, len(NEW.lines) - 1])
def test_overlap_and_gap(known: Path, first: int) -> None:
    text = refused(part(NEW, first), known, 2)
    assert f"ends at {AT}, so ask for first={AT}" in text
    refused(part(NEW, AT, None, first=first), known, 2)


def test_part_needs_what_came_before(known: Path, tmp_path: Path) -> None:
    for code, text in (judged(main, part(NEW), *KEY), verdict(part(NEW), tmp_path / "nothing")):
        assert (code, f"begins at seq {AT}: bring the --known NOTE" in text) == (2, True)
    tail_of(known).unlink()
    code, text = verdict(part(NEW), known)
    assert (code, "it is missing" in text) == (2, True)
    assert "verify a full export once with this --known" in text
    assert {each.name for each in tmp_path.iterdir()} == {"known"}
    assert known.read_bytes() == OLD.note()
    assert verdict(export(OLD.lines, OLD.note()), known)[0] == 0
    assert verdict(part(NEW), known)[0] == 0


def test_note_of_a_run_or_a_receipt_has_no_tail(tmp_path: Path) -> None:
    for data in (packed(run_members(OLD, run_id(0))), receipt(OLD, 3)):
        kept = tmp_path / str(len(data))
        code, text = verdict(data, kept)
        assert (code, "remembered: the note alone" in text) == (0, True)
        assert (verdict(part(NEW), kept)[0], tail_of(kept).exists()) == (2, False)


def test_receipt_of_the_same_size_leaves_the_tail_in_use(known: Path) -> None:
    assert verdict(receipt(OLD, 3, LOG_KEY, WITNESS), known)[0] == 0
    assert known.read_bytes() == OLD.note(LOG_KEY, WITNESS)
    assert verdict(part(NEW), known)[0] == 0


def test_shorter_log_is_stale_and_another_history_diverged(known: Path) -> None:
    text = refused(part(OLD, AT, OLD.note(size=AT - 2)), known, 5)
    assert f"this log has {AT - 2} envelopes; it had {AT} before" in text
    fork = forked(OLD)
    text = refused(part(fork), known, 4)
    assert text.startswith("DIVERGED\n")
    assert all(note.decode() in text for note in (fork.note(), OLD.note()))


def test_another_history_that_went_on_is_invalid_and_in_full_diverged(known: Path) -> None:
    fork = grown(forked(OLD))
    text = refused(part(fork), known, 1)
    assert "a full export, verified with the same --known, tells whether" in text
    refused(export(fork.lines, fork.note()), known, 4)


@pytest.mark.parametrize("every", [29, pytest.param(1, marks=pytest.mark.soak)])
def test_no_flipped_byte_of_a_part_passes(known: Path, every: int) -> None:
    log = whole_log(3)
    log.add("log", "budget")
    before = remembered(known)
    for flipped in flips(part(log), every):
        assert verdict(flipped, known)[0] in (1, 2), flipped
    assert remembered(known) == before


def test_no_part_that_was_cut_passes(known: Path) -> None:
    data, lines = part(NEW), NEW.lines[AT:]
    for end in range(0, len(data), 211):
        assert verdict(data[:end], known)[0] in (1, 2)
    bad = [[*lines, lines[-1]], NEW.lines[AT - 1 :]]
    for left in (1, len(lines) // 2, len(lines) - 1):
        bad += [lines[:left], lines[left:], [*lines[:left], *lines[left + 1 :]]]
    for each in bad:
        refused(export(each, NEW.note(), first=AT), known, 1)


ENDED, OPEN = run_id(1), run_id(7)
BEFORE = whole_log(3)
begin(BEFORE, OPEN)
SIGNED_FAULTS: dict[str, dict[str, Any]] = {
    "an old run begins again": {"run": ENDED, "kind": "genesis", "n": 0, "prev": ZEROS},
    "the log begins again": {"run": "log", "kind": "genesis", "n": 0, "prev": ZEROS},
    "an ended run goes on": {"run": ENDED, "kind": "intent"},
    "an ended run ends": {"run": ENDED, "kind": "terminal"},
    "an n is left out": {"run": OPEN, "kind": "intent", "n": 4},
    "an n comes twice": {"run": OPEN, "kind": "intent", "n": 2},
    "another predecessor": {"run": OPEN, "kind": "intent", "prev": HASH},
    "no predecessor": {"run": OPEN, "kind": "intent", "prev": ZEROS},
    "another length": {"run": OPEN, "kind": "terminal", "length": 3},
    "a run without its genesis": {"run": run_id(8), "kind": "intent"},
    "sealed damage": {"run": OPEN, "kind": "integrity", "prev": ZEROS, "at": 1},
    "another log": {"run": OPEN, "kind": "intent", "log": "log.example/other"},
    "another seq": {"run": OPEN, "kind": "intent", "seq": 1},
}


@pytest.mark.parametrize("name", ["", *SIGNED_FAULTS])
def test_signed_fault_behind_the_remembered_ends(name: str, tmp_path: Path) -> None:
    """The root is the signed one: only the ends of the runs tell that an envelope is wrong."""
    log, size, kept = whole_log(3), len(BEFORE.lines), tmp_path / "known"
    begin(log, OPEN)
    assert verdict(export(log.lines, log.note()), kept)[0] == 0
    log.add(**SIGNED_FAULTS.get(name, {"run": OPEN, "kind": "intent"}))
    assert verdict(part(log, size), kept)[0] == (1 if name else 0)


def test_part_is_verified_by_the_program_alone(known: Path, tmp_path: Path) -> None:
    file = tmp_path / "part.ndjson"
    file.write_bytes(part(NEW))
    program = (sys.executable, "-I", str(ROOT / "nanovm_core/verify.py"))
    asked = (str(file), *KEY, "--known", "known")
    for code in (0, 2):  # once it has moved on, the same part is one of the past
        ran = subprocess.run(
            [*program, *asked], cwd=known.parent, capture_output=True, env={}, check=False
        )
        assert (ran.returncode, ran.stderr) == (code, b"")


def test_export_of_nothing_shows_nothing() -> None:
    trailer = {"v": "nanovm-export/1", "count": 0, "head": ZEROS, "checkpoint": None}
    for more in ({}, {"first": 0}):
        code, text = judged(main, dumps({**trailer, **more}) + b"\n", *KEY)
        assert (code, "count, head or first is not one" in text) == (1, True)
