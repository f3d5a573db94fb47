"""Certificates of erasure, read from the envelopes that seal the erasure."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from engine.clock import now_ms
from engine.errors import ErasureRefusedError
from engine.models import Envelope
from engine.store import records


@dataclass(frozen=True, slots=True, kw_only=True)
class Certificate:
    """What was erased, where, and which envelope seals it. It holds no personal value.

    ``of`` is what was erased (run, supplier), and ``subject`` its id. ``state`` is done, or
    incomplete where some place still holds something: then no envelope seals the erasure as done,
    and erasing again continues it.
    """

    id: str = ""
    of: str
    subject: str
    code: str
    reason: str
    refs: tuple[str, ...]
    places: Mapping[str, object]
    kept: tuple[str, ...] = ()
    state: str = "done"
    head_before: str
    head_after: str = ""
    seq: int = -1
    n: int = -1
    hash: str = ""
    log: str = ""  # the name of the log that seals it
    chain: str = ""  # in it: the run, or "log" where a restore had closed the run's own
    at_ms: int = field(default_factory=now_ms)

    @classmethod
    def sealed(cls, of: str, row: Any, asked: Envelope, done: Envelope) -> "Certificate":
        """The certificate of an erasure, by the envelopes that seal its request and its end.

        ``row``: what was erased, with an ``id`` and a ``code``.

        Raises:
            ErasureRefusedError: PII-011, where the end cannot be read.
        """
        body = records.body_of(done.bytes)
        given, out = records.part_of(body, "in"), records.part_of(body, "out")
        if not given or not out:
            raise ErasureRefusedError("PII-011", "The erasure's envelope cannot be read; run fsck.")
        return cls(
            id=done.hash[:32],
            of=of,
            subject=str(row.id),
            code=row.code,
            reason=str(given["reason"]),
            refs=refs_in(body),
            places=out["destroyed"],
            kept=tuple(out["kept"]),
            head_before=str(records.body_of(asked.bytes).get("prev", "")),
            head_after=done.hash,
            seq=done.seq,
            n=done.n,
            hash=done.hash,
            log=str(body["log"]),
            chain=done.run,
            at_ms=int(str(body["at_ms"])),
        )

    def to_json(self) -> dict[str, object]:
        """The certificate as JSON values."""
        lists = {"refs": list(self.refs), "kept": list(self.kept), "places": dict(self.places)}
        values = asdict(self) | lists
        of = values.pop("of")
        return {
            "v": "nanovm-erasure/1",
            "id": values.pop("id"),
            of: values.pop("subject"),
            **values,
        }


def refs_in(body: Mapping[str, object]) -> tuple[str, ...]:
    """The refs that an erasure's envelope names."""
    refs = records.part_of(body, "in").get("refs")
    return tuple(map(str, refs)) if isinstance(refs, list) else ()
