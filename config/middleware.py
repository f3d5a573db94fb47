"""Middleware: the content-security policy, uncached errors, UTF-8 forms, and quotas."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from http import HTTPStatus
from typing import Any

from django.conf import settings
from django.db import DataError
from django.http import HttpRequest, HttpResponseBadRequest, HttpResponseBase, QueryDict
from django.urls import ResolverMatch

from dashboard.web import quotas, refusals, workspace
from dashboard.web.client import client_address
from gate.doors.errors import failure
from gate.doors.http import holder_of
from gate.doors.wire import BODY_BYTES_MAX
from gate.replies import GateError

View = Callable[[HttpRequest], HttpResponseBase]
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self' {sockets}; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)


def answer_headers(get_response: View) -> View:
    """Put the content-security policy on every answer, and forbid to cache errors.

    A browser or a proxy asks again: the page may be there the next time.
    """

    def middleware(request: HttpRequest) -> HttpResponseBase:
        # Some browsers do not count a WebSocket to the same host as 'self'. An unknown Host
        # header raises here, before it could get into the policy.
        scheme = "wss" if request.is_secure() else "ws"
        policy = POLICY.format(sockets=f"{scheme}://{request.get_host()}")
        response = get_response(request)
        response.headers["Content-Security-Policy"] = policy
        if response.status_code >= HTTPStatus.BAD_REQUEST:
            response.headers.setdefault("Cache-Control", "no-store")
        return response

    return middleware


def utf8_forms(get_response: View) -> View:
    """Refuse a body in any other encoding, before anything reads it."""

    def middleware(request: HttpRequest) -> HttpResponseBase:
        named = (request.content_params or {}).get("charset", "utf-8")
        if named.strip("\"' ").lower() not in ("utf-8", "utf8", "us-ascii"):
            text = "This body names another encoding than UTF-8. Send it again in UTF-8.\n"
            return HttpResponseBadRequest(text, content_type="text/plain; charset=utf-8")
        return get_response(request)

    return middleware


class StorableText:
    """Refuses text that no column takes, for whatever view: NUL, and halves of characters.

    Paths, queries and cookies are looked at before. A form's fields may hold any character, such
    as the proposal that an attacker types: they are looked at where the database refused one.
    """

    def __init__(self, get_response: View) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        """Pass the request on, or refuse the part at fault."""
        cookies = [(f"the cookie {name}", value) for name, value in request.COOKIES.items()]
        given = [("the address", request.path_info), *_fields(request.GET), *cookies]
        return refusals.unstorable(request, given) or self.get_response(request)

    def process_exception(self, request: HttpRequest, error: Exception) -> HttpResponseBase | None:
        """The refusal, where the database refused a field; None: it is an error of the server."""
        is_refused = isinstance(error, DataError | UnicodeEncodeError)
        return refusals.unstorable(request, _fields(request.POST)) if is_refused else None


def _fields(sent: QueryDict) -> Iterator[tuple[str, str]]:
    for name, values in sent.lists():
        yield "the name of a field", name
        yield from ((f"the field {name}", value) for value in values)


class CountedRequests:
    """Counts requests before their views run, and refuses those above a quota.

    It comes after the check of the CSRF token: what it shows of a form was sent by this site.
    """

    READS = ("GET", "HEAD", "OPTIONS")

    def __init__(self, get_response: View) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        """Pass the request on; Django calls ``process_view`` before the view."""
        return self.get_response(request)

    def process_view(self, request: HttpRequest, *_: Any) -> HttpResponseBase | None:
        """The refusal, or None: then the view answers."""
        match, reads = request.resolver_match, request.method in self.READS
        if match is None or (reads and match.app_name != "gate"):
            return None
        length = request.META.get("CONTENT_LENGTH") or ""
        # A body without a length counts as the longest.
        size = int(length) if length.isdecimal() else settings.UPLOAD_SIZE_BYTES_MAX
        if match.app_name == "gate":
            return _counted_call(request, match, 0 if reads else min(size, BODY_BYTES_MAX))
        owner = workspace.current(request)
        refused = quotas.refused(match, owner, client_address(request), size)
        return refusals.shown(request, refused) if refused else None


def _counted_call(request: HttpRequest, match: ResolverMatch, size: int) -> HttpResponseBase | None:
    """Count by the address, then by the log of a valid token: a forged one uses up nobody's."""
    refused = quotas.refused(match, None, client_address(request), size)
    if refused is None:
        with suppress(GateError):  # the view says it
            refused = quotas.refused(match, holder_of(request).log, "", size)
    if refused is None:
        return None
    return failure(GateError("GAT-017", refused.text), refused.status, refused.wait_s)
