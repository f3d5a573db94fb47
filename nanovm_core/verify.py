"""Checks a nanovm audit bundle, export or receipt: alone, offline, with nobody's word for it.

    python3 -I verify.py FILE [--key VKEY]... [--witness VKEY]... [--known NOTE] [--explain]

FILE is a bundle (zip) of a whole log or of one run; an export (NDJSON) of a whole log, of its
newest part (``first``), or of one run, which brings no proofs and so is never better than
UNPROVEN; or a receipt (JSON). The bundle of a run holds every chain of its lineage.
It ends with the first of these that applies:

    2 UNREADABLE  none of these files, a filtered export or CSV, a part of a log that does not
                  begin where NOTE ends, or wrong use
    1 INVALID     it contradicts itself or the key: says which envelope is bad, and why
    4 DIVERGED    contradicts the checkpoint in NOTE: prints both, and they prove it to anyone
    5 STALE       shorter than the log in NOTE
    3 UNPINNED    no key was brought; UNWITNESSED or UNPROVEN: less is shown than was asked for
    0 PASS        everything holds at the grade asked for

VKEY is ``name+hash+base64`` (C2SP signed-note); with several keys of a log (old and new) any
will do, but every witness must have cosigned. NOTE remembers the last checkpoint proved:
keep it where the log's operator cannot write. It is replaced when all held; without a key
it is only made. After a whole log, NOTE.tail beside it keeps how the tree and every run ended:
the next time, the export from there on is enough. Keep both where nobody else can write.
--explain lists granted calls, holds and refusals, where the signed tree holds the events.
"""

from __future__ import annotations

import argparse
import base64
import bisect
import decimal
import hashlib
import hmac
import io
import json
import os
import re
import struct
import sys
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import IO, TYPE_CHECKING, Any, NamedTuple, NoReturn

if TYPE_CHECKING:
    import zipfile

LINE_BYTES_MAX = 1_048_576  # one envelope: they have kilobytes. Also manifest, note, receipt
LISTS_BYTES_MAX = 67_108_864  # proofs and disclosures, which are held in memory
LOG_BYTES_MAX = 1 << 36  # envelopes, which are streamed
RATIO_MAX = 100  # envelopes are full of hashes: they shrink five times, a zip bomb a thousand
DEPTH_MAX = 64  # nested arrays and objects
INTEGER_MAX = 2**53 - 1  # RFC 7493 §2.2
SIGNATURES_MAX = 100  # lines of one note
TAIL_BYTES_MAX = 1 << 28  # the ends of four million runs
TOLD_MAX, ERASED_MAX = 100_000, 1_000_000  # what --explain lists, and refs that it knows erased
NO_DECIMALS = "BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX VND VUV XAF XOF XPF"  # ISO 4217
THREE_DECIMALS = "BHD IQD JOD KWD LYD OMR TND"
HEADS_MAX = 16_384  # runs whose heads lie at hand
CHUNK_BYTES = 65_536
ZEROS = "0" * 64
ED25519, COSIGNATURE = 0x01, 0x04  # C2SP signed-note, tlog-cosignature


class Stop(Exception):
    """The end of a verification: its exit code, its word and what to say."""

    def __init__(self, code: int, word: str, *lines: str) -> None:
        super().__init__(word, *lines)
        self.code, self.word, self.lines = code, word, lines


def unreadable(text: str) -> Stop:
    """Not something that this program can judge."""
    return Stop(2, "UNREADABLE", text)


def invalid(text: str, seq: int | None = None, expected: object = "", found: object = "") -> Stop:
    """Something is wrong with the evidence; ``seq`` is the first bad place where one is known."""
    lines = [text if seq is None else f"seq {seq}: {text}"]
    if expected != "" or found != "":
        lines += [f"expected: {shown(expected)}", f"found: {shown(found)}"]
    return Stop(1, "INVALID", *lines)


def shown(value: object) -> str:
    """Foreign text on one line, without anything that steers a terminal."""
    text = value if isinstance(value, str) else json.dumps(value)
    return "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in text[:200])


# --- Ed25519 (RFC 8032 §5.1), verification alone ---------------------------------------------

Proofs = dict[int, list[bytes]]  # by seq
Point = Any  # x, y, z, t with x = X/Z, y = Y/Z, XY = ZT
P = 2**255 - 19
L = 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, P - 2, P) % P
NEUTRAL: Point = (0, 1, 1, 0)


def _add(a: Point, b: Point) -> Point:
    e = (a[1] - a[0]) * (b[1] - b[0]) % P
    f = (a[1] + a[0]) * (b[1] + b[0]) % P
    g, h = 2 * D * a[3] * b[3] % P, 2 * a[2] * b[2] % P
    x, y, z, t = f - e, h - g, h + g, f + e
    return x * y % P, z * t % P, y * z % P, x * t % P


