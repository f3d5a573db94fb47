"""What the logs seal of payments, read from whole envelopes and kept in memory."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any
from uuid import UUID

from engine.models import Envelope, Workspace
from engine.runtime.chains import OBSERVATION
from engine.store import ledgers
from engine.store.records import part_of
from engine.vault.secret_store import TOMBSTONE, read_all
from nanovm_core.errors import VerificationError
from pipeline.labels import CHARGE
from pipeline.reconcile import differences
from pipeline.reconcile.differences import Difference, Side
from pipeline.steps.charge import accounts, afterwards

KINDS = ("intent", "result", "failed", "alert", OBSERVATION)
SUCCEEDED, FAILED = "succeeded", "failed"
NOTHING: Side = {"refunded_minor": 0, "dispute": ""}  # after a payment


@dataclass(slots=True, kw_only=True)
class Call:
    """An allowed payment. ``status``: succeeded or failed; empty while no result is sealed.

    ``payment`` and the side's account are SHA-256 of Stripe's ids: empty for none, None where an
    erasure took it, or it is damaged. ``ref``: of the payment's id.
    """

    key: str
    log: UUID
    run: str
    intent_ms: int
    side: dict[str, str | int | None]
    status: str = ""
    ended_ms: int = 0
    ref: str = ""
    payment: str | None = ""


@dataclass(slots=True)
class Logs:
    """What all logs seal, up to where they were read."""

    calls: dict[str, Call] = field(default_factory=dict)  # by key
    later: dict[str, Side] = field(default_factory=dict)  # by run, what was sealed last of it
    found: dict[UUID, Mapping[str, Difference]] = field(default_factory=dict)  # by log and payment
    damaged: set[str] = field(default_factory=set)  # runs of which an envelope is not whole
    successors: dict[UUID, UUID | None] = field(default_factory=dict)
    _sizes: dict[UUID, int] = field(default_factory=dict)

    def read(self) -> None:
        """Take in what was sealed since; all of it where a log went back."""
        rows = [*Workspace.objects.order_by("id").only("id", "origin", "size", "successor")]
        if any(log.size < self._sizes.get(log.id, 0) for log in rows):
            self.__init__()  # type: ignore[misc]
        self.successors = {log.id: log.successor_id for log in rows}
        for log in rows:
            if log.size > (since := self._sizes.get(log.id, 0)):
                self._grow(log, since)
                self._sizes[log.id] = log.size

    def _grow(self, log: Workspace, since: int) -> None:
        own = Envelope.objects.filter(workspace=log, seq__gte=since, seq__lt=log.size)
        rows = own.filter(kind__in=KINDS).order_by("seq").values_list("seq", "run", "bytes", "hash")
        for seq, run, data, leaf in rows.iterator():
            body = ledgers.believed(log, seq, bytes(data), leaf)
            try:
                if body is None or body["run"] != run:
                    self.damaged.add(run)
                elif body.get("tool") == CHARGE:
                    self._take(log.id, body)
            except (KeyError, TypeError, ValueError):  # no runtime of ours sealed it
                self.damaged.add(run)
        self.found[log.id] = differences.known(log)

    def _take(self, log: UUID, body: Mapping[str, Any]) -> None:
        given, out, kind = part_of(body, "in"), part_of(body, "out"), body["kind"]
        key, call = str(body.get("idempotency_key")), None
        if kind == "alert" and body["outcome"] != afterwards.CHECKED:
            later = int(out["amount_minor"]), str(out["dispute"])
            self.later[str(given["run"])] = dict(zip(NOTHING, later, strict=True))
        elif kind == "intent":
            side = {name: given[name] for name in ("amount_minor", "currency")}
            side["account"] = _hash(str(given.get("destination", "")))
            at_ms = int(body["at_ms"])
            self.calls[key] = Call(
                key=key, log=log, run=str(body["run"]), intent_ms=at_ms, side=side
            )
        elif (call := self.calls.get(key)) and (kind == "failed" or "payment" in out):
            call.status = FAILED if kind == "failed" else SUCCEEDED
            call.ended_ms, call.ref = int(body["at_ms"]), str(out.get("payment", ""))
            call.payment = _hash(call.ref)

    def home(self, log: UUID) -> UUID:
        """The open log that goes on with this one."""
        while (after := self.successors.get(log)) is not None:
            log = after
        return log

    def known(self) -> list[tuple[UUID, Difference]]:
        """The differences of open logs that both sides did not end yet, each with its log."""
        own = [(log, each) for log, found in self.found.items() for each in found.values()]
        return [(log, each) for log, each in own if not each.is_over and self.home(log) == log]


def opened(ref: str) -> str | None:
    """The value of a ref; None where an erasure took it, or it is damaged."""
    try:
        value = read_all([ref])[ref] if ref else ""
    except VerificationError:
        return None
    return None if value == TOMBSTONE else value


def _hash(ref: str) -> str | None:
    value = opened(ref)
    return hash_of(value) if value and value != accounts.UNKNOWN else value and ""


def hash_of(value: object) -> str:
    """SHA-256 of an id of Stripe's, which is what is kept and sealed of it."""
    return sha256(str(value).encode()).hexdigest()
