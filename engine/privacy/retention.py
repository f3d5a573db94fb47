"""Retention: a document that a law keeps is not erased before its time, and the refusal is sealed.

Off unless ``NANOVM_RETENTION`` says for how many days a document is kept.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from django.conf import settings

from engine.clock import now_ms
from engine.errors import ErasureRefusedError
from engine.models import Envelope, Run, Secret
from engine.privacy import erasable
from engine.store import records
from nanovm_core.core.events import ErasureRefused
from nanovm_core.core.fsm.terminal import KEPT_BY_LAW

GROUND = "art17-3-b"  # processing that a legal obligation requires
MINUTE_MS = 60_000
DAY_MS = 24 * 60 * MINUTE_MS
DOCUMENT = "document"  # the slot that is kept; the other values of a run are not


@dataclass(frozen=True, slots=True, kw_only=True)
class Retention:
    """Until when a run's document is kept, and for how many days that is in all."""

    until_ms: int
    days: int

    @property
    def until(self) -> str:
        """The minute from which on it may be erased, UTC."""
        last = datetime.fromtimestamp(-(-self.until_ms // MINUTE_MS) * 60, UTC)
        return f"{last:%Y-%m-%d %H:%M} UTC"


def of(run_id: str) -> Retention | None:
    """What keeps a run's document now; None where nothing does, or it is not there any more."""
    days = settings.NANOVM_RETENTION
    documents = Secret.objects.filter(run_id=run_id, slot=DOCUMENT, erased_ms=None)
    if not days or not documents.exists():
        return None
    until_ms = _begun_ms(run_id) + days * DAY_MS
    return Retention(until_ms=until_ms, days=days) if now_ms() < until_ms else None


def require_over(run_id: str, refs: Sequence[str], reason: str, actor: str) -> None:
    """Return where no retention keeps any of these refs. Its refusal is sealed once a request.

    The same request again, while the same retention runs, finds its refusal sealed.

    Raises:
        ErasureRefusedError: PII-012, with the date; nothing was erased.
    """
    kept = of(run_id)
    if kept is None or not Secret.objects.filter(ref__in=refs, slot=DOCUMENT).exists():
        return
    refused = ErasureRefused(
        refs=tuple(sorted(refs)), reason=reason, ground=GROUND, until_ms=kept.until_ms
    )
    asked = ([*refused.refs], reason, kept.until_ms)
    if asked not in map(_refused, erasable.envelopes_of(run_id, erasable.REFUSED)):
        erasable.seal_of_run(run_id, refused, actor)
    text = (
        f"The document is kept until {kept.until}, for {kept.days} days from its receipt "
        "(Art. 17(3)(b), NANOVM_RETENTION); nothing was erased. Ask again after that."
    )
    raise ErasureRefusedError(KEPT_BY_LAW, text)


def _begun_ms(run_id: str) -> int:
    """When the document came: sealed in the run's genesis; the row only repeats it."""
    run = Run.objects.get(id=run_id)
    for genesis in Envelope.objects.filter(run=str(run_id), workspace=run.workspace, n=0):
        at_ms = records.body_of(genesis.bytes).get("at_ms")
        if isinstance(at_ms, int):
            return at_ms
    return run.created_ms


def _refused(envelope: Envelope) -> tuple[object, object, object]:
    """The refs, the reason and the time of a refusal that is sealed."""
    body = records.body_of(envelope.bytes)
    given, out = records.part_of(body, "in"), records.part_of(body, "out")
    return given.get("refs"), given.get("reason"), out.get("until_ms")