def _decompress(data: bytes) -> Point | None:
    """The point of 32 bytes; None where they are not the one encoding of a point (§5.1.3)."""
    sign, y = data[31] >> 7, int.from_bytes(data, "little") & (2**255 - 1)
    if y >= P:
        return None
    x2 = (y * y - 1) * pow(D * y * y + 1, P - 2, P) % P
    x = pow(x2, (P + 3) // 8, P)
    if (x * x - x2) % P:
        x = x * pow(2, (P - 1) // 4, P) % P
    if (x * x - x2) % P or (x == 0 and sign):
        return None
    if x & 1 != sign:
        x = P - x
    return x, y, 1, x * y % P


def _compress(point: Point) -> bytes:
    inverse = pow(point[2], P - 2, P)
    x, y = point[0] * inverse % P, point[1] * inverse % P
    return bytes((y | (x & 1) << 255).to_bytes(32, "little"))


BASE = _decompress(b"\x58" + b"\x66" * 31) or NEUTRAL


def ed25519_verify(public: bytes, message: bytes, signature: bytes) -> bool:
    """Whether the signature is good: strict (S < L, one encoding of R and A, A of large order)."""
    if len(public) != 32 or len(signature) != 64:
        return False
    a, s = _decompress(public), int.from_bytes(signature[32:], "little")
    if a is None or s >= L:
        return False
    eight = _add(a, a)
    for _ in range(2):
        eight = _add(eight, eight)
    if _compress(eight) == _compress(NEUTRAL):
        return False  # anybody can sign for a key of small order
    k = int.from_bytes(hashlib.sha512(signature[:32] + public + message).digest(), "little") % L
    minus_a = (P - a[0], a[1], 1, P - a[3])
    both = (NEUTRAL, BASE, minus_a, _add(BASE, minus_a))
    point: Point = NEUTRAL
    for bit in range(252, -1, -1):  # R = [S]B - [k]A, both at once
        point = _add(point, point)
        point = _add(point, both[(s >> bit & 1) | (k >> bit & 1) << 1])
    return _compress(point) == signature[:32]


# --- base64 and canonical JSON ---------------------------------------------------------------


def unbase64(text: str, size: int | None = None) -> bytes:
    """The bytes of base64 that re-encodes to itself; ValueError for any other text."""
    try:
        data = base64.b64decode(text.encode("ascii"), validate=True)
    except ValueError:
        raise ValueError("not base64") from None
    if base64.b64encode(data).decode() != text:
        raise ValueError("base64 that does not re-encode to itself")
    if size is not None and len(data) != size:
        raise ValueError(f"{len(data)} bytes instead of {size}")
    return data


def _integer(text: str) -> int:
    value = int(text) if len(text) <= 17 else INTEGER_MAX + 1
    if not -INTEGER_MAX <= value <= INTEGER_MAX:
        raise ValueError("an integer beyond 2^53-1")
    return value


def _no_float(text: str) -> NoReturn:
    raise ValueError(f"the number {text[:20]} is no integer")


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key stands there twice")
    return found


_HOOKS = {"parse_int": _integer, "parse_float": _no_float, "parse_constant": _no_float}
_DECODER = json.JSONDecoder(**_HOOKS)  # type: ignore[arg-type]
_STRICT = json.JSONDecoder(**_HOOKS, object_pairs_hook=_pairs)  # type: ignore[arg-type]
_ENCODER = json.JSONEncoder(
    sort_keys=True, separators=(",", ":"), ensure_ascii=False, check_circular=False
)
# An unterminated string too, so that the scan stays linear.
_BRACKET = re.compile(r'"(?:[^"\\]|\\.)*"?|[\[{]|[\]}]', re.DOTALL)


def parse(data: bytes, *, decoder: json.JSONDecoder = _DECODER) -> Any:
    """The value of JSON within the profile, of any form; ValueError where it is not."""
    text = data.decode("utf-8")
    if data.count(b"{") + data.count(b"[") > DEPTH_MAX:
        depth = 0
        for each in _BRACKET.finditer(text):
            depth += (each[0] in "[{") - (each[0] in "]}")
            if depth > DEPTH_MAX:
                raise ValueError(f"nested deeper than {DEPTH_MAX} levels")
    try:
        value, end = decoder.raw_decode(text)
    except RecursionError:
        raise ValueError("nested too deep") from None
    if end != len(text):
        raise ValueError("something follows the value")
    return value


def canonical(data: bytes) -> Any:
    """The value of canonical bytes (RFC 8785 on the profile); ValueError for all others."""
    value = parse(data)
    # Re-encoding finds white space, order, escapes, -0 and a key that stands there twice;
    # half a surrogate pair has no UTF-8.
    if _ENCODER.encode(value).encode("utf-8") != data:
        raise ValueError("the bytes do not re-encode to themselves")
    if not data.isascii() and not _ascii_keys(value):
        raise ValueError("a key that is not ASCII")
    return value


def _ascii_keys(value: Any) -> bool:
    if isinstance(value, dict):
        return all(key.isascii() and _ascii_keys(part) for key, part in value.items())
    return not isinstance(value, list) or all(map(_ascii_keys, value))


# --- the tree (RFC 9162 §2.1) ----------------------------------------------------------------


def leaf_hash(data: bytes) -> bytes:
    """The canonical hash of an envelope, which is its leaf."""
    return hashlib.sha256(b"\x00" + data).digest()


def node_hash(left: bytes, right: bytes) -> bytes:
    """An inner node."""
    return hashlib.sha256(b"\x01" + left + right).digest()


class Frontier:
    """A tree that grows at the right, as the roots of its perfect subtrees, largest first.

    ``roots`` gets the root at each size in ``wanted``. ``size`` has a peak for each set bit.
    """

    def __init__(self, *wanted: int, size: int = 0, peaks: Sequence[bytes] = ()) -> None:
        self.size, self.peaks, self.roots = size, [*peaks], dict[int, bytes]()
        self._wanted = frozenset(wanted)
        self._remember()

    def append(self, leaf: bytes) -> None:
        """Add a leaf's hash."""
        size = self.size
        while size & 1:
            leaf = node_hash(self.peaks.pop(), leaf)
            size >>= 1
        self.peaks.append(leaf)
        self.size += 1
        if self.size in self._wanted:
            self._remember()

    def root(self) -> bytes:
        """The root over everything so far."""
        root = self.peaks[-1] if self.peaks else hashlib.sha256().digest()
        for peak in self.peaks[-2::-1]:
            root = node_hash(peak, root)
        return root

    def _remember(self) -> None:
        if self.size in self._wanted:
            self.roots[self.size] = self.root()


def inclusion_root(leaf: bytes, index: int, size: int, proof: Sequence[bytes]) -> bytes | None:
    """The root that an inclusion proof leads to; None for no proof (§2.1.3.2)."""
    if not 0 <= index < size or len(leaf) != 32:
        return None
    fn, sn, root = index, size - 1, leaf
    for each in proof:
        if sn == 0 or len(each) != 32:
            return None
        if fn & 1 or fn == sn:
            root = node_hash(each, root)
            while not fn & 1 and fn:
                fn, sn = fn >> 1, sn >> 1
        else:
            root = node_hash(root, each)
        fn, sn = fn >> 1, sn >> 1
    return root if sn == 0 else None


# --- signed notes, checkpoints, cosignatures (C2SP) ------------------------------------------


class Key(NamedTuple):
    """A verification key: ``kind`` is Ed25519 or a witness's cosignature/v1."""

    name: str
    id: bytes
    kind: int
    public: bytes


class Signature(NamedTuple):
    """One signature line of a note."""

    name: str
    id: bytes
    data: bytes


class Checkpoint(NamedTuple):
    """What a log's signed note says, the note itself, and its parts."""

    origin: str
    size: int
    root: bytes
    note: bytes
    text: str
    signatures: tuple[Signature, ...]


def _is_name(name: str) -> bool:
    return bool(name) and name.isprintable() and "+" not in name and " " not in name


def parse_key(vkey: str, *kinds: int) -> Key:
    """The key of ``name+hash+base64``; ValueError where it is none, or not of these kinds."""
    name, _, rest = vkey.partition("+")
    short, _, encoded = rest.partition("+")
    data = unbase64(encoded)
    if not _is_name(name) or len(data) != 33 or data[0] not in kinds:
        raise ValueError("not a verification key of a kind that is known here")
    key_id = hashlib.sha256(name.encode() + b"\n" + data).digest()[:4]
    if short != key_id.hex():
        raise ValueError("its hash does not fit the rest of it")
    return Key(name, key_id, data[0], data[1:])


def split_note(data: bytes) -> tuple[str, tuple[Signature, ...]]:
    """A note's text and its signature lines; ValueError where it is malformed."""
    note = data.decode("utf-8")
    if any(ord(c) < 32 and c != "\n" for c in note):
        raise ValueError("a control character in the note")
    text, blank, lines = note.rpartition("\n\n")
    if not blank or not lines.endswith("\n"):
        raise ValueError("no signature lines after a blank one")
    found = [_signature(line) for line in lines[:-1].split("\n")]
    if len(found) > SIGNATURES_MAX:
        raise ValueError(f"more than {SIGNATURES_MAX} signatures")
    return text + "\n", tuple(found)


def _signature(line: str) -> Signature:
    dash, _, rest = line.partition(" ")
    name, _, encoded = rest.partition(" ")
    data = unbase64(encoded)
    if dash != "—" or not _is_name(name) or len(data) < 5:
        raise ValueError("a malformed signature line")
    return Signature(name, data[:4], data[4:])


def open_note(data: bytes, keys: Sequence[Key]) -> tuple[str, list[Key]]:
    """The text of a note, and those of the keys that signed it.

    Signatures by others are ignored. ValueError where the note is malformed, a known key's
    signature is wrong, two keys share name and id, or none of the keys signed.
    """
    text, signatures = split_note(data)
    found: list[Key] = []
    for each in signatures:
        known = [key for key in keys if (key.name, key.id) == (each.name, each.id)]
        if len(known) > 1:
            raise ValueError("two of the keys share one name and id")
        if not known or known[0] in found:
            continue
        if not ed25519_verify(known[0].public, text.encode(), each.data):
            raise ValueError(f"the signature of {each.name} is wrong")
        found += known
    if not found:
        raise ValueError("it bears no signature of a key that was given")
    return text, found


def cosigned_s(checkpoint: Checkpoint, witness: Key) -> int | None:
    """When (in seconds) a witness cosigned this; None where it did not (cosignature/v1)."""
    for each in checkpoint.signatures:
        if (each.name, each.id) != (witness.name, witness.id) or len(each.data) != 72:
            continue
        time_s = int.from_bytes(each.data[:8], "big")
        signed = f"cosignature/v1\ntime {time_s}\n{checkpoint.text}".encode()
        if ed25519_verify(witness.public, signed, each.data[8:]):
            return time_s
    return None


def parse_checkpoint(note: bytes) -> Checkpoint:
    """What a log's signed note says; ValueError where it is malformed. Checks no signature."""
    text, signatures = split_note(note)
    lines = text.split("\n")
    if len(lines) != 4 or not _is_name(lines[0]):
        raise ValueError("not origin, size and root, a line each")
    if not re.fullmatch("0|[1-9][0-9]{0,15}", lines[1]) or int(lines[1]) > INTEGER_MAX:
        raise ValueError("its size is no decimal number")
    root = unbase64(lines[2], 32)
    if not any(each.name == lines[0] and len(each.data) == 64 for each in signatures):
        raise ValueError("no signature in the name of its origin")
    return Checkpoint(lines[0], int(lines[1]), root, note, text, signatures)


# --- envelopes and the chains of runs --------------------------------------------------------

HASH = re.compile("[0-9a-f]{64}")
UUID = re.compile("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
AGENT = re.compile("agent:[a-z][a-z0-9-]{0,29}")
Check = Callable[[Any], bool]


def _anything(value: Any) -> bool:
    return value is not None  # absent is absent, not null


def _text(value: Any) -> bool:
    return type(value) is str


def _count(value: Any) -> bool:
    return type(value) is int and value >= 0


def _hash(value: Any) -> bool:
    return type(value) is str and HASH.fullmatch(value) is not None


def _uuid(value: Any) -> bool:
    return type(value) is str and UUID.fullmatch(value) is not None


def _run(value: Any) -> bool:
    if value == "log" or _uuid(value):
        return True
    return type(value) is str and AGENT.fullmatch(value) is not None


def _ref(value: Any) -> bool:
    return type(value) is str and value[:15] == "vault://secret/" and _uuid(value[15:])


def _list(value: Any) -> bool:
    return type(value) is list


def _object(value: Any) -> bool:
    return type(value) is dict


def _texts(value: Any) -> bool:
    return type(value) is dict and all(map(_text, value.values()))


def _calls(value: Any) -> bool:
    return _count(value) or _list(value)


def _parts(**checks: Check) -> Check:
    def holds(value: Any) -> bool:
        for name, part in value.items() if type(value) is dict else [("", None)]:
            check = checks.get(name)
            if check is None or not check(part):
                return False
        return True

    return holds


def _secrets(value: Any) -> bool:
    return type(value) is list and all(_SECRET(each) and len(each) == 3 for each in value)


_SECRET = _parts(slot=_text, ref=_ref, c=_hash)
NEEDED = frozenset(("v", "log", "seq", "run", "n", "kind", "at_ms", "prev"))
FIELDS: dict[str, Check] = {
    **dict.fromkeys(("v", "log", "kind", "step", "actor", "tool", "idempotency_key"), _text),
    **dict.fromkeys(("rule", "outcome", "decided_by"), _text),
    **dict.fromkeys(("seq", "n", "at_ms"), _count),
    **dict.fromkeys(("program", "policy", "snapshot", "prev"), _hash),
    **dict.fromkeys(("in", "out"), _anything),
    "run": _run,
    "state": _parts(**{"from": _text, "event": _text, "to": _text}),
    "decision": _parts(verdict=_text, rules=_list),
    "warrant": _parts(id=_text, expires_ms=_count),
    "budget": _parts(**dict.fromkeys(("reserved", "left", "spent", "released"), _anything)),
    "secrets": _secrets,
    "origin": _texts,
    "given": _object,
    "calls": _calls,
}
PLAIN = {"intent", "result", "refused", "ignored", "failed", "suspended", "resumed"}
ERASURE = {"erasure_requested", "erasure_done", "erasure_refused"}
ON_LOG = {"capability", "policy", "budget", "key", "restore", "supplier"}
AFTER_TERMINAL = {"refused", "ignored", "integrity"} | ERASURE
# The fields of one kind alone. Of the kinds in OPEN the format leaves further ones free.
OWN: dict[str, dict[str, Check]] = {
    "terminal": {"length": _count},
    "resumed": {"agreed": _texts},  # the terms that an approval was given on
    "integrity": {"at": lambda v: type(v) is int, "expected": _text, "found": _text},
    "genesis": {"lineage": _uuid, "incarnation": _count, "of": _text},
    "message": dict.fromkeys(("from", "to", "of", "chain"), _text),
    "settlement": {"tokens": _count},
    "observation": {"at": _count, "count": _count, "hash": _hash, "drifts": _list},
}
OPEN = {"genesis", "alert", "upgraded"} | (ON_LOG - {"supplier"}) | ERASURE
KINDS = PLAIN | OPEN | OWN.keys() | {"agent", "supplier"}
VERSION = "nanovm-envelope/2"

_seen: dict[str, str] = {}  # the last good text of each field: most come again


def read_envelope(data: bytes) -> dict[str, Any]:
    """The fields of an envelope; ValueError where bytes, names or types are not the format's."""
    envelope = canonical(data)
    if type(envelope) is not dict or not envelope.keys() >= NEEDED:
        raise ValueError("not an envelope, or without a field that each must have")
    version, kind = envelope["v"], envelope["kind"]
    if version != VERSION:
        raise ValueError(f"the version {shown(version)} is unknown")
    if not _text(kind) or kind not in KINDS or (kind in ON_LOG and envelope["run"] != "log"):
        raise ValueError(f"the kind {shown(kind)} is unknown in such a run, or in {version}")
    for name, value in envelope.items():
        if name in _seen and _seen[name] == value:
            continue
        check = FIELDS.get(name)
        if check is None:
            check = OWN.get(kind, {}).get(name) or (_anything if kind in OPEN else None)
        elif type(value) is str:
            _seen[name] = value
        if check is None or not check(value):
            _seen.clear()
            raise ValueError(f"the field {shown(name)} is unknown in this kind, or not of its type")
    return envelope


class Head(NamedTuple):
    """The newest envelope of a run."""

    leaf: bytes
    seq: int
    next_n: int
    ended: bool


_HEAD = struct.Struct("<32sQI?")
_KEY_BYTES = 17  # a run: 0 is "log", a UUID is itself and 1, an agent's chain 2 and a digest
_END_BYTES = _KEY_BYTES + _HEAD.size


def _key_of(run: str) -> int:
    if run == "log":
        return 0
    if run[:6] == "agent:":
        return int.from_bytes(b"\2" + hashlib.sha256(run.encode()).digest()[:16], "big")
    return int(run.replace("-", ""), 16) + 1


class Ends:
    """The heads of runs, sorted and packed: a log may have hundreds of thousands of them."""

    def __init__(self, data: bytes) -> None:
        self.data: bytes | bytearray = data

    def __len__(self) -> int:
        return len(self.data) // _END_BYTES

    def __getitem__(self, index: int) -> bytes | bytearray:
        return self.data[index * _END_BYTES : index * _END_BYTES + _KEY_BYTES]

    def find(self, key: int) -> bytes | bytearray | None:
        """The packed head of a run; None where it had not begun."""
        named = key.to_bytes(_KEY_BYTES, "big")
        at = bisect.bisect_left(self, named)
        if at == len(self) or self[at] != named:
            return None
        return self.data[at * _END_BYTES + _KEY_BYTES : (at + 1) * _END_BYTES]

    def put(self, heads: dict[int, bytes]) -> None:
        """Make these heads the newest of their runs."""
        merged, done, old = bytearray(), 0, memoryview(self.data)
        for key in sorted(heads):
            named = key.to_bytes(_KEY_BYTES, "big")
            at = bisect.bisect_left(self, named)
            merged += old[done * _END_BYTES : at * _END_BYTES]
            merged += named + heads[key]
            done = at + (at < len(self) and self[at] == named)
        merged += old[done * _END_BYTES :]
        self.data = merged


class Chains:
    """Follows every chain of a log, of one run, or of a lineage; ``ends`` have gone before.

    A run's lineage is what its genesis names, else the run itself.
    """

    def __init__(
        self,
        origin: str | None,
        run: str | None = None,
        ends: bytes = b"",
        lineage: str | None = None,
    ) -> None:
        self.origin, self.run, self.lineage = origin, run, lineage
        self.heads = dict[int, bytes]()
        self.leaf, self.total, self.unended = b"", 0, 0
        self.ends = Ends(ends)
        self.runs = len(self.ends)

    def follow(self, envelope: dict[str, Any], leaf: bytes, rest: Iterator[bytes]) -> None:
        """Check the envelope's place in its run; ``rest`` may be read to tell which one is bad."""
        run, n, seq, kind = envelope["run"], envelope["n"], envelope["seq"], envelope["kind"]
        self.origin = self.origin or envelope["log"]
        key = _key_of(run)
        packed = self.heads.get(key) or self.ends.find(key)
        named = (self.lineage or run) if packed else envelope.get("lineage", run)
        other = (self.run or run) != run or (self.lineage or named) != named
        if envelope["log"] != self.origin or other:
            expected, found = (
                f"{self.origin}, {self.lineage or self.run}",
                f"{envelope['log']}, {run}",
            )
            raise invalid("of another log or run", seq, expected, found)
        head = Head(*_HEAD.unpack(packed or bytes(_HEAD.size)))
        if n != head.next_n:
            raise invalid("not the next n of its run", seq, head.next_n, n)
        if kind == "integrity" and n:
            raise _sealed_damage(envelope, head)
        prev = head.leaf.hex()
        if envelope["prev"] != prev:
            raise blame(envelope, leaf.hex(), head, rest)
        ended = head.ended or kind == "terminal"
        if (kind == "genesis") != (n == 0) or (head.ended and kind not in AFTER_TERMINAL):
            raise invalid(f"no {kind} may stand at n {n} of this run", seq)
        if kind == "terminal" and envelope.get("length") != n + 1:
            raise invalid("not the length of its run", seq, n + 1, envelope.get("length", "none"))
        self.heads[key] = _HEAD.pack(leaf, seq, n + 1, ended)
        if len(self.heads) >= HEADS_MAX:
            self.pack()
        self.leaf, self.total = leaf, self.total + 1
        self.unended += (n == 0) - (ended and not head.ended)
        self.runs += n == 0

    def pack(self) -> None:
        """Put the newest heads among the sorted ones, where each takes a third of the memory."""
        self.ends.put(self.heads)
        self.heads.clear()


class Tail(NamedTuple):
    """Where a verified log ended: the peaks of its tree, and the ends of its runs.

    Its bytes are a line of canonical JSON, the ends, and the SHA-256 over both, which finds
    damage; that it belongs to a note, its peaks show, which hash to the signed root.
    """

    size: int
    peaks: list[bytes]
    ends: bytes


START = Tail(0, [], b"")


def tail_parts(tree: Frontier, chains: Chains) -> list[bytes | bytearray]:
    """The bytes of a tail, in pieces."""
    chains.pack()
    peaks = [each.hex() for each in tree.peaks]
    held = {"v": "nanovm-tail/1", "log": chains.origin, "size": tree.size, "peaks": peaks}
    line = _ENCODER.encode(held).encode() + b"\n"
    digest = hashlib.sha256(line)
    digest.update(chains.ends.data)
    return [line, chains.ends.data, digest.digest()]


def read_tail(data: bytes, known: Checkpoint) -> Tail:
    """The tail in these bytes; ValueError where they are none, or not this checkpoint's."""
    if hashlib.sha256(memoryview(data)[:-32]).digest() != data[-32:]:
        raise ValueError("it was changed or cut off")
    start = data.find(b"\n") + 1
    held, ends = canonical(data[: start - 1]), data[start:-32]
    checks = _parts(v=lambda v: v == "nanovm-tail/1", log=_text, size=_count, peaks=_list)
    if not checks(held) or len(held) != 4 or len(ends) % _END_BYTES:
        raise ValueError("not of a version that is known here")
    if (held["log"], held["size"]) != (known.origin, known.size):
        raise ValueError(f"it is of {shown(held['log'])} at size {held['size']}")
    if not all(map(_hash, held["peaks"])) or len(held["peaks"]) != bin(known.size).count("1"):
        raise ValueError("its peaks are not those of a tree of its size")
    peaks = [bytes.fromhex(each) for each in held["peaks"]]
    if Frontier(size=known.size, peaks=peaks).root() != known.root:
        raise ValueError("its peaks do not hash to the known root")
    return Tail(known.size, peaks, ends)


def _sealed_damage(envelope: dict[str, Any], head: Head) -> Stop:
    """An ``integrity`` envelope tells that its run is damaged: it is never more than INVALID."""
    seq, at = envelope["seq"], envelope.get("at")
    text = f"the log itself seals, at seq {seq}, that n {at} of run {envelope['run']} is damaged"
    last = at == head.next_n - 1
    found = head.leaf.hex() if last else envelope.get("found", "")
    return invalid(text, head.seq if last else seq, envelope.get("expected", ""), found)


def blame(envelope: dict[str, Any], leaf: str, head: Head, rest: Iterator[bytes]) -> Stop:
    """An envelope does not name its predecessor: the next of the run tells which was changed."""
    text = "its bytes are not those that the next envelope of its run names"
    if not head.next_n or envelope["prev"] == ZEROS:
        text = "where a run begins prev is zero, and nowhere else"
        return invalid(text, envelope["seq"], head.leaf.hex(), envelope["prev"])
    for data in rest:
        try:
            after = parse(data)
        except ValueError:
            continue
        if isinstance(after, dict) and after.get("run") == envelope["run"]:
            if after.get("prev") not in (leaf, ZEROS):
                return invalid(text, envelope["seq"], after.get("prev"), leaf)
            break
    return invalid(f"{text} (seq {envelope['seq']})", head.seq, envelope["prev"], head.leaf.hex())


def _chunks(file: IO[bytes], size: int) -> Iterator[bytes]:
    while size > 0 and (chunk := file.read(min(CHUNK_BYTES, size))):
        size -= len(chunk)
        yield chunk


def lines_of(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """The lines of what comes in chunks, without newlines; holds one chunk and one line."""
    rest = b""
    for chunk in chunks:
        first, *others = chunk.split(b"\n")
        rest += first
        if len(rest) > LINE_BYTES_MAX:
            raise invalid(f"a line is larger than {LINE_BYTES_MAX} bytes")
        if others:
            yield rest
            rest = others.pop()
            yield from others
    if rest:
        raise invalid("the last line has no newline: something was cut off")


class Account:
    """What events say of granted calls, holds and refusals, to be read after the verdict.

    NUL stands around a ref until its value is looked up: ``shown`` lets none through.
    """

    def __init__(self) -> None:
        self.told, self.orders = list[str](), dict[tuple[str, str], tuple[str, ...]]()
        self.values, self.erased, self.asked = dict[str, str](), set[str](), dict[str, list[str]]()

    def look(self, envelope: dict[str, Any]) -> None:
        """Note an event that is about one of these."""
        kind, event = envelope["kind"], envelope.get("state", {}).get("event")
        key = (envelope["run"], envelope.get("idempotency_key", ""))
        given, out = (e if type(e) is dict else {} for e in map(envelope.get, ("in", "out")))
        rules = envelope.get("decision", {}).get("rules") or [envelope.get("rule", "none")]
        rule, actor = ", ".join(map(shown, rules[:9])), shown(envelope.get("actor", "none"))
        by_event = event in ("Approved", "Declined") and kind not in ("suspended", "refused")
        again = envelope.get("actor") == "register"  # it has a run judged again, and approves none
        by = "the program" if by_event and again else actor if by_event else f"rule {rule}"
        decided = f"decided by {by} (triggered by {actor})"
        if kind == "erasure_done" and _list(given.get("refs")) and len(self.erased) < ERASED_MAX:
            self.erased.update(filter(_ref, given["refs"]))
        said = [f"{shown(e['slot'])} {_marked(e['ref'])}" for e in envelope.get("secrets", [])[:9]]
        if said and said[-1].startswith("proposal ") and len(self.asked) < ERASED_MAX:
            self.asked[key[0]] = said  # a hold names no secret of its own
        ended = out.get("payment_status", envelope.get("outcome", f"failed by rule {rule}"))
        if kind == "intent" and "decision" in envelope and len(self.orders) <= TOLD_MAX:
            by_rule, at = f"allowed by rule {rule}", f"ordered {_moment(envelope)}"
            self.orders[key] = (*_ordered(given, envelope.get("tool")), by_rule, decided, at)
        elif kind in ("result", "failed") and key in self.orders and ended != "waiting":
            word, *order = self.orders.pop(key)
            kept = "payment id" if word == "payment" else "result"
            order.append(f"{kept} {_marked(out.get('payment', out.get('result')))}")
            calls = f"calls {shown(envelope.get('calls', 'not recorded'))}"
            self._tell(key[0], f"{_moment(envelope)} {word} {shown(ended)}", *order, calls)
        elif kind in ("suspended", "refused") or (by_event and kind in ("resumed", "terminal")):
            words = {"suspended": "on hold", "terminal": "declined"}
            words["resumed"] = "judged again" if again else "approved"
            said = said or self.asked.get(key[0], ["no statement"])
            self._tell(key[0], f"{_moment(envelope)} {words.get(kind, kind)}", decided, *said)

    def _tell(self, run: str, *parts: str) -> None:
        if len(self.told) <= TOLD_MAX:
            self.told.append("\n    ".join((*parts, f"run {run}")))

    def lines(self, verdict: Stop) -> Iterator[str]:
        """What was told, where the verdict lets it count; values that are not here say why."""
        for (run, _), (word, *order) in self.orders.items():
            self._tell(run, f"{word} without a recorded answer, so made or not", *order)
        if verdict.word not in ("PASS", "UNPINNED", "UNWITNESSED"):
            self.told = ["nothing: the file does not show that they are in the signed log."]
        yield "Granted calls (decimals in minor units), holds and refusals, as recorded:"
        for each in self.told[:TOLD_MAX] or ["none"]:
            yield re.sub("\0(.*?)\0", lambda ref: self._value(ref[1]), each)
        if len(self.told) > TOLD_MAX:
            yield f"There are more: this list ends after {TOLD_MAX}."

    def _value(self, ref: str) -> str:
        gone, value = "erased" if ref in self.erased else "not disclosed", self.values.get(ref)
        return gone if value is None else shown(json.dumps(value, ensure_ascii=False))


def _marked(value: object) -> str:
    return f"\0{value}\0" if _ref(value) else "none" if value is None else shown(value)


def _moment(envelope: dict[str, Any]) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(envelope["at_ms"] // 1000))


def _ordered(given: dict[str, Any], tool: object) -> tuple[str, ...]:
    if "amount_minor" not in given:
        said = (f"{shown(name)} {_marked(value)}" for name, value in [*given.items()][:99])
        return f"call of {shown(tool)}", *said
    minor, currency = given["amount_minor"], shown(given.get("currency", "no currency"))
    digits = 0 if currency in NO_DECIMALS else 3 if currency in THREE_DECIMALS else 2
    major = f"{decimal.Decimal(minor).scaleb(-digits):,f} " if _count(minor) else ""
    money = f"{currency} {major}({shown(minor)} minor units)"
    return "payment", money, f"to {_marked(given.get('payee'))}"


class Openings:
    """Disclosed secrets: each must open a commitment, and every commitment to its ref."""

    def __init__(self) -> None:
        self.made: dict[str, str] = {}
        self.unmet: set[str] = set()
        self.account: Account | None = None

    def read(self, data: bytes) -> None:
        """Take in the lines of disclosures.ndjson."""
        *lines, rest = data.split(b"\n")
        try:
            for line in (*lines, rest) if rest else lines:
                self._read(canonical(line))
        except ValueError as error:
            raise invalid(f"disclosures.ndjson, line {len(self.made) + 1}: {error}") from None

    def _read(self, held: Any) -> None:
        if not _parts(ref=_ref, value=_text, r=_text)(held) or len(held) != 3:
            raise ValueError("not ref, value and r")
        ref, r = held["ref"], held["r"]
        if ref in self.made:
            raise ValueError("a ref that was disclosed before")
        key = bytes.fromhex(r) if _hash(r) else unbase64(r, 32)
        said = b"nanovm/secret/v1\0" + ref.encode() + b"\0" + held["value"].encode()
        self.made[ref] = hmac.new(key, said, hashlib.sha256).hexdigest()
        self.unmet.add(ref)
        if self.account is not None:
            self.account.values[ref] = held["value"]

    def look(self, envelope: dict[str, Any]) -> None:
        """Compare the commitments of one envelope, and account for it where that is asked."""
        if self.account is not None:
            self.account.look(envelope)
        for each in envelope.get("secrets", ()):
            ref, c = each["ref"], each["c"]
            if self.made.get(ref, c) != c:
                text = f"what is disclosed of {ref} does not open its commitment"
                raise invalid(text, envelope["seq"], c, self.made[ref])
            self.unmet.discard(ref)


def walk(
    lines: Iterator[bytes],
    seqs: Iterable[int] | None,
    chains: Chains,
    take: Callable[[int, bytes], None],
    openings: Openings,
) -> None:
    """Check every envelope; ``take`` gets seq and leaf. Raises Stop at the first fault.

    ``seqs`` are the places that there must be; None where nothing but their order is known.
    """
    awaited, seq = None if seqs is None else iter(seqs), -1
    for data in lines:
        leaf, before = leaf_hash(data), seq
        if awaited is not None:
            seq = next(awaited, -1)
            if seq < 0:
                raise invalid("an envelope more than there should be", before + 1 or None)
        try:
            envelope = read_envelope(data)
        except ValueError as error:
            raise invalid(f"malformed: {error}", seq, found=leaf.hex()) from None
        if envelope["seq"] != seq and (awaited is not None or envelope["seq"] <= before):
            raise invalid("another envelope stands here", seq, seq, envelope["seq"])
        seq = envelope["seq"]
        take(seq, leaf)
        openings.look(envelope)
        chains.follow(envelope, leaf, lines)
    for seq in awaited or ():
        raise invalid("this envelope is missing", seq)
    if openings.unmet:
        raise invalid(f"nothing here commits to the disclosed {min(openings.unmet)}")


# --- what can be verified: bundle, export, receipt -------------------------------------------


class Evidence(NamedTuple):
    """What a file was found to show: roots of the log by its size, and what stays open."""

    checkpoint: Checkpoint | None
    size: int
    roots: dict[int, bytes]
    shows: str
    unproven: str = ""
    open: str = ""
    grown: tuple[Frontier, Chains] | None = None  # where a log that was read from its start ends


class Judge:
    """What the user brought: keys, witnesses, and the checkpoint that was seen before."""

    def __init__(self, keys: list[str], witnesses: list[str], known: str | None) -> None:
        self.openings = Openings()
        self.keys = [self._key(vkey, ED25519) for vkey in dict.fromkeys(keys)]
        self.witnesses = [self._key(vkey, COSIGNATURE) for vkey in dict.fromkeys(witnesses)]
        self.path, self.known = known, None
        if known is not None and os.path.lexists(known):
            try:
                with open(known, "rb") as file:
                    self.known = parse_checkpoint(file.read(LINE_BYTES_MAX))
                _ = self.keys and open_note(self.known.note, self.keys)
            except ValueError as error:
                raise unreadable(
                    f"{shown(known)} is no checkpoint under the key you bring ({error}): name the "
                    "key that signed it too, or another file"
                ) from None
        elif known is not None and not os.path.isdir(os.path.dirname(os.path.abspath(known))):
            raise unreadable(f"make the folder of {shown(known)} first: it is not there")

    @staticmethod
    def _key(vkey: str, kind: int) -> Key:
        try:
            return parse_key(vkey, kind)
        except ValueError as error:
            raise unreadable(f"{shown(vkey)} is no key for this: {error}") from None

    def admit(self, note: bytes) -> Checkpoint:
        """The checkpoint of a note, if the keys and the known log let it count."""
        try:
            checkpoint = parse_checkpoint(note)
            signers = open_note(note, self.keys)[1] if self.keys else []
        except ValueError as error:
            raise invalid(f"checkpoint: {error}") from None
        if any(key.name != checkpoint.origin for key in signers):
            raise invalid("the key is another log's", None, checkpoint.origin, signers[0].name)
        if self.known is not None and self.known.origin != checkpoint.origin:
            raise unreadable(f"--known is about another log, {shown(self.known.origin)}")
        return checkpoint

    def tree(self, *sizes: int, tail: Tail = START) -> Frontier:
        """A tree that keeps its roots at these sizes and at the known one."""
        wanted = [*sizes, *([self.known.size] if self.known else [])]
        return Frontier(*wanted, size=tail.size, peaks=tail.peaks)

    def tail(self, first: int) -> Tail:
        """What was remembered of a log's first envelopes; a Stop with the way out if nothing."""
        if not first:
            return START
        known, text = self.known, f"this export begins at seq {first}: "
        if known is None:
            raise unreadable(f"{text}bring the --known NOTE of what came before, or a full export")
        if first != known.size:
            text += f"{shown(self.path)} ends at {known.size}, so ask for first={known.size}"
            raise unreadable(f"{text}, or for a full export")
        try:
            with open(f"{os.path.realpath(self.path or '')}.tail", "rb") as file:
                return read_tail(file.read(TAIL_BYTES_MAX), known)
        except (FileNotFoundError, ValueError) as error:
            why = "it is missing" if isinstance(error, FileNotFoundError) else error
            raise unreadable(
                f"{shown(self.path)}.tail does not fit {shown(self.path)} ({why}): verify a full "
                "export once with this --known and the log's key, which writes both anew"
            ) from None

    def sentence(self, evidence: Evidence) -> Stop:
        """The verdict on evidence that holds in itself."""
        new, known, lines = evidence.checkpoint, self.known, [evidence.shows]
        if known is not None:
            if evidence.roots.get(known.size, known.root) != known.root:
                found = evidence.roots[known.size]
                raise _diverged(known, new, found)
            if evidence.size < known.size:
                text = f"this log has {evidence.size} envelopes; it had {known.size} before"
                return Stop(5, "STALE", text)
        grade, word = self._grade(evidence, lines)
        proved = known is None or known.size in evidence.roots
        if new is not None and self.path is not None:
            if proved and (word == "PASS" or (word == "UNPINNED" and known is None)):
                lines.append(self._remember(new, evidence.grown))
            else:
                lines.append("the known checkpoint was left as it is")
        lines += ["What this does not prove:", *_caveats(evidence, self, proved)]
        return Stop(0 if word == "PASS" else 3, word, f"grade: {grade}", *lines)

    def _grade(self, evidence: Evidence, lines: list[str]) -> tuple[str, str]:
        new = evidence.checkpoint
        if new is None or evidence.unproven:
            return "UNPROVEN: " + (evidence.unproven or "no checkpoint came with it"), "UNPROVEN"
        if not self.keys:
            text = "UNPINNED: no --key was brought, so this says nothing against the operator"
            return text, "UNPINNED"
        for witness in self.witnesses:
            time_s = cosigned_s(new, witness)
            if time_s is None:
                return f"SIGNED, but {witness.name} did not cosign it", "UNWITNESSED"
            lines.append(f"{witness.name} cosigned it at {time_s} s (Unix time)")
        return "WITNESSED" if self.witnesses else "SIGNED", "PASS"

    def _remember(self, new: Checkpoint, grown: tuple[Frontier, Chains] | None) -> str:
        """Keep the note and, of a whole log, its tail, each whole or not at all; says so."""
        path = os.path.realpath(self.path or "")  # a link stays one
        text = "remembered: the note alone, so next time too it takes a full export"
        if grown and grown[1].runs * _END_BYTES < TAIL_BYTES_MAX - LINE_BYTES_MAX:
            # Before the note: if the disk is full, both stay as they were.
            _replace(f"{path}.tail", tail_parts(*grown))
            text = f"remembered: next time the export with first={new.size} goes on from here"
        _replace(path, [new.note])
        return text


def _replace(path: str, parts: Iterable[bytes | bytearray]) -> None:
    """Put these bytes into a file, whole or not at all."""
    import tempfile  # only --known needs it

    handle, name = tempfile.mkstemp(dir=os.path.dirname(path), prefix=".known-")
    try:
        with os.fdopen(handle, "wb") as file:
            for part in parts:
                file.write(part)
            file.flush()
            os.fsync(file.fileno())
        os.replace(name, path)
    except OSError:
        os.unlink(name)
        raise


def _diverged(known: Checkpoint, new: Checkpoint | None, found: bytes) -> Stop:
    return Stop(
        4,
        "DIVERGED",
        f"the log of {known.origin} is not the one that was seen before: at size {known.size}",
        f"expected: {known.root.hex()}",
        f"found: {found.hex()}",
        "The note that was remembered:",
        *known.note.decode().split("\n"),
        "The note that came with this file:",
        *(new.note.decode().split("\n") if new else ["none"]),
    )


def _caveats(evidence: Evidence, judge: Judge, proved: bool) -> Iterator[str]:
    yield "- that what was recorded is true or complete: only that it is what was recorded."
    if evidence.open:
        yield f"- {evidence.open}"
    if not judge.keys:
        yield "- who made it: anyone can make such a file. Bring the log's key (--key)."
    if judge.known is None:
        yield "- that the log was not rewritten, cut or forked before you first saw it (--known)."
    elif not proved:
        yield f"- that it extends the {judge.known.size} known envelopes: only the whole log can."
    if not judge.witnesses:
        yield "- that others are shown the same log: no witness was asked for (--witness)."
    else:
        yield "- that the witness is a second party: on the operator's own host it is none."


def _check_root(tree: Frontier, checkpoint: Checkpoint, chains: Chains) -> None:
    """The root over the leaves must be the one that was signed."""
    found = tree.roots[checkpoint.size]
    if found != checkpoint.root:
        text = "every chain holds, but not the signed root: the newest envelope of a run was "
        text += "changed, or a whole suffix of the log was rewritten"
        seq = tree.size - 1 if chains.runs == 1 and tree.size == checkpoint.size else None
        raise invalid(text, seq, checkpoint.root.hex(), found.hex())


STORED, DEFLATED = 0, 8  # how a zip's members may be packed
MEMBERS = {
    "manifest.json": LINE_BYTES_MAX,
    "envelopes.ndjson": LOG_BYTES_MAX,
    "proofs.json": LISTS_BYTES_MAX,
    "checkpoint": LINE_BYTES_MAX,
    "disclosures.ndjson": LISTS_BYTES_MAX,
}


def read_bundle(file: IO[bytes], judge: Judge) -> Evidence:
    """Check a zip with the envelopes of a log or of one run, and what proves them."""
    import zipfile  # only bundles need it

    try:
        archive = zipfile.ZipFile(file)
    except zipfile.BadZipFile as error:
        raise unreadable(shown(f"BadZipFile: {error}")) from None
    if "manifest.json" not in archive.namelist():
        raise unreadable("a zip without manifest.json is no bundle")
    members = _check_archive(file, archive)
    log, run, size, leaves = _manifest(_member(file, members["manifest.json"]))
    signed = judge.admit(b"".join(_unpacked(file, members["checkpoint"])))
    if (signed.origin, signed.size) != (log, size):
        found = f"{log}, {size}"
        raise invalid(
            "manifest and checkpoint differ", None, f"{signed.origin}, {signed.size}", found
        )
    if ("proofs.json" in members) != (run is not None):
        raise invalid("proofs.json belongs to the bundle of a run, and to no other")
    if "disclosures.ndjson" in members:
        judge.openings.read(b"".join(_unpacked(file, members["disclosures.ndjson"])))
    lines = lines_of(_unpacked(file, members["envelopes.ndjson"]))
    if run is None:
        evidence = _whole_log(lines, signed, leaves, judge)
    else:
        if leaves > members["envelopes.ndjson"].file_size:
            raise invalid("manifest.json names more leaves than envelopes.ndjson has bytes")
        proofs = _proofs(_member(file, members["proofs.json"], 70 * leaves + 2), signed)
        evidence = _one_run(lines, signed, leaves, run, proofs, judge)
    said = f"; {len(judge.openings.made)} disclosed values open their commitments"
    said = said if "disclosures.ndjson" in members else ""
    return evidence._replace(shows=evidence.shows + said)


def _member(file: IO[bytes], info: zipfile.ZipInfo, parts: int = 100) -> Any:
    data = b"".join(_unpacked(file, info))
    try:
        if data.count(b",") + data.count(b"[") > parts:  # before it is held as so many objects
            raise ValueError("more than a bundle of this size has")
        return canonical(data)
    except ValueError as error:
        raise invalid(f"{info.filename}: {error}") from None


def _unpacked(file: IO[bytes], info: zipfile.ZipInfo) -> Iterator[bytes]:
    """What a member holds, a chunk at a time: just what it declares, and nothing behind that."""
    at, left = _start(file, info), info.compress_size
    inflate, packed, size, crc = zlib.decompressobj(-zlib.MAX_WBITS), b"", 0, 0
    while size <= info.file_size and not inflate.eof:
        if not packed:
            file.seek(at)
            packed = file.read(min(CHUNK_BYTES, left))
            at, left = at + len(packed), left - len(packed)
        if info.compress_type == STORED:
            chunk, packed = packed, b""
        else:
            chunk = inflate.decompress(packed, CHUNK_BYTES)
            packed = inflate.unconsumed_tail
        size, crc = size + len(chunk), zlib.crc32(chunk, crc)
        if not chunk and not packed:
            break
        yield chunk
    behind = left or packed or inflate.unused_data or inflate.eof == (info.compress_type == STORED)
    if behind or (size, crc) != (info.file_size, info.CRC):
        raise unreadable(f"{info.filename} does not unpack to what it declares, and to no more")


def _start(file: IO[bytes], info: zipfile.ZipInfo) -> int:
    """Where a member's data begin; its own header says of it what the directory says."""
    file.seek(info.header_offset)
    magic, _, *said, _, _, _, _, _, name, extra = struct.unpack("<4s5H3I2H", file.read(30))
    named = [magic, *said, file.read(name)]
    if named != [b"PK\3\4", info.flag_bits, info.compress_type, info.filename.encode()]:
        raise unreadable(f"{info.filename} has a header that says something else")
    return int(info.header_offset + 30 + name + extra)


def _check_archive(file: IO[bytes], archive: zipfile.ZipFile) -> dict[str, zipfile.ZipInfo]:
    """These members and no others; nothing hides before, between or behind; no zip bomb."""
    infos = sorted(archive.infolist(), key=lambda each: each.header_offset)
    names = [info.filename for info in infos]
    if len(names) > len(set(names)) or not set(names) <= MEMBERS.keys():
        raise invalid("members that a bundle does not have, or twice", None, [*MEMBERS], names[:10])
    if not {"envelopes.ndjson", "checkpoint"} <= set(names):
        raise invalid("envelopes.ndjson or checkpoint is missing")
    file.seek(-22, os.SEEK_END)
    hides, ends = bool(archive.comment) or file.read(4) != b"PK\5\6", {0}
    for info in infos:
        if info.flag_bits & 0x1 or info.compress_type not in (STORED, DEFLATED):
            raise unreadable(f"{info.filename} is encrypted, or packed in an unknown way")
        bomb = info.file_size > max(LINE_BYTES_MAX, RATIO_MAX * info.compress_size)
        if bomb or info.file_size > MEMBERS[info.filename]:
            raise unreadable(f"{info.filename} unpacks to more than a bundle holds")
        hides = hides or info.header_offset not in ends or bool(info.comment)
        end = _start(file, info) + info.compress_size
        ends = {end, *(end + size for size in (12, 16, 20, 24) if info.flag_bits & 0x8)}
    if hides or archive.start_dir not in ends:
        raise invalid("the archive holds something beside its members")
    return {info.filename: info for info in infos}


def _manifest(held: Any) -> tuple[str, str | None, int, int]:
    """Log, run (None: all of it), size and leaves."""
    checks = _parts(v=_text, log=_text, scope=_anything, size=_count, leaves=_count)
    if not checks(held) or len(held) != 5:
        raise invalid("manifest.json: not v, log, scope, size and leaves")
    if held["v"] != "nanovm-bundle/1":
        raise unreadable(f"a bundle of version {shown(held['v'])}; known is nanovm-bundle/1")
    scope = held["scope"]
    run = scope.get("run") if isinstance(scope, dict) else None
    if scope != {"kind": "log"} and not (_run(run) and scope == {"kind": "run", "run": run}):
        raise invalid("manifest.json: its scope is neither the log nor a run")
    return held["log"], run, held["size"], held["leaves"]


def _whole_log(lines: Iterator[bytes], signed: Checkpoint, leaves: int, judge: Judge) -> Evidence:
    if leaves != signed.size:
        raise invalid("not as many leaves as the signed log has", None, signed.size, leaves)
    tree, chains = judge.tree(signed.size), Chains(signed.origin)
    walk(lines, range(leaves), chains, lambda _, leaf: tree.append(leaf), judge.openings)
    _check_root(tree, signed, chains)
    shows = f"the whole log {signed.origin}: {leaves} envelopes of {chains.runs} runs"
    return Evidence(signed, signed.size, tree.roots, shows, grown=(tree, chains))


def _one_run(
    lines: Iterator[bytes], signed: Checkpoint, leaves: int, run: str, proofs: Proofs, judge: Judge
) -> Evidence:
    if not leaves or leaves != len(proofs):
        raise invalid("not a leaf a proof", None, len(proofs), leaves)

    def prove(seq: int, leaf: bytes) -> None:
        root = inclusion_root(leaf, seq, signed.size, proofs[seq])
        if root != signed.root:
            text = "its bytes are not in the signed tree: its proof leads to another root"
            raise invalid(text, seq, signed.root.hex(), root.hex() if root else "no proof")

    chains = Chains(signed.origin, lineage=run)
    walk(lines, sorted(proofs), chains, prove, judge.openings)
    if _key_of(run) not in chains.heads and chains.ends.find(_key_of(run)) is None:
        raise invalid(f"there is no envelope of the run {run} itself")
    more = f" in {chains.runs} chains" if chains.runs > 1 else ""
    shows = f"run {run}: {leaves} envelopes{more} in the signed log {signed.origin} of "
    shows += f"{signed.size}; " + ("it has not ended" if chains.unended else "it has ended")
    left = "that nothing was left out at the run's end, nor anything about other runs."
    return Evidence(signed, signed.size, {signed.size: signed.root}, shows, open=left)


def _proofs(held: Any, signed: Checkpoint) -> Proofs:
    found = {}
    for seq, proof in held.items() if isinstance(held, dict) else ():
        if not re.fullmatch("0|[1-9][0-9]{0,15}", seq) or int(seq) >= signed.size:
            raise invalid(f"proofs.json: no envelope {shown(seq)} is in this log")
        found[int(seq)] = _proof(proof, int(seq))
    return found


def _proof(held: Any, seq: int) -> list[bytes]:
    try:
        if type(held) is not list or not all(map(_text, held)):
            raise ValueError("not a list of base64")
        return [unbase64(each, 32) for each in held]
    except ValueError as error:
        raise invalid(f"its proof is {error}", seq) from None


TRAILER = ("checkpoint", "count", "head", "first")


def read_export(file: IO[bytes], judge: Judge) -> Evidence:
    """Check lines of envelopes and their trailer: of a log, of its newest part, or of one run."""
    size = file.seek(0, os.SEEK_END)
    file.seek(max(0, size - 2 * LINE_BYTES_MAX))
    *before, last, rest = (b"\n\n" + file.read()).split(b"\n")
    held = _trailer(last if not rest else b"")
    note, count, head, first = (held.get(each, 0) for each in TRAILER)
    typed = (note is None or _text(note)) and _count(count) and _hash(head) and _count(first)
    if not typed or not count + first:
        raise invalid("the trailer's checkpoint, count, head or first is not one")
    signed = None if note is None else judge.admit(note.encode())
    file.seek(0)
    ends = [_place(line) for line in (file.readline(LINE_BYTES_MAX)[:-1], before[-1])]
    file.seek(0)
    lines = lines_of(_chunks(file, size - len(last) - 1))
    # All lines of one run, and not all of the log: so it is the export of a run.
    whole = (ends[0][0], ends[1][0]) == (0, count - 1) and (not signed or signed.size <= count)
    if first or whole or ends[0][1] is None or ends[0][1] != ends[1][1]:
        evidence, chains = _exported_log(lines, first, count, signed, judge)
    else:
        evidence, chains = _exported_run(lines, signed, ends[0][1])
    found = chains.leaf.hex() or ZEROS
    if found != head or chains.total != count:
        text = "count and head are not those of the envelopes"
        raise invalid(text, None, f"{count}, {head}", f"{chains.total}, {found}")
    return evidence


def _exported_run(
    lines: Iterator[bytes], signed: Checkpoint | None, run: str
) -> tuple[Evidence, Chains]:
    chains = Chains(signed.origin if signed else None, run)
    walk(lines, None, chains, lambda *_: None, Openings())
    text = "the export of a run has no proofs that tie it to a signed log: ask for a bundle"
    shows = f"run {run}: {chains.total} envelopes, each naming the one before"
    roots = {signed.size: signed.root} if signed else {}
    return Evidence(signed, max(roots, default=0), roots, shows, text), chains


def _exported_log(
    lines: Iterator[bytes], first: int, count: int, signed: Checkpoint | None, judge: Judge
) -> tuple[Evidence, Chains]:
    """Check a log from ``first`` on; what came before is its tail's to say."""
    tail, end = judge.tail(first), first + count
    origin, size = (signed.origin, signed.size) if signed else (None, first)
    tree, chains = judge.tree(size, tail=tail), Chains(origin, None, tail.ends)
    try:
        walk(lines, range(first, end), chains, lambda _, leaf: tree.append(leaf), judge.openings)
        if size > end:
            raise invalid("the signed log goes on after this", end, f"{size} envelopes", end)
        if signed is not None and size == first > 0:
            tree.roots[first] = signed.root  # two notes of one size: one root, or DIVERGED
        elif signed is not None and size >= first:
            _check_root(tree, signed, chains)
    except Stop as stop:
        text = "This part does not go on from what was remembered: a full export, verified with "
        text += "the same --known, tells whether the part or the log was changed."
        raise Stop(stop.code, stop.word, *stop.lines, *([text] if first else [])) from None
    shows, left = f"a whole log: {count} envelopes", ""
    if first:
        shows = f"{count} envelopes that follow the {first} that were verified before"
        left = f"the first {first} anew: how their runs ended, {shown(judge.path)}.tail says."
    # Nothing from ``first`` on under a shorter checkpoint: the log itself is shorter.
    total = end if count else min(first, size)
    late = f"the last {end - size} envelopes are later than the checkpoint"
    late = late if signed and count and size < end else ""
    return Evidence(signed, total, tree.roots, shows, late, left, (tree, chains)), chains


def _trailer(line: bytes) -> dict[str, Any]:
    try:
        held = parse(line, decoder=_STRICT)
        if not isinstance(held, dict) or held.keys() | {"first"} != {"v", *TRAILER}:
            raise ValueError("not v, count, head and checkpoint")
        if held["v"] != "nanovm-export/1":
            raise ValueError("no version that is known here")
    except ValueError as error:
        text = f"its last line is not the trailer of a whole export ({error}): a filtered export, "
        raise unreadable(f"{text}a CSV or a file that was cut off is not verifiable") from None
    return held


def _place(line: bytes) -> tuple[int | None, str | None]:
    try:
        envelope = read_envelope(line)
    except ValueError:
        return None, None  # the walk will say where and why
    return envelope["seq"], envelope["run"]


def read_receipt(held: dict[str, Any], judge: Judge) -> Evidence:
    """Check the proof that one envelope's hash stands in the signed log."""
    checks = {"run": _run, "n": _count, "seq": _count, "canonical_hash": _hash}
    if not _parts(**checks, checkpoint=_text, proof=_anything)(held) or len(held) != 6:
        raise invalid("not run, n, seq, canonical_hash, checkpoint and proof, each of its type")
    signed = judge.admit(held["checkpoint"].encode())
    seq, leaf, n = held["seq"], held["canonical_hash"], held["n"]
    root = inclusion_root(bytes.fromhex(leaf), seq, signed.size, _proof(held["proof"], seq))
    if root != signed.root:
        found = root.hex() if root else "no proof"
        raise invalid("its hash is not there in the signed tree", seq, signed.root.hex(), found)
    if n > seq:  # all that a receipt's own words can be held to
        text = "its n, run or seq is another's: no run has so many envelopes before this one"
        raise invalid(text, seq, f"n = {seq} at most", f"n = {n}")
    left = "what the envelope says, and that it is this run's and n: see its bytes for that."
    shows = f"{leaf} stands at seq {seq} of the signed log {signed.origin} of {signed.size}"
    return Evidence(signed, signed.size, {signed.size: signed.root}, shows, open=left)


# --- the command -----------------------------------------------------------------------------

# What broken archives and files make the standard library raise.
_BROKEN = (
    OSError, EOFError, ValueError, RuntimeError, MemoryError, OverflowError,
    struct.error, zlib.error, KeyError,
)  # fmt: skip


def verify(path: str, judge: Judge) -> Stop:
    """The verdict on a file; what is wrong with it is raised as a Stop."""
    with open(path, "rb") as file:
        start, more = file.read(LINE_BYTES_MAX), file.read(1)
        if start[:2] == b"PK":
            return judge.sentence(read_bundle(file, judge))
        if start[:1] != b"{":
            raise unreadable("neither a bundle, an export nor a receipt; CSV is not verifiable")
        try:
            held = parse(start.strip(), decoder=_STRICT)
        except ValueError:
            return judge.sentence(read_export(file, judge))
        if held.get("v") == "nanovm-export/1":  # a trailer alone: nothing is new
            return judge.sentence(read_export(file, judge))
        if more:
            raise unreadable(f"a receipt of more than {LINE_BYTES_MAX} bytes")
        return judge.sentence(read_receipt(held, judge))


def main(argv: Sequence[str] | None = None) -> int:
    """Verify the file that the arguments name, say what was found, and return the exit code."""
    about = (__doc__ or "").partition("\n\n")
    parser = argparse.ArgumentParser(
        description=about[0], epilog=about[2], formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("file", metavar="FILE")
    parser.add_argument("--key", action="append", default=[], metavar="VKEY")
    parser.add_argument("--witness", action="append", default=[], metavar="VKEY")
    parser.add_argument("--known", metavar="NOTE")
    parser.add_argument("--explain", action="store_true")
    args = parser.parse_args(argv)
    account = Account() if args.explain else None
    try:
        judge = Judge(args.key, args.witness, args.known)
        judge.openings.account = account
        verdict = verify(args.file, judge)
    except Stop as stop:
        verdict = stop
    except _BROKEN as error:
        verdict = unreadable(shown(f"{type(error).__name__}: {error}"))
    print(verdict.word, *verdict.lines, sep="\n")
    if account is not None:
        print(*account.lines(verdict), sep="\n")
    return verdict.code


if __name__ == "__main__":
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8")  # notes are evidence: never approximated
    sys.exit(main())
