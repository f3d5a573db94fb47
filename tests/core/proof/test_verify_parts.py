"""The newest part of a log, verified against what is remembered of the envelopes before it."""

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from nanovm_core import verify
from tests.core.proof import bundles as kit

KEY = ("--key", kit.LOG_KEY.vkey)


def grown(log: kit.Log) -> kit.Log:
    """The log some envelopes later: an old run goes on, new ones begin, the log's own does too."""
    log.add("log", "budget", note="more")
    kit.begin(log, kit.run_id(9))
    log.add(kit.run_id(1), "refused", rule="FSM-003")
    kit.begin(log, kit.run_id(4))
    log.add(kit.run_id(9), "terminal", outcome="completed")
    return log


OLD, NEW = kit.whole_log(3), grown(kit.whole_log(3))
AT = len(OLD.lines)


def part(log: kit.Log, first: int = AT, note: bytes | None = None, /, **changed: Any) -> bytes:
    """The export of a log from a place on, under the log's newest checkpoint or this one."""
    lines, named = log.lines[first:], {"first": first, **changed}
    if lines:
        return kit.export(lines, note or log.note(), **named)
    empty = {"v": "nanovm-export/1", "count": 0, "head": kit.ZEROS}
    return kit.dumps({**empty, "checkpoint": (note or log.note()).decode(), **named}) + b"\n"


def verdict(data: bytes, kept: Path, *more: str) -> tuple[int, str]:
    """Exit code and text, with the log's key and what is remembered."""
    return kit.judged(data, *KEY, "--known", str(kept), *more)


def tail_of(kept: Path) -> Path:
    return kept.with_name(f"{kept.name}.tail")


def remembered(kept: Path) -> tuple[bytes, bytes]:
    return kept.read_bytes(), tail_of(kept).read_bytes()


def refused(data: bytes, kept: Path, code: int) -> str:
    """What is said of a file that is not good; nothing that is remembered may move."""
    before = remembered(kept)
    found, text = verdict(data, kept)
    assert (found, remembered(kept)) == (code, before), text
    return text


def forked(log: kit.Log) -> kit.Log:
    """The log with another last envelope."""
    other = kit.Log()
    for line, place in zip(log.lines[:-1], log.places, strict=False):
        other.append(line, *place)
    held = json.loads(log.lines[-1])
    other.put({**held, "at_ms": held["at_ms"] + 1})
    return other


@pytest.fixture
def known(tmp_path: Path) -> Path:
    """A note beside which the tail of the old log lies."""
    kept = tmp_path / "known"
    found, text = verdict(kit.export(OLD.lines, OLD.note()), kept)
    assert found == 0, text
    return kept


def test_part_leaves_what_a_full_verification_leaves(known: Path, tmp_path: Path) -> None:
    code, text = verdict(part(NEW), known)
    assert (code, text.splitlines()[0]) == (0, "PASS")
    assert f"{len(NEW.lines) - AT} envelopes that follow the {AT} that were verified" in text
    assert f"the export with first={len(NEW.lines)} goes on from here" in text
    assert f"- the first {AT} anew: how their runs ended, {known}.tail says." in text
    assert verdict(kit.packed(kit.log_members(NEW)), tmp_path / "full")[0] == 0
    assert remembered(known) == remembered(tmp_path / "full")


def test_log_is_followed_from_every_place_and_an_envelope_at_a_time(tmp_path: Path) -> None:
    assert verdict(kit.export(NEW.lines, NEW.note()), tmp_path / "full")[0] == 0
    whole, one_by_one = remembered(tmp_path / "full"), tmp_path / "one by one"
    for first in range(len(NEW.lines)):
        note = NEW.note(size=first + 1)
        assert verdict(kit.export([NEW.lines[first]], note, first=first), one_by_one)[0] == 0
        if first % 4 == 0:
            kept = tmp_path / str(first)
            assert verdict(kit.export(NEW.lines[: first + 1], note), kept)[0] == 0
            assert verdict(part(NEW, first + 1), kept)[0] == 0
            assert remembered(kept) == whole
    assert remembered(one_by_one) == whole


def test_part_that_begins_at_0_is_the_whole_log(known: Path, tmp_path: Path) -> None:
    data = kit.export(NEW.lines, NEW.note(), first=0)
    assert kit.judged(data, *KEY)[0] == 0
    tail_of(known).unlink()
    assert verdict(data, known)[0] == 0
    assert verdict(part(NEW, len(NEW.lines)), known)[0] == 0


