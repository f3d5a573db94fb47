"""Signed notes, checkpoints and cosignatures against C2SP's words and the published examples."""

import base64
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from nanovm_core import verify
from nanovm_core.errors import VerificationError
from nanovm_core.proof import merkle, notes
from nanovm_core.proof.notes import COSIGNATURE, Head, Verifier
from tests.core.proof import bundles
from tests.core.proof.bundles import vectors

KINDS = (verify.ED25519, COSIGNATURE)
KEY = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
OTHER_KEY = Ed25519PrivateKey.from_private_bytes(bytes(range(1, 33)))
LOG = "nanovm.localhost/aaaa"
HEAD = Head(origin=LOG, size=7, root=bytes(32))
BY = notes.verifier(LOG, KEY)
WITNESS = notes.verifier("witness.example/w", OTHER_KEY, COSIGNATURE)
NOTE = notes.sign(HEAD.text, LOG, [KEY])


def refused(data: bytes, *verifiers: Verifier) -> bool:
    """Whether no note is opened, under the code that says so."""
    try:
        notes.open_note(data, verifiers)
    except VerificationError as error:
        return error.code == "LOG-005"
    return False


def fails(read: Callable[[Any], object], data: str | bytes, how: type[Exception]) -> bool:
    """Whether the kernel's reader, or the verifier's, refuses it as it promises."""
    try:
        read(data)
    except how:
        return True
    return False


def test_a_note_is_opened_with_its_key_and_says_what_was_signed() -> None:
    head, note = notes.open_checkpoint(NOTE, [BY])
    assert (head, note.text) == (HEAD, HEAD.text)
    assert [each.by for each in note.verified] == [BY]
    assert NOTE.decode() == HEAD.text + "\n" + note.verified[0].line
    assert notes.parse_vkey(BY.vkey) == BY
    assert notes.parse_vkey(WITNESS.vkey) == WITNESS


def test_another_key_or_name_opens_nothing() -> None:
    assert refused(NOTE)
    assert refused(NOTE, notes.verifier(LOG, OTHER_KEY))
    assert refused(NOTE, notes.verifier(LOG + "b", KEY))
    assert refused(NOTE, notes.verifier(LOG, KEY, COSIGNATURE))
    same_id = Verifier(name=LOG, public=BY.public)
    assert refused(NOTE, BY, same_id)  # which of the two it is cannot be told


