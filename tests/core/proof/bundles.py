"""Builds logs, signed notes, bundles, exports and receipts with no code of the product."""

import base64
import contextlib
import hashlib
import hmac
import io
import json
import struct
import tempfile
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from nanovm_core import verify
from tests.house.repository import ROOT

ORIGIN = "log.example/abc"
ZEROS = "0" * 64
VERSION = "nanovm-envelope/2"
HASH = "ab" * 32
AT_MS = 1_700_000_000_000
REF = "vault://secret/00000000-0000-4000-8000-000000000001"
R = bytes(range(32))
VALUE = "Zoë — DE02 1203 0000 0000 2020 51"


def run_id(number: int) -> str:
    return f"01990000-0000-7000-8000-{number:012x}"


def dumps(value: object) -> bytes:
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return text.encode()


def b64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def raw(text: str | None) -> bytes:
    return base64.b64decode(text or "")


def vectors(name: str) -> Any:
    """A file of published vectors; the test is skipped where it is not there."""
    folder = ROOT.parent / "shared/data/vectors"
    if not (folder / name).exists():
        pytest.skip(f"the published vectors ({name}) are not beside the checkout")
    return json.loads((folder / name).read_text(encoding="utf-8"))


def leaf(data: bytes) -> bytes:
    return hashlib.sha256(b"\0" + data).digest()


def _half(n: int) -> int:
    k = 1
    while k * 2 < n:
        k *= 2
    return k


def root(leaves: Sequence[bytes]) -> bytes:
    """MTH over leaf hashes."""
    if not leaves:
        return hashlib.sha256(b"").digest()
    if len(leaves) == 1:
        return leaves[0]
    k = _half(len(leaves))
    return hashlib.sha256(b"\1" + root(leaves[:k]) + root(leaves[k:])).digest()


def path(m: int, leaves: Sequence[bytes]) -> list[bytes]:
    """PATH(m, D[n])."""
    if len(leaves) == 1:
        return []
    k = _half(len(leaves))
    if m < k:
        return [*path(m, leaves[:k]), root(leaves[k:])]
    return [*path(m - k, leaves[k:]), root(leaves[:k])]


def growth(m: int, leaves: Sequence[bytes], whole: bool = True) -> list[bytes]:
    """SUBPROOF(m, D[n], b)."""
    if m == len(leaves):
        return [] if whole else [root(leaves)]
    k = _half(len(leaves))
    if m <= k:
        return [*growth(m, leaves[:k], whole), root(leaves[k:])]
    return [*growth(m - k, leaves[k:], False), root(leaves[:k])]


class Signer:
    """A log's key, or with ``kind`` 4 a witness's."""

    def __init__(self, name: str = ORIGIN, seed: int = 1, kind: int = 1) -> None:
        self.name, self.kind = name, kind
        self._key = Ed25519PrivateKey.from_private_bytes(bytes([seed]) * 32)
        self.public = self._key.public_key().public_bytes_raw()
        typed = bytes([kind]) + self.public
        self.id = hashlib.sha256(name.encode() + b"\n" + typed).digest()[:4]
        self.vkey = f"{name}+{self.id.hex()}+{b64(typed)}"

    def signature(self, message: bytes) -> bytes:
        return self._key.sign(message)

    def line(self, text: str, time_s: int = 1_700_000_000) -> str:
        """A signature line under a note's text."""
        message, stamp = text.encode(), b""
        if self.kind == 4:
            message = f"cosignature/v1\ntime {time_s}\n{text}".encode()
            stamp = struct.pack(">Q", time_s)
        return f"— {self.name} {b64(self.id + stamp + self.signature(message))}\n"


LOG_KEY = Signer()
OTHER_KEY = Signer(seed=2)
WITNESS = Signer("witness.example/w", 3, 4)


def note(size: int, root_hash: bytes, *signers: Signer, origin: str = ORIGIN) -> bytes:
    text = f"{origin}\n{size}\n{b64(root_hash)}\n"
    return (text + "\n" + "".join(each.line(text) for each in signers or (LOG_KEY,))).encode()


class Log:
    """An honest log: each envelope gets its place when it is added."""

    def __init__(self, origin: str = ORIGIN) -> None:
        self.origin = origin
        self.lines: list[bytes] = []
        self.places: list[tuple[str, int]] = []
        self._heads: dict[str, tuple[int, str]] = {}

    def add(self, run: str, kind: str, **fields: Any) -> int:
        """Seal an envelope; a keyword sets a field, None leaves it out. Returns its seq."""
        n, prev = self._heads.get(run, (0, ZEROS))
        seq = len(self.lines)
        usual: dict[str, Any] = {"log": self.origin, "seq": seq, "run": run, "n": n, "kind": kind}
        usual |= {"v": VERSION, "at_ms": AT_MS + seq, "actor": "runtime", "prev": prev}
        if kind == "terminal":
            usual["length"] = n + 1
        return self.put({k: v for k, v in {**usual, **fields}.items() if v is not None})

    def put(self, envelope: Mapping[str, Any]) -> int:
        return self.append(dumps(envelope), str(envelope["run"]), int(envelope["n"]))

    def append(self, data: bytes, run: str, n: int) -> int:
        self.lines.append(data)
        self.places.append((run, n))
        self._heads[run] = (n + 1, leaf(data).hex())
        return len(self.lines) - 1

    @property
    def leaves(self) -> list[bytes]:
        return [leaf(line) for line in self.lines]

    def note(self, *signers: Signer, size: int | None = None) -> bytes:
        leaves = self.leaves[:size]
        return note(len(leaves), root(leaves), *signers, origin=self.origin)

    def of(self, run: str) -> list[int]:
        return [seq for seq, place in enumerate(self.places) if place[0] == run]