def test_nothing_new_holds(known: Path) -> None:
    before = remembered(known)
    data = part(OLD)
    assert data.count(b"\n") == 1
    assert (verdict(data, known)[0], remembered(known)) == (0, before)
    for changed in ({"head": kit.HASH}, {"head": ""}, {"count": 1}, {"count": -1}, {"first": -AT}):
        refused(part(OLD, AT, None, **changed), known, 1)
    refused(part(NEW, AT, None, count=0, head=kit.ZEROS), known, 1)


def test_part_that_is_not_witnessed_or_not_pinned_moves_nothing(known: Path) -> None:
    asked, before = ("--witness", kit.WITNESS.vkey), remembered(known)
    assert verdict(part(NEW), known, *asked)[0] == 3
    code, text = kit.judged(part(NEW), "--known", str(known))
    assert (code, text.splitlines()[0], remembered(known)) == (3, "UNPINNED", before)
    assert verdict(part(NEW, AT, NEW.note(kit.LOG_KEY, kit.WITNESS)), known, *asked)[0] == 0


def test_envelopes_behind_the_checkpoint_move_nothing(known: Path) -> None:
    for size in (AT - 1, AT, len(NEW.lines) - 2):
        text = refused(part(NEW, AT, NEW.note(size=size)), known, 3)
        assert f"the last {len(NEW.lines) - size} envelopes are later" in text
    lines = kit.export(NEW.lines[AT:], None, first=AT)
    assert "no checkpoint came with it" in refused(lines, known, 3)


@pytest.mark.parametrize("first", [1, AT - 1, AT + 1, len(NEW.lines) - 1])
def test_overlap_and_gap(known: Path, first: int) -> None:
    text = refused(part(NEW, first), known, 2)
    assert f"ends at {AT}, so ask for first={AT}" in text
    refused(part(NEW, AT, None, first=first), known, 2)


def test_part_needs_what_came_before(known: Path, tmp_path: Path) -> None:
    for code, text in (kit.judged(part(NEW), *KEY), verdict(part(NEW), tmp_path / "nothing")):
        assert (code, f"begins at seq {AT}: bring the --known NOTE" in text) == (2, True)
    tail_of(known).unlink()
    code, text = verdict(part(NEW), known)
    assert (code, "it is missing" in text) == (2, True)
    assert "verify a full export once with this --known" in text
    assert {each.name for each in tmp_path.iterdir()} == {"known"}
    assert known.read_bytes() == OLD.note()
    assert verdict(kit.export(OLD.lines, OLD.note()), known)[0] == 0
    assert verdict(part(NEW), known)[0] == 0


def test_note_of_a_run_or_a_receipt_has_no_tail(tmp_path: Path) -> None:
    for data in (kit.packed(kit.run_members(OLD, kit.run_id(0))), kit.receipt(OLD, 3)):
        kept = tmp_path / str(len(data))
        code, text = verdict(data, kept)
        assert (code, "remembered: the note alone" in text) == (0, True)
        assert (verdict(part(NEW), kept)[0], tail_of(kept).exists()) == (2, False)


def test_receipt_of_the_same_size_leaves_the_tail_in_use(known: Path) -> None:
    assert verdict(kit.receipt(OLD, 3, kit.LOG_KEY, kit.WITNESS), known)[0] == 0
    assert known.read_bytes() == OLD.note(kit.LOG_KEY, kit.WITNESS)
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
    refused(kit.export(fork.lines, fork.note()), known, 4)


@pytest.mark.parametrize("every", [29, pytest.param(1, marks=pytest.mark.soak)])
def test_no_flipped_byte_of_a_part_passes(known: Path, every: int) -> None:
    log = kit.whole_log(3)
    log.add("log", "budget")
    before = remembered(known)
    for flipped in kit.flips(part(log), every):
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
        refused(kit.export(each, NEW.note(), first=AT), known, 1)


