"""``POST /webhooks/stripe/``: deliveries of Stripe's events, signed and bounded."""

from http import HTTPStatus

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST

from engine.errors import TransientError
from pipeline.after_payment import webhooks

SIZE_BYTES_MAX = 262_144  # an event has some kilobytes


@csrf_exempt  # no browser sends it; the signature says who does
@require_POST
@never_cache
def stripe(request: HttpRequest) -> HttpResponse:
    """200 for everything that Stripe signed; 400 for what it did not, or not lately.

    404 where no secret is set, 413 for a body that is too long, 503 where Stripe could not be
    asked which run an event is about: it sends the event again then.
    """
    secret = settings.STRIPE_WEBHOOK_SECRET
    if not secret:
        return in_text(HTTPStatus.NOT_FOUND, "No webhook secret is set (STRIPE_WEBHOOK_SECRET).")
    if _length(request) > SIZE_BYTES_MAX:
        return in_text(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "The event is too long.")
    try:
        name = webhooks.receive(request.body, request.headers.get("Stripe-Signature", ""), secret)
    except webhooks.ForgedError as error:
        webhooks.counted(webhooks.REFUSED)
        return in_text(HTTPStatus.BAD_REQUEST, error.text)
    except TransientError as error:
        return in_text(HTTPStatus.SERVICE_UNAVAILABLE, error.text)
    return in_text(HTTPStatus.OK, name)


def _length(request: HttpRequest) -> int:
    text = request.META.get("CONTENT_LENGTH") or "0"
    return int(text) if text.isdecimal() else SIZE_BYTES_MAX + 1


def in_text(status: HTTPStatus, text: str) -> HttpResponse:
    """An answer of one line."""
    return HttpResponse(f"{text}\n", status=status, content_type="text/plain; charset=utf-8")
