"""The content-security policy, errors that nobody keeps, and UTF-8 alone."""

from collections.abc import Callable
from http import HTTPStatus

from django.http import HttpRequest, HttpResponseBadRequest, HttpResponseBase

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self' {sockets}; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)


def content_security_policy(
    get_response: Callable[[HttpRequest], HttpResponseBase],
) -> Callable[[HttpRequest], HttpResponseBase]:
    """Put the policy on every answer, static files and errors included."""

    def middleware(request: HttpRequest) -> HttpResponseBase:
        # Some browsers do not count a WebSocket to the same host as 'self'. An unknown Host
        # header raises here, before it could get into the policy.
        scheme = "wss" if request.is_secure() else "ws"
        policy = POLICY.format(sockets=f"{scheme}://{request.get_host()}")
        response = get_response(request)
        response.headers["Content-Security-Policy"] = policy
        return response

    return middleware


def fleeting_errors(
    get_response: Callable[[HttpRequest], HttpResponseBase],
) -> Callable[[HttpRequest], HttpResponseBase]:
    """Have no error kept by a browser or a proxy: the page may be there the next time."""

    def middleware(request: HttpRequest) -> HttpResponseBase:
        response = get_response(request)
        if response.status_code >= HTTPStatus.BAD_REQUEST:
            response.headers.setdefault("Cache-Control", "no-store")
        return response

    return middleware


def utf8_forms(
    get_response: Callable[[HttpRequest], HttpResponseBase],
) -> Callable[[HttpRequest], HttpResponseBase]:
    """Refuse a body in any other encoding, before anything reads it."""

    def middleware(request: HttpRequest) -> HttpResponseBase:
        named = (request.content_params or {}).get("charset", "utf-8")
        if named.strip("\"' ").lower() not in ("utf-8", "utf8", "us-ascii"):
            text = "This body names another encoding than UTF-8. Send it again in UTF-8.\n"
            return HttpResponseBadRequest(text, content_type="text/plain; charset=utf-8")
        return get_response(request)

    return middleware