ENDED, OPEN = kit.run_id(1), kit.run_id(7)
BEFORE = kit.whole_log(3)
kit.begin(BEFORE, OPEN)
SIGNED_FAULTS: dict[str, dict[str, Any]] = {
    "an old run begins again": {"run": ENDED, "kind": "genesis", "n": 0, "prev": kit.ZEROS},
    "the log begins again": {"run": "log", "kind": "genesis", "n": 0, "prev": kit.ZEROS},
    "an ended run goes on": {"run": ENDED, "kind": "intent"},
    "an ended run ends": {"run": ENDED, "kind": "terminal"},
    "an n is left out": {"run": OPEN, "kind": "intent", "n": 4},
    "an n comes twice": {"run": OPEN, "kind": "intent", "n": 2},
    "another predecessor": {"run": OPEN, "kind": "intent", "prev": kit.HASH},
    "no predecessor": {"run": OPEN, "kind": "intent", "prev": kit.ZEROS},
    "another length": {"run": OPEN, "kind": "terminal", "length": 3},
    "a run without its genesis": {"run": kit.run_id(8), "kind": "intent"},
    "sealed damage": {"run": OPEN, "kind": "integrity", "prev": kit.ZEROS, "at": 1},
    "another log": {"run": OPEN, "kind": "intent", "log": "log.example/other"},
    "another seq": {"run": OPEN, "kind": "intent", "seq": 1},
}


@pytest.mark.parametrize("name", ["", *SIGNED_FAULTS])
def test_signed_fault_behind_the_remembered_ends(name: str, tmp_path: Path) -> None:
    """The root is the signed one: only the ends of the runs tell that an envelope is wrong."""
    log, size, kept = kit.whole_log(3), len(BEFORE.lines), tmp_path / "known"
    kit.begin(log, OPEN)
    assert verdict(kit.export(log.lines, log.note()), kept)[0] == 0
    log.add(**SIGNED_FAULTS.get(name, {"run": OPEN, "kind": "intent"}))
    assert verdict(part(log, size), kept)[0] == (1 if name else 0)


def test_export_of_nothing_shows_nothing() -> None:
    trailer = {"v": "nanovm-export/1", "count": 0, "head": kit.ZEROS, "checkpoint": None}
    for more in ({}, {"first": 0}):
        code, text = kit.judged(kit.dumps({**trailer, **more}) + b"\n", *KEY)
        assert (code, "count, head or first is not one" in text) == (1, True)


# The tail beside a known note: what is remembered, so that the newest part is enough.

END_BYTES = 62  # of a run in a tail: its key (17), leaf (32), seq (8), next n (4), ended (1)


def summed(line: bytes, ends: bytes) -> bytes:
    """A tail with a digest that fits: as whoever can write the file could make one."""
    return line + b"\n" + ends + hashlib.sha256(line + b"\n" + ends).digest()


def split(tail: bytes) -> tuple[dict[str, Any], bytes]:
    line, _, rest = tail.partition(b"\n")
    return json.loads(line), rest[:-32]


def test_no_flipped_or_cut_tail_is_used(known: Path) -> None:
    tail, note = tail_of(known).read_bytes(), verify.parse_checkpoint(OLD.note())
    for at in range(len(tail)):
        for changed in (tail[:at] + bytes([tail[at] ^ 1]) + tail[at + 1 :], tail[:at]):
            with pytest.raises(ValueError, match="it was changed or cut off"):
                verify.read_tail(changed, note)
    for changed in (tail[:-1], tail + b"x", b""):
        tail_of(known).write_bytes(changed)
        assert "it was changed or cut off" in refused(part(NEW), known, 2)


PEAKS, PEAK_COUNT = [leaf.hex() for leaf in OLD.leaves[:9]], AT.bit_count()
CHANGED: dict[str, tuple[Any, ...]] = {
    "v": ("nanovm-tail/2",),
    "log": ("log.example/other", 1),
    "size": (AT - 1, AT + 1, str(AT)),
    "peaks": (
        *(PEAKS[:count] for count in (PEAK_COUNT - 1, PEAK_COUNT, PEAK_COUNT + 1)),
        *([verify.parse_checkpoint(OLD.note()).root.hex()], [1] * PEAK_COUNT, 1),
    ),
    "more": (1,),
}


@pytest.mark.parametrize("name", CHANGED)
def test_changed_line_of_a_tail_is_found_under_a_fitting_digest(known: Path, name: str) -> None:
    held, ends = split(tail_of(known).read_bytes())
    tail_of(known).write_bytes(summed(kit.dumps(held), ends))
    assert verdict(part(OLD), known)[0] == 0
    for value in CHANGED[name]:
        tail_of(known).write_bytes(summed(kit.dumps({**held, name: value}), ends))
        assert "does not fit" in refused(part(NEW), known, 2)


