"""Signing, checking and encoding, compared with the primitive that each of them wraps."""

import hashlib
import json

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from bench.kit import subject
from bench.kit.report import Table, row
from bench.kit.rounds import Contestant, compare
from nanovm_core.core import warrants
from nanovm_core.core.canonical import encode
from nanovm_core.core.envelope import (
    Place,
    canonical_hash,
    encode_envelope,
    encode_snapshot,
)
from nanovm_core.core.events import EffectDone
from nanovm_core.core.fsm import transition
from nanovm_core.core.messages import Draft, Effect, Snapshot

TTL_MS = 900_000
SEED = bytes(range(32))  # a bench's key guards nothing
PLACE = Place(log="bench", seq=7, run=subject.RUN, n=7, prev="0" * 64)
PEERS = ("cryptography",)


def table() -> Table:
    """Each of ours, then the primitive on the same bytes."""
    pairs = [*_warrant_pairs(), *_encoding_pairs()]
    found = compare([each for pair in pairs for each in pair])
    return Table(
        title="Signing and encoding",
        says="In units of the bare primitive on the same bytes: what being strict costs.",
        rows=[
            row(found, ours.name, bare.name, None, f"{ours.name} : {bare.name}")
            for ours, bare in pairs
        ],
        peers=PEERS,
    )


def _owing() -> tuple[Snapshot, Effect, Draft]:
    """A run that owes its second effect, that effect, and the intent sealed for it."""
    program = subject.program()
    first = subject.started(program)
    key = first.owed.key if first.owed else ""
    done = EffectDone(key=key, out={"size_bytes": 1000})
    decision = transition(program, first, done, subject.CONTEXT)
    return decision.snapshot, decision.effects[0], decision.drafts[-1]


def _warrant_pairs() -> list[tuple[Contestant, Contestant]]:
    _, effect, _ = _owing()
    key = Ed25519PrivateKey.from_private_bytes(SEED)
    bound = warrants.binding(subject.RUN, "0" * 64, effect)
    warrant = warrants.mint(bound, at_ms=subject.START_MS, ttl_ms=TTL_MS)
    token = warrants.sign(warrant, bound, key)
    names: dict[str, object] = {
        "w": warrants,
        "warrant": warrant,
        "bound": bound,
        "key": key,
        "token": token,
        "public": key.public_key(),
        "at": subject.START_MS,
    }
    body = token[64:]
    verify = {"verify": key.public_key().verify, "signature": key.sign(body), "body": body}
    mint = "w.mint(bound, at_ms=at, ttl_ms=900_000)"
    sha = {"sha": hashlib.sha256, "body": encode(bound)}
    return [
        (
            Contestant("a warrant signed", "w.sign(warrant, bound, key)", names),
            Contestant("Ed25519 sign", "sign(body)", {"sign": key.sign, "body": body}),
        ),
        (
            Contestant("a warrant checked", "w.check(token, bound, public, at_ms=at)", names),
            Contestant("Ed25519 verify", "verify(signature, body)", verify),
        ),
        (
            Contestant("a warrant minted", mint, names),
            Contestant("SHA-256 of its bytes", "sha(body).hexdigest()", sha),
        ),
    ]


def _encoding_pairs() -> list[tuple[Contestant, Contestant]]:
    snapshot, _, draft = _owing()
    names = {"program": "0" * 64, "snapshot": "1" * 64}
    data = encode_envelope(draft, PLACE, names=names)
    value = json.loads(data)
    call = "e(draft, place, names=names)"
    ours = {"e": encode_envelope, "draft": draft, "place": PLACE, "names": names}
    dumps = 'json.dumps(v, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()'
    plain = {"json": json, "v": value}
    state = encode_snapshot(snapshot)
    return [
        (
            Contestant(
                "canonical encoding of an envelope's fields", "e(v)", {"e": encode, "v": value}
            ),
            Contestant("json.dumps, sorted", dumps, plain),
        ),
        (
            Contestant("an envelope encoded", call, ours),
            Contestant("json.dumps of the envelope, sorted", dumps, plain),
        ),
        (
            Contestant("an envelope hashed", "h(data)", {"h": canonical_hash, "data": data}),
            Contestant(
                "SHA-256 of the envelope",
                "h(data).hexdigest()",
                {"h": hashlib.sha256, "data": data},
            ),
        ),
        (
            Contestant("a snapshot encoded", "e(s)", {"e": encode_snapshot, "s": snapshot}),
            Contestant(
                "json.dumps of the snapshot, sorted", dumps, {"json": json, "v": json.loads(state)}
            ),
        ),
    ]
