"""Stripe's events as the counterpart wrote them, delivered and signed as a test says."""

import json
import time
from typing import Any

import pytest
import stripe
from django.conf import settings
from django.test import Client

from engine.models import Run
from pipeline import tasks
from tests.pipeline.after_payment.pages import sdk

SECRET = "whsec_of_a_test"
ADDRESS = "/webhooks/stripe/"


def listening(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the endpoint take what is signed with SECRET."""
    monkeypatch.setattr(settings, "STRIPE_WEBHOOK_SECRET", SECRET)


def happened(run: Run, kind: str = "") -> list[dict[str, Any]]:
    """The events of the test's account about a run's payment, the oldest first."""
    return [each for each in every(kind) if str(run.id) in json.dumps(each)]


def every(kind: str) -> list[dict[str, Any]]:
    """The events of a kind, the oldest first, whatever they are about."""
    found = [each.to_dict() for each in sdk().v1.events.list({"limit": 100}).auto_paging_iter()]
    return [each for each in reversed(found) if each["type"].startswith(kind)]


def driven(run: Run) -> Run:
    """The run after a worker was told that there is news."""
    tasks.look(str(run.id))
    run.refresh_from_db()
    return run


def delivered(
    event: object, *, secret: str = SECRET, age_s: int = 0, header: str | None = None
) -> int:
    """Deliver an event; the status of the answer."""
    body = event if isinstance(event, str) else json.dumps(event)
    at_s = int(time.time()) - age_s
    signed = stripe.WebhookSignature.generate_signature_header(body, secret, at_s)
    kind = {"content_type": "application/json", "headers": {"Stripe-Signature": signed}}
    if header is not None:
        kind["headers"] = {"Stripe-Signature": header} if header else {}
    answer = Client(enforce_csrf_checks=True).post(ADDRESS, body, **kind)  # type: ignore[arg-type]
    assert not answer.cookies
    return answer.status_code