def test_tail_of_another_form_is_not_used_under_a_fitting_digest(known: Path) -> None:
    held, ends = split(tail_of(known).read_bytes())
    less = [{key: value for key, value in held.items() if key != field} for field in held]
    for line in (*map(kit.dumps, less), b"", b"[]", b" " + kit.dumps(held), b"\xff"):
        tail_of(known).write_bytes(summed(line, ends))
        refused(part(NEW), known, 2)
    tail_of(known).write_bytes(summed(kit.dumps(held), ends + b"x"))
    refused(part(NEW), known, 2)


@pytest.mark.parametrize("at", [0, 17, 49, 57, 61])
def test_changed_end_is_found_where_its_run_goes_on(known: Path, at: int) -> None:
    """Its key, leaf, n or whether it has ended; only its place serves no more than a message."""
    held, ends = split(tail_of(known).read_bytes())
    one = 0 if at < 61 else 2 * END_BYTES  # "log" goes on in the part, and run 1 is refused there
    changed = bytearray(ends)
    changed[one + at] ^= 1
    tail_of(known).write_bytes(summed(kit.dumps(held), bytes(changed)))
    if at == 49:
        assert verdict(part(NEW), known)[0] == 0
    elif at == 61:
        log = kit.whole_log(3)
        log.add(kit.run_id(1), "intent")
        assert verdict(part(log), known)[0] == 0  # as CAVEATS has it: who can write NOTE.tail
    else:
        refused(part(NEW), known, 1)


def test_tail_of_another_size_or_history_is_not_used(known: Path, tmp_path: Path) -> None:
    for log in (NEW, forked(OLD), kit.whole_log(2)):
        other = tmp_path / "other"
        other.unlink(missing_ok=True)
        assert verdict(kit.export(log.lines, log.note()), other)[0] == 0
        tail_of(known).write_bytes(tail_of(other).read_bytes())
        assert "does not fit" in refused(part(NEW), known, 2)


def test_ends_are_packed_as_they_grow(
    known: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert verdict(part(NEW), known)[0] == 0
    for heads_max in (1, 2, 3):
        kept = tmp_path / str(heads_max)
        monkeypatch.setattr(verify, "HEADS_MAX", heads_max)
        assert verdict(kit.export(NEW.lines, NEW.note()), kept)[0] == 0
        assert remembered(kept) == remembered(known)
        chains = verify.Chains(None)
        verify.walk(iter(NEW.lines), None, chains, lambda *_: None, verify.Openings())
        assert len(chains.heads) < heads_max
        chains.pack()
        assert len(chains.ends) == chains.runs == len({run for run, _ in NEW.places})


def test_tail_that_cannot_be_written_leaves_both_files(known: Path) -> None:
    tail_of(known).rename(known.with_name("aside"))
    tail_of(known).mkdir()
    assert verdict(kit.export(NEW.lines, NEW.note()), known)[0] == 2
    assert known.read_bytes() == OLD.note()
    assert {each.name for each in known.parent.iterdir()} == {"known", "known.tail", "aside"}


def test_log_of_too_many_runs_keeps_the_note_alone(
    known: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So that a tail that is written is one that can be read again."""
    runs = 4  # three and "log"
    for more, said in ((1, "goes on from here"), (0, "the note alone")):
        monkeypatch.setattr(
            verify, "TAIL_BYTES_MAX", runs * END_BYTES + verify.LINE_BYTES_MAX + more
        )
        code, text = verdict(kit.export(OLD.lines, OLD.note()), known)
        assert (code, said in text) == (0, True)


def test_known_that_is_a_link_stays_one_and_both_files_lie_where_it_leads(
    known: Path, tmp_path: Path
) -> None:
    (tmp_path / "links").mkdir()
    link = tmp_path / "links" / "known"
    link.symlink_to(known)
    assert verdict(part(NEW), link)[0] == 0
    assert (link.readlink(), [*link.parent.iterdir()]) == (known, [link])
    assert verdict(kit.export(NEW.lines, NEW.note()), tmp_path / "full")[0] == 0
    assert remembered(known) == remembered(tmp_path / "full")
