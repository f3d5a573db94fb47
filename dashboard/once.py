"""A form is done once, however often it is sent."""

import time
from collections.abc import Callable

from django.db import IntegrityError, transaction
from django.http import HttpRequest

from dashboard import workspace
from dashboard.models import Sent
from pipeline.models import Workspace

FIELD = "Idempotency-Key"
KEY_LENGTH_MAX = 80
ADOPT_MS_MAX = 60_000  # a double click of a visitor who had no workspace yet


def key_of(request: HttpRequest) -> str:
    """The form's key, made when its page was rendered; empty when there is none."""
    key = request.POST.get(FIELD, "")
    return key if len(key) <= KEY_LENGTH_MAX and key.isascii() and key.isprintable() else ""


def once(request: HttpRequest, fallback: str, act: Callable[[Workspace], str]) -> str:
    """Do ``act`` for this form's key and return its URL; a repeat returns the same URL.

    While the first sending is still being worked on, a repeat gets ``fallback``. A form
    without a key is done every time.
    """
    key = key_of(request)
    known = _known(request, key)
    if known is not None:
        return known.url or fallback
    owner = workspace.ensure(request)
    if not key:
        return act(owner)
    try:
        with transaction.atomic():
            sent = Sent.objects.create(key=key, workspace=owner, created_ms=_now_ms())
    except IntegrityError:
        return fallback
    return _done(sent, act, owner)


def _done(sent: Sent, act: Callable[[Workspace], str], owner: Workspace) -> str:
    try:
        sent.url = act(owner)
    except BaseException:
        sent.delete()  # nothing was remembered: the visitor may send it again
        raise
    sent.save(update_fields=["url"])
    return sent.url


def _known(request: HttpRequest, key: str) -> Sent | None:
    found = Sent.objects.select_related("workspace").filter(key=key).first() if key else None
    if found is None:
        return None
    mine = workspace.current(request)
    if mine is None and _now_ms() - found.created_ms < ADOPT_MS_MAX:
        workspace.adopt(request, found.workspace)
        return found
    return found if mine == found.workspace_id else None


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
