"""The content-security policy: everything from this origin, nothing inline."""

from collections.abc import Callable

from django.http import HttpRequest, HttpResponseBase

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
