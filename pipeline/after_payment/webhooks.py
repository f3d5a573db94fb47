"""Stripe's webhooks: each is a hint to look at Stripe's own record, and never a result."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any
from uuid import UUID

import stripe
from django.db import IntegrityError, transaction

from engine.clock import now_ms
from engine.models import Run
from engine.store import outbox, sql
from engine.store.records import part_of
from nanovm_core.errors import NanovmError
from pipeline.after_payment import far_side
from pipeline.models import StripeEvent, WebhookCount
from pipeline.steps.charge import afterwards

TOLERANCE_S = 300  # how old a signature may be
ABOUT = ("payment_intent.", "charge.", "refund.")  # the kinds of event that are about payments
KIND_CHARS_MAX = 64
KEPT_MS = 30 * 86_400_000  # Stripe sends an event again for three days
COUNTS = ("accepted", "repeated", "unknown", "foreign", "refused")
ACCEPTED, REPEATED, UNKNOWN, FOREIGN, REFUSED = COUNTS
_COUNT = (
    "INSERT INTO pipeline_webhookcount (name, count) VALUES (%s, 1)"
    " ON CONFLICT (name) DO UPDATE SET count = pipeline_webhookcount.count + 1"
)


class ForgedError(NanovmError):
    """A delivery that Stripe did not sign, or not lately. Nothing was read of it but its size."""


def receive(body: bytes, signature: str, secret: str) -> str:
    """Accept a delivery; how it was counted. An accepted one makes a worker ask Stripe.

    The event is believed in nothing but which run to look at, and of which kind it is: one of
    ``far_side.MAKING`` is kept alone where the run has its payment. Its id counts once, in
    whatever order events come.

    Raises:
        ForgedError: the signature is not that of this secret, or older than TOLERANCE_S.
        TransientError: Stripe was asked which run it is about, and did not answer.
    """
    event = _verified(body, signature, secret)
    kind, name = str(event.get("type", ""))[:KIND_CHARS_MAX], str(event.get("id") or "")
    if event.get("livemode") is not False or event.get("account"):
        return counted(FOREIGN)
    if not name or not kind.startswith(ABOUT):
        return counted(UNKNOWN)
    digest = hashlib.sha256(name.encode("utf-8", "replace")).hexdigest()
    if sql.execute("SELECT 1 FROM pipeline_stripeevent WHERE digest = %s", (digest,)):
        return counted(REPEATED)
    run, at_ms = _run_of(event), now_ms()
    looked_ms = at_ms if run and kind in far_side.MAKING and far_side.has_payment(run) else None
    arrived = StripeEvent(digest=digest, kind=kind, run=run, at_ms=at_ms, looked_ms=looked_ms)
    try:
        with transaction.atomic():
            arrived.save(force_insert=True)
            counted(ACCEPTED if run else UNKNOWN)
            if run is not None and looked_ms is None:
                outbox.hasten(str(run.id))
    except IntegrityError:
        return counted(REPEATED)
    if run is not None and looked_ms is None:
        far_side.schedule_look(str(run.id))
    return ACCEPTED if run else UNKNOWN


def counted(name: str) -> str:
    """Count a delivery under this name, which is returned."""
    sql.change(_COUNT, (name,))
    return name


def counts() -> dict[str, int]:
    """How many deliveries there were of each sort."""
    return dict.fromkeys(COUNTS, 0) | dict(WebhookCount.objects.values_list("name", "count"))


def forget_old() -> None:
    """Delete events that Stripe no longer sends again."""
    old = StripeEvent.objects.filter(at_ms__lt=now_ms() - KEPT_MS)
    old.exclude(run__isnull=False, looked_ms=None).delete()


def _verified(body: bytes, signature: str, secret: str) -> Mapping[str, Any]:
    """A signed event; one that is no JSON says nothing."""
    try:
        stripe.WebhookSignature.verify_header(body, signature, secret, TOLERANCE_S)
    except (stripe.SignatureVerificationError, ValueError, TypeError) as error:
        text = "The delivery is not signed with this endpoint's secret, or too old."
        raise ForgedError("STR-011", text) from error
    try:
        event = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return event if isinstance(event, dict) else {}


def _run_of(event: Mapping[str, Any]) -> Run | None:
    """The run that an event is about: its object names it, or the payment that it names does."""
    found = part_of(part_of(event, "data"), "object")
    named = part_of(found, "metadata").get("run")
    payment = found.get("payment_intent")
    if named is None and isinstance(payment, str):
        named = afterwards.run_of(payment)
    try:
        key = sql.key_of(str(UUID(str(named))))
    except ValueError:
        return None
    return next(iter(sql.rows(Run, "WHERE id = %s", (key,))), None)
