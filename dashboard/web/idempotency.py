"""Idempotency keys of forms: a repeated form has the effect of the first."""

import hashlib
from collections.abc import Callable

from django.conf import settings
from django.db import IntegrityError, transaction
from django.http import HttpRequest
from django.utils.crypto import salted_hmac

from dashboard.models import Sent
from dashboard.web import workspace
from engine.clock import now_ms
from engine.models import Workspace
from engine.queries.runs import RunHead
from pipeline.register import sample_register

FIELD = "Idempotency-Key"
KEY_LENGTH_MAX = 80
ADOPT_MS_MAX = 60_000  # a double click of a visitor who had no workspace yet
COMMAND_SALT = "nanovm.dashboard.command"
BROWSER_SALT = "nanovm.dashboard.browser"


def key_of(request: HttpRequest) -> str:
    """The digest of the form's key, made when its page was rendered; empty when there is none."""
    key = request.POST.get(FIELD, "")
    fits = 0 < len(key) <= KEY_LENGTH_MAX and key.isascii() and key.isprintable()
    return hashlib.sha256(key.encode()).hexdigest() if fits else ""


def command_key(run: RunHead, name: str, epoch: int) -> str:
    """The key of a command's button: the same until the run changes its state.

    Nobody can tell it from the run's code or id: it needs the server's own secret.
    """
    value = f"{run.workspace} {run.id} {epoch} {name}"
    return salted_hmac(COMMAND_SALT, value, algorithm="sha256").hexdigest()


def once(
    request: HttpRequest,
    fallback: str,
    act: Callable[[Workspace], str],
    of: Workspace | None = None,
) -> str:
    """Do ``act`` for this form's key and return its URL; a repeat returns the same URL.

    While the first sending is still being worked on, a repeat gets ``fallback``. A form
    without a key is done every time. A key counts within its workspace. Who has none yet is
    told apart by the CSRF cookie: a repeat from the same browser gets the workspace that the
    first sending made, and from any other browser the key says nothing. ``of``: the workspace
    in which it counts whoever sends it, such as the holder of a link, who gets none by that.
    """
    key = key_of(request)
    if not key:
        return act(of or workspace.ensure(request))
    known = _known(request, key, of)
    if known is None:
        sent = _claimed(request, key, of)
        if sent is not None:
            return _done(sent, act, sent.workspace)
        known = _known(request, key, of)  # another sending was faster
    return known.url if known and known.url else fallback


def _claimed(request: HttpRequest, key: str, of: Workspace | None) -> Sent | None:
    """Claim the key; None if another request has it."""
    mine = of or workspace.existing(request)
    browser = _browser(request) if mine is None else None
    old = Sent.objects.filter(created_ms__lte=now_ms() - ADOPT_MS_MAX)
    try:
        with transaction.atomic():
            old.filter(key=key, browser=browser).update(browser=None)  # its minute is over
            owner = of or workspace.placed(request, mine or sample_register.new_workspace())
            sent = Sent.objects.create(
                workspace=owner, key=key, browser=browser, created_ms=now_ms()
            )
    except IntegrityError:
        return None
    if mine is None:
        workspace.adopt(request, owner)
    return sent


def _done(sent: Sent, act: Callable[[Workspace], str], owner: Workspace) -> str:
    try:
        sent.url = act(owner)
    except BaseException:
        sent.delete()  # nothing was remembered: the visitor may send it again
        raise
    sent.save(update_fields=["url"])
    return sent.url


def _known(request: HttpRequest, key: str, of: Workspace | None) -> Sent | None:
    """The same form, sent before from this workspace, or just now by this very browser."""
    mine = of or workspace.existing(request)
    if mine is not None:
        return Sent.objects.filter(workspace=mine, key=key).first()
    browser = _browser(request)
    if browser is None:
        return None
    young = Sent.objects.filter(created_ms__gt=now_ms() - ADOPT_MS_MAX)
    found = young.select_related("workspace").filter(browser=browser, key=key).first()
    if found is not None:
        workspace.adopt(request, found.workspace)
    return found


def _browser(request: HttpRequest) -> str | None:
    """A digest of the browser's CSRF cookie, which no script and no other site can read."""
    cookie = request.COOKIES.get(settings.CSRF_COOKIE_NAME, "")
    return salted_hmac(BROWSER_SALT, cookie, algorithm="sha256").hexdigest() if cookie else None
