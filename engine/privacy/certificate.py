"""Certificates of erasure, read from the envelopes that seal the erasure."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from engine.application import label_of, why_kept
from engine.clock import now_ms
from engine.errors import ErasureRefusedError
from engine.models import Envelope, Secret
from engine.store import records
from nanovm_core.core.vault import PREFIX

REASONS: Mapping[str, str] = {
    "art17-1-a": "no longer needed for its purpose",
    "art17-1-b": "consent withdrawn",
    "art17-1-c": "objection to the processing",
    "art17-1-d": "processed unlawfully",
    "art17-1-e": "a law demands the erasure",
    "art17-1-f": "collected from a child",
}
REPLAYED = "restore"  # the ground of a repeated erasure: the first one's envelope is lost
DETAILS = "details"  # how the label of a secret is found that is in no run


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
    orderer: str = ""  # visitor, operator, link-<id>, expiry or restore
    runs: tuple[Mapping[str, object], ...] = ()  # erased with it, or kept and by which rule

    @property
    def ground(self) -> str:
        """The ground in words."""
        if self.reason == REPLAYED:
            return "repeated after a restore, which undid the erasure and lost its record"
        return f"Art. 17(1)({self.reason[-1:]}) GDPR: {REASONS.get(self.reason, 'unknown')}"

    @property
    def progress(self) -> str:
        """In how many places nothing is left, in words."""
        done = sum(isinstance(outcome, int) for outcome in self.places.values())
        return f"{done} of {len(self.places)} places"

    @property
    def values(self) -> tuple[tuple[str, str], ...]:
        """Label and ref of each value that was erased."""
        refs = [ref for ref in self.refs if ref.startswith(PREFIX)]
        slots = dict(Secret.objects.filter(ref__in=refs).values_list("ref", "slot"))
        return tuple((label_of(slots.get(ref, DETAILS)), ref) for ref in refs)

    @property
    def labelled_runs(self) -> list[dict[str, object]]:
        """What became of each run, with the labels of the values that were erased."""
        ids = [str(each["run"]) for each in self.runs if "certificate" in each]
        labels: dict[str, set[str]] = {}
        gone = Secret.objects.filter(run_id__in=ids).exclude(erased_ms=None)
        for run, slot in gone.values_list("run_id", "slot"):
            labels.setdefault(str(run), set()).add(label_of(slot))
        return [{**each, "labels": sorted(labels.get(str(each["run"]), ()))} for each in self.runs]

    @property
    def kept_because(self) -> dict[str, str]:
        """What was kept, and the reason of each."""
        return {line: why_kept(line) for line in self.kept}

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
            orderer=str(records.body_of(asked.bytes).get("actor", "")),
            runs=tuple(out.get("runs", ())),
        )

    def to_json(self) -> dict[str, object]:
        """The certificate as JSON values."""
        lists = {"refs": list(self.refs), "kept": list(self.kept), "places": dict(self.places)}
        words = {"ground": self.ground, "kept_because": self.kept_because}
        labelled = [{"label": label, "ref": ref} for label, ref in self.values]
        values = asdict(self) | lists | words | {"values": labelled, "runs": self.labelled_runs}
        names = {"v": "nanovm-erasure/1", "id": values.pop("id"), self.of: values.pop("subject")}
        del values["of"]
        return names | values


def refs_in(body: Mapping[str, object]) -> tuple[str, ...]:
    """The refs that an erasure's envelope names."""
    refs = records.part_of(body, "in").get("refs")
    return tuple(map(str, refs)) if isinstance(refs, list) else ()