def commitment(value: str = VALUE, ref: str = REF, r: bytes = R) -> str:
    """c of the specification."""
    said = b"nanovm/secret/v1\0" + ref.encode() + b"\0" + value.encode()
    return hmac.new(r, said, hashlib.sha256).hexdigest()


def begin(log: Log, run: str, **fields: Any) -> None:
    secret = {"slot": "payee", "ref": REF, "c": commitment()}
    named = {"program": HASH, "policy": HASH, "snapshot": HASH}
    log.add(run, "genesis", **named, capabilities=HASH, secrets=[secret], **{"in": {"payee": REF}})
    said: dict[str, Any] = {
        "state": {"from": "running.active", "event": "StepRequested", "to": "running.waiting"},
        "decision": {"verdict": "ACCEPTED", "rules": ["POL-001"]},
        "warrant": {"id": HASH, "expires_ms": AT_MS},
        "budget": {"reserved": [["workspace/EUR", 1]], "left": {"workspace/EUR": -1}},
    }
    log.add(run, "intent", step="charge", tool="t", idempotency_key=HASH, **said, **fields)
    log.add(run, "result", outcome="done", out={"amount_minor": 128_450, "city": "Köln"})


def whole_log(runs: int = 2) -> Log:
    """A log with its own genesis and runs that take turns and end; one gets a late envelope."""
    log = Log()
    log.add("log", "genesis", program=HASH, policy=HASH)
    for number in range(runs):
        begin(log, run_id(number))
    log.add("log", "policy", rule="POL-001", note="free words")
    for number in range(runs):
        log.add(run_id(number), "terminal", outcome="completed")
    if runs:
        log.add(run_id(0), "ignored", rule="FSM-003")
    return log


def packed(members: Mapping[str, bytes] | Sequence[tuple[str, bytes]]) -> bytes:
    pairs = members.items() if isinstance(members, Mapping) else members
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in pairs:
            archive.writestr(zipfile.ZipInfo(name), data, zipfile.ZIP_DEFLATED)
    return file.getvalue()


def manifest(log: Log, scope: Mapping[str, str], leaves: int) -> dict[str, Any]:
    """What a bundle says of itself."""
    held = {"v": "nanovm-bundle/1", "log": log.origin, "scope": dict(scope)}
    return {**held, "size": len(log.lines), "leaves": leaves}


def disclosed(value: str = VALUE, ref: str = REF, r: bytes = R) -> bytes:
    return dumps({"ref": ref, "value": value, "r": r.hex()}) + b"\n"


def log_members(log: Log, *signers: Signer, **more: bytes) -> dict[str, bytes]:
    return {
        "manifest.json": dumps(manifest(log, {"kind": "log"}, len(log.lines))),
        "envelopes.ndjson": b"".join(line + b"\n" for line in log.lines),
        "checkpoint": log.note(*signers),
        **{f"{name}.ndjson": data for name, data in more.items()},
    }


def run_members(
    log: Log, run: str, *signers: Signer, runs: Sequence[str] = (), **more: bytes
) -> dict[str, bytes]:
    """The bundle of a run; ``runs``: all chains of its lineage, where these are several."""
    seqs, leaves = sorted(seq for each in runs or (run,) for seq in log.of(each)), log.leaves
    proofs = {str(seq): [b64(each) for each in path(seq, leaves)] for seq in seqs}
    return {
        "manifest.json": dumps(manifest(log, {"kind": "run", "run": run}, len(seqs))),
        "envelopes.ndjson": b"".join(log.lines[seq] + b"\n" for seq in seqs),
        "proofs.json": dumps(proofs),
        "checkpoint": log.note(*signers),
        **{f"{name}.ndjson": data for name, data in more.items()},
    }


def export(lines: Sequence[bytes], checkpoint: bytes | None, /, **changed: Any) -> bytes:
    trailer = {"v": "nanovm-export/1", "count": len(lines), "head": leaf(lines[-1]).hex()}
    signed = checkpoint.decode() if checkpoint is not None else None
    trailer |= {"checkpoint": signed, **changed}
    return b"".join(line + b"\n" for line in lines) + dumps(trailer) + b"\n"


def receipt(log: Log, seq: int, /, *signers: Signer, **changed: Any) -> bytes:
    run, n = log.places[seq]
    held = {"run": run, "n": n, "seq": seq, "canonical_hash": leaf(log.lines[seq]).hex()}
    held |= {"checkpoint": log.note(*signers).decode()}
    held |= {"proof": [b64(each) for each in path(seq, log.leaves)], **changed}
    return json.dumps(held, indent=1).encode()


def flips(data: bytes, every: int) -> Iterator[bytes]:
    """Its bytes changed in turn, and each time in another way."""
    for at in range(0, len(data), every):
        changed = data[at] ^ (0x01, 0x20, 0x80, 0xFF)[at % 4]
        yield data[:at] + bytes([changed]) + data[at + 1 :]


def judged(data: bytes, *arguments: str) -> tuple[int, str]:
    """The verifier's exit code for a file, and what it prints."""
    said = io.StringIO()
    with tempfile.NamedTemporaryFile() as file, contextlib.redirect_stdout(said):
        file.write(data)
        file.flush()
        code = verify.main([file.name, *arguments])
    return code, said.getvalue()
