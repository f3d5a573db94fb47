"""The tail beside a known note: what is remembered of a log so that its newest part is enough."""

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from nanovm_core import verify
from tests.core.proof.bundles import dumps, export, run_id, whole_log
from tests.core.proof.parts import (
    AT,
    NEW,
    OLD,
    forked,
    part,
    refused,
    remembered,
    tail_of,
    verdict,
)

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
    tail_of(known).write_bytes(summed(dumps(held), ends))
    assert verdict(part(OLD), known)[0] == 0
    for value in CHANGED[name]:
        tail_of(known).write_bytes(summed(dumps({**held, name: value}), ends))
        assert "does not fit" in refused(part(NEW), known, 2)


def test_tail_of_another_form_is_not_used_under_a_fitting_digest(known: Path) -> None:
    held, ends = split(tail_of(known).read_bytes())
    less = [{key: value for key, value in held.items() if key != field} for field in held]
    for line in (*map(dumps, less), b"", b"[]", b" " + dumps(held), b"\xff"):
        tail_of(known).write_bytes(summed(line, ends))
        refused(part(NEW), known, 2)
    tail_of(known).write_bytes(summed(dumps(held), ends + b"x"))
    refused(part(NEW), known, 2)


@pytest.mark.parametrize("at", [0, 17, 49, 57, 61])
def test_changed_end_is_found_where_its_run_goes_on(known: Path, at: int) -> None:
    """Its key, leaf, n or whether it has ended; only its place serves no more than a message."""
    held, ends = split(tail_of(known).read_bytes())
    one = 0 if at < 61 else 2 * END_BYTES  # "log" goes on in the part, and run 1 is refused there
    changed = bytearray(ends)
    changed[one + at] ^= 1
    tail_of(known).write_bytes(summed(dumps(held), bytes(changed)))
    if at == 49:
        assert verdict(part(NEW), known)[0] == 0
    elif at == 61:
        log = whole_log(3)
        log.add(run_id(1), "intent")
        assert verdict(part(log), known)[0] == 0  # as CAVEATS has it: who can write NOTE.tail
    else:
        refused(part(NEW), known, 1)


def test_tail_of_another_size_or_history_is_not_used(known: Path, tmp_path: Path) -> None:
    for log in (NEW, forked(OLD), whole_log(2)):
        other = tmp_path / "other"
        other.unlink(missing_ok=True)
        assert verdict(export(log.lines, log.note()), other)[0] == 0
        tail_of(known).write_bytes(tail_of(other).read_bytes())
        assert "does not fit" in refused(part(NEW), known, 2)


def test_ends_are_packed_as_they_grow(
    known: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert verdict(part(NEW), known)[0] == 0
    for heads_max in (1, 2, 3):
        kept = tmp_path / str(heads_max)
        monkeypatch.setattr(verify, "HEADS_MAX", heads_max)
        assert verdict(export(NEW.lines, NEW.note()), kept)[0] == 0
        assert remembered(kept) == remembered(known)
        chains = verify.Chains(None)
        verify.walk(iter(NEW.lines), None, chains, lambda *_: None)
        assert len(chains.heads) < heads_max
        chains.pack()
        assert len(chains.ends) == chains.runs == len({run for run, _ in NEW.places})


def test_tail_that_cannot_be_written_leaves_both_files(known: Path) -> None:
    tail_of(known).rename(known.with_name("aside"))
    tail_of(known).mkdir()
    assert verdict(export(NEW.lines, NEW.note()), known)[0] == 2
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
        code, text = verdict(export(OLD.lines, OLD.note()), known)
        assert (code, said in text) == (0, True)


def test_known_that_is_a_link_stays_one_and_both_files_lie_where_it_leads(
    known: Path, tmp_path: Path
) -> None:
    (tmp_path / "links").mkdir()
    link = tmp_path / "links" / "known"
    link.symlink_to(known)
    assert verdict(part(NEW), link)[0] == 0
    assert (link.readlink(), [*link.parent.iterdir()]) == (known, [link])
    assert verdict(export(NEW.lines, NEW.note()), tmp_path / "full")[0] == 0
    assert remembered(known) == remembered(tmp_path / "full")