def test_every_flipped_bit_of_a_note_is_seen() -> None:
    for at in range(len(NOTE) * 8):
        changed = bytearray(NOTE)
        changed[at // 8] ^= 1 << at % 8
        assert refused(bytes(changed), BY), at


def test_a_known_key_that_signed_wrongly_spoils_a_note_that_another_signed() -> None:
    both = notes.sign(HEAD.text, LOG, [KEY, OTHER_KEY])
    other = notes.verifier(LOG, OTHER_KEY)
    assert len(notes.open_note(both, [BY, other]).verified) == 2
    assert len(notes.open_note(both, [BY]).unknown) == 1
    wrong = bytearray(both)
    wrong[-6] ^= 1
    assert refused(bytes(wrong), BY, other)
    assert not refused(bytes(wrong), BY)


def test_a_witness_alone_or_another_log_makes_no_checkpoint() -> None:
    cosigned = notes.cosign(HEAD.text, WITNESS.name, OTHER_KEY, 5)
    note = notes.with_signatures(NOTE, [cosigned])
    head, opened = notes.open_checkpoint(note, [BY, WITNESS])
    assert head == HEAD
    assert [each.time for each in opened.verified] == [0, 5]
    with pytest.raises(VerificationError, match="No known key of the log"):
        notes.open_checkpoint(note, [WITNESS])
    foreign = notes.sign(HEAD.text, "nanovm.localhost/bbbb", [KEY])
    with pytest.raises(VerificationError, match="No known key of the log"):
        notes.open_checkpoint(foreign, [notes.verifier("nanovm.localhost/bbbb", KEY)])


def test_a_cosignature_covers_its_time_and_its_kind() -> None:
    signed = notes.cosign(HEAD.text, WITNESS.name, OTHER_KEY, 1_679_315_147)
    note = notes.with_signatures(NOTE, [signed])
    assert notes.open_note(note, [WITNESS]).verified == (signed,)
    line = signed.line.encode()
    raw = base64.b64decode(line.split()[-1])
    later = raw[:4] + (1_679_315_148).to_bytes(8, "big") + raw[12:]
    moved = note.replace(base64.b64encode(raw), base64.b64encode(later))
    assert moved != note
    assert refused(moved, WITNESS)
    plain = notes.sign(HEAD.text, WITNESS.name, [OTHER_KEY])
    assert refused(plain, WITNESS)
    assert refused(note, notes.verifier(WITNESS.name, OTHER_KEY))
    endless = notes.cosign(HEAD.text, WITNESS.name, OTHER_KEY, 2**63)
    assert refused(notes.with_signatures(NOTE, [endless]), WITNESS)


def test_signatures_are_added_once_and_read_back_alone() -> None:
    signed = notes.cosign(HEAD.text, WITNESS.name, OTHER_KEY, 5)
    note = notes.with_signatures(NOTE, [signed, signed])
    assert notes.with_signatures(note, [signed]) == note
    assert note == NOTE + signed.line.encode()
    read = notes.parse_signatures(signed.line)
    assert [each.line for each in read] == [signed.line]
    for bad in ("", "\n", signed.line[:-1], signed.line + "\n", "x" + signed.line):
        with pytest.raises(VerificationError):
            notes.parse_signatures(bad)


@pytest.mark.parametrize(
    "text",
    [
        *("", "\n", "a\n1\n", "\n1\n{root}\n", "a\n1\n{root}", "a\n01\n{root}\n", "a\n\n{root}\n"),
        *("a\n-1\n{root}\n", "a\n+1\n{root}\n", "a\n1_0\n{root}\n", "a\n١\n{root}\n"),
        *("a\n9223372036854775808\n{root}\n", "a\n1\n{root}=\n", "a\n1\n {root}\n"),
        *("a\n1 \n{root}\n", "a\n1\nYmFuYW5hcw==\n", "a\n1\n{root}\n\n"),
        *("a\n1\n{root}\n\nx\n", "a\n1\n{loose}\n"),
    ],
)
def test_what_is_no_checkpoint_is_refused(text: str) -> None:
    root = base64.b64encode(bytes(31) + b"\x01").decode()
    loose = root[:-2] + chr(ord(root[-2]) + 1) + "="  # another way to write the same bytes
    assert base64.b64decode(loose) == base64.b64decode(root)
    assert notes.parse_head(f"a\n1\n{root}\n").size == 1
    text = text.format(root=root, loose=loose)
    assert fails(notes.parse_head, text, VerificationError)
    signer = bundles.Signer(text.partition("\n")[0])
    assert fails(verify.parse_checkpoint, (text + "\n" + signer.line(text)).encode(), ValueError)


@pytest.mark.parametrize(
    ("name", "lines"),
    [
        ("a", ["a", "1", "more"]),
        ("a", ["b", "1"]),
        ("a", ["a", str(2**53)]),
        ("\x1b", ["\x1b", "1"]),
    ],
)
def test_verifier_reads_no_checkpoint_that_our_logs_do_not_write(
    name: str, lines: list[str]
) -> None:
    def signed(by: bundles.Signer, origin: str, size: str, *more: str) -> bytes:
        text = "\n".join([origin, size, bundles.b64(bytes(32)), *more, ""])
        return (text + "\n" + by.line(text)).encode()

    for size in (1, 2**53 - 1):
        assert verify.parse_checkpoint(signed(bundles.Signer("a"), "a", str(size))).size == size
    assert fails(verify.parse_checkpoint, signed(bundles.Signer(name), *lines), ValueError)


def test_lines_behind_the_root_are_kept() -> None:
    text = HEAD.text + "one\ntwo\n"
    assert notes.parse_head(text).extensions == ("one", "two")
    assert notes.parse_head(text).text == text
    largest = Head(origin="a", size=2**63 - 1, root=bytes(32))
    assert notes.parse_head(largest.text) == largest
    assert notes.parse_head(Head(origin="a", size=0, root=merkle.EMPTY_ROOT).text).size == 0


def test_only_notes_that_can_be_opened_are_signed() -> None:
    for text, name in (("a", "n"), ("a\n", ""), ("a\n", "n m"), ("a\n", "n+m"), ("\x01\n", "n")):
        with pytest.raises(ValueError, match="A note needs"):
            notes.sign(text, name, [KEY])


def test_a_note_is_bounded() -> None:
    unknown = NOTE.split(b"\n")[-2] + b"\n"
    filler = unknown.replace(LOG.encode(), b"x") * 98
    assert not refused(NOTE + filler + unknown, BY)
    assert refused(NOTE + filler + unknown * 2, BY)
    text = "a" * 66_000 + "\n"
    assert refused(notes.sign(text, LOG, [KEY]), BY)


READERS = pytest.mark.parametrize("reader", [notes, verify], ids=["kernel", "verifier"])
FAULTS = (ValueError, VerificationError)


def key_of(reader: Any, vkey: str) -> Any:
    """The key that a reader finds in a line; None where it refuses it."""
    try:
        return notes.parse_vkey(vkey) if reader is notes else verify.parse_key(vkey, *KINDS)
    except FAULTS:
        return None


def opened(reader: Any, data: bytes, vkeys: Sequence[str]) -> int:
    """How many signatures of a note a reader verifies; 0 where it refuses the note."""
    try:
        found = reader.open_note(data, [key_of(reader, vkey) for vkey in vkeys])
    except FAULTS:
        return 0
    return len(found.verified if reader is notes else found[1])


@READERS
def test_published_notes_are_opened_as_they_say(reader: Any) -> None:
    published = vectors("signed_note.json")
    for each in published["open"]:
        expected = each["verified"] if each["want"] == "ok" else 0
        assert opened(reader, each["note"].encode(), each["vkeys"]) == expected, each["name"]
    bad = published["also_invalid_utf8"]
    assert opened(reader, bytes.fromhex(bad["note_hex"]), bad["vkeys"]) == 0


def neighbours(vkey: str) -> Iterator[str]:
    """Every proper part of a key's line, and every line with one character raised by one."""
    for start in range(len(vkey)):
        for end in range(start, len(vkey) + (start > 0)):
            yield vkey[start:end]
    for at, each in enumerate(vkey):
        yield vkey[:at] + chr(ord(each) + 1) + vkey[at + 1 :]


@READERS
def test_published_keys_are_read_and_their_neighbours_are_not(reader: Any) -> None:
    published = vectors("signed_note.json")
    real = vectors("checkpoint_witness.json")["real_world_vkeys"]
    for vkey in (*published["vkeys_good"], *real):
        assert key_of(reader, vkey) is not None
        with pytest.raises(ValueError, match="not a verification key"):
            verify.parse_key(vkey, COSIGNATURE)
    for vkey in published["vkeys_good"]:
        assert notes.parse_vkey(vkey).vkey == vkey
        assert [each for each in neighbours(vkey) if key_of(reader, each)] == []
    assert [vkey for vkey in published["vkeys_bad"] if key_of(reader, vkey)] == []


def test_published_checkpoints_are_read_as_they_say() -> None:
    """Their roots are of any length; ours are of 32 bytes, so a root of 32 stands in."""
    published = vectors("checkpoint_witness.json")
    root = base64.b64encode(bytes(32)).decode()
    for each in published["unmarshal_good"]:
        text = each["checkpoint"]
        assert fails(notes.parse_head, text, VerificationError), each["desc"]
        lines = text.split("\n")
        text = "\n".join([*lines[:2], root, *lines[3:]])
        empty_lines = "trailing newlines" in each["desc"]  # C2SP wants no line to be empty
        assert fails(notes.parse_head, text, VerificationError) is empty_lines, each["desc"]
    tree, signer = published["go_sumdb_tree"], bundles.Signer("go.sum_database_tree")
    for text in [each["checkpoint"] for each in published["unmarshal_bad"]] + tree["bad"][1:]:
        assert fails(notes.parse_head, text, VerificationError)
        assert fails(
            verify.parse_checkpoint, (text + "\n" + signer.line(text)).encode(), ValueError
        )
    assert notes.parse_head(tree["text"]).size == tree["size"]
    assert notes.parse_head(tree["bad"][0]).origin != notes.parse_head(tree["text"]).origin
    text = tree["text"].replace(" ", "_")
    assert verify.parse_checkpoint((text + "\n" + signer.line(text)).encode()).size == tree["size"]


def test_verifier_holds_a_cosignature_to_its_time_text_and_witness() -> None:
    log = bundles.Log()
    log.add("log", "genesis")
    checkpoint = verify.parse_checkpoint(log.note(bundles.LOG_KEY, bundles.WITNESS))
    key = verify.parse_key(bundles.WITNESS.vkey, COSIGNATURE)
    assert verify.cosigned_s(checkpoint, key) == 1_700_000_000
    assert verify.cosigned_s(verify.parse_checkpoint(log.note(bundles.LOG_KEY)), key) is None
    assert verify.cosigned_s(checkpoint._replace(text=checkpoint.text + "x\n"), key) is None
    stamped = checkpoint.signatures[1]
    later = stamped._replace(data=b"\1" + stamped.data[1:])
    assert verify.cosigned_s(checkpoint._replace(signatures=(later,)), key) is None
    impostor = verify.parse_key(bundles.Signer(bundles.WITNESS.name, 4, 4).vkey, COSIGNATURE)
    assert verify.cosigned_s(checkpoint, impostor) is None
    forged = stamped._replace(id=impostor.id)
    assert verify.cosigned_s(checkpoint._replace(signatures=(forged,)), impostor) is None
