"""Evidence: a run's rows, envelopes and Stripe records, before and after an attack."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from engine.clock import now_ms
from engine.models import Absorbed, AdapterCall, Envelope, Run
from engine.queries.runs import label_of
from engine.store import records
from nanovm_core.core.envelope import body_of, canonical_hash
from nanovm_core.core.lifecycle import ACTIVE, TERMINAL
from sabotage.kit.integrity import breaches, intents
from sabotage.kit.stripe_view import StripeView, stripe_view

SHOWN_MAX = 40  # envelopes named in one attack's evidence; the run's own page has all of them


@dataclass(frozen=True, slots=True, kw_only=True)
class RunState:
    """A run at one moment, as its rows say."""

    state: str
    step: str
    length: int
    head: str
    quarantined: bool
    owed: bool
    holder: str  # the worker that drives it now; empty where none does
    lease_absorbed: int
    absorbed: Mapping[str, int]
    calls: tuple[int, ...]  # ids of the adapters' own records

    @property
    def ended(self) -> bool:
        return self.state in TERMINAL


@dataclass(frozen=True, slots=True, kw_only=True)
class SealedEnvelope:
    """An envelope that was sealed since: what it says of itself."""

    n: int
    kind: str
    actor: str
    event: str
    rule: str
    hash: str
    refs: tuple[str, ...]
    at: int | None
    expected: str
    found: str

    @property
    def number(self) -> int:
        """Its place as people count it."""
        return self.n + 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """Everything that a judgement is computed from."""

    run: Run
    before: RunState
    after: RunState
    sealed: tuple[SealedEnvelope, ...]
    stripe: StripeView
    breaches: tuple[str, ...]

    def absorbed(self, *kinds: str) -> int:
        """How many events of these kinds were only counted since."""
        return sum(
            self.after.absorbed.get(kind, 0) - self.before.absorbed.get(kind, 0) for kind in kinds
        )

    @property
    def calls_since(self) -> tuple[AdapterCall, ...]:
        """The adapters' own records since."""
        rows = AdapterCall.objects.filter(run=self.run).exclude(number__in=self.before.calls)
        return tuple(rows.order_by("number"))


def observe(run_id: str) -> RunState:
    """Look at a run."""
    run = Run.objects.get(id=run_id)
    return RunState(
        state=run.state,
        step=run.step,
        length=run.length,
        head=run.shown_head,
        quarantined=run.quarantined,
        owed=run.owed_key != "",
        holder=run.holder if run.until_ms > now_ms() else "",
        lease_absorbed=run.deliveries,
        absorbed=dict(Absorbed.objects.filter(run=run).values_list("kind", "count")),
        calls=tuple(AdapterCall.objects.filter(run=run).values_list("number", flat=True)),
    )


def is_answered(run: Run, before: RunState, event: str) -> bool:
    """Whether an event of this kind was sealed since, or counted."""
    counted = observe(str(run.id)).absorbed.get(event, 0) > before.absorbed.get(event, 0)
    return counted or any(each.event == event for each in sealed_since(run, before.length))


def is_driven(run_id: str) -> bool:
    """Whether a worker is at work on the run: it will meet by itself whatever was changed."""
    now = observe(run_id)
    return bool(now.holder) and now.state == ACTIVE


def gather(run_id: str, before: RunState) -> Evidence:
    """Gather what changed since ``before``, and ask Stripe for its own records."""
    run = Run.objects.get(id=run_id)
    stripe = stripe_view(run)
    return Evidence(
        run=run,
        before=before,
        after=observe(run_id),
        sealed=sealed_since(run, before.length),
        stripe=stripe,
        breaches=breaches(run, stripe),
    )


def sealed_since(run: Run, length: int) -> tuple[SealedEnvelope, ...]:
    """The run's envelopes from ``n`` = ``length`` on."""
    rows = Envelope.objects.filter(workspace_id=run.workspace_id, run=str(run.id), n__gte=length)
    return tuple(_sealed(row) for row in rows.order_by("n"))


def as_facts(found: Evidence) -> dict[str, object]:
    """The evidence as it is kept: no value of the invoice, no word of a model."""
    calls = found.calls_since
    borne = {intent.key for intent in intents(found.run)}
    return {
        "before": label_of(found.before.state),
        "after": label_of(found.after.state),
        "calls": sum(call.key not in borne for call in calls),
        "calls_since": dict(Counter(call.tool for call in calls)),
        "payments": found.stripe.in_words(),
        "far_side": found.stripe.as_facts(),
        "breaches": list(found.breaches),
        "length_before": found.before.length,
        "length_after": found.after.length,
        "head_before": found.before.head,
        "head_after": found.after.head,
        "sealed_since": [_as_facts(each) for each in found.sealed[:SHOWN_MAX]],
    }


def _as_facts(sealed: SealedEnvelope) -> dict[str, object]:
    said: dict[str, object] = {"number": sealed.number, "kind": sealed.kind, "hash": sealed.hash}
    named = {"actor": sealed.actor, "event": sealed.event, "rule": sealed.rule}
    return said | {name: text for name, text in named.items() if text}


def _sealed(row: Envelope) -> SealedEnvelope:
    body = body_of(row.bytes)
    at = body.get("at")
    return SealedEnvelope(
        n=row.n,
        kind=str(body.get("kind", row.kind)),
        actor=str(body.get("actor", "")),
        event=str(records.part_of(body, "state").get("event", "")),
        rule=str(body.get("rule", "")),
        hash=canonical_hash(bytes(row.bytes)),
        refs=(*records.commitments(body),),
        at=at if isinstance(at, int) else None,
        expected=str(body.get("expected", "")),
        found=str(body.get("found", "")),
    )
