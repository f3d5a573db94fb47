"""Errors at the gate: JSON with a code, whichever part of the server met them."""

import logging
from collections.abc import Callable
from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse, HttpResponseBase

from engine.errors import place_of
from gate.doors.wire import written
from gate.replies import REASONS, GateError

log = logging.getLogger(__name__)

ROOT, BROKE = "/gate/", "GAT-019"
# What another part of the server answered, by its status.
_SAID = ("GAT-005", "GAT-006", "GAT-013", "GAT-017", "GAT-018", BROKE)
CODES = {405: "GAT-018", **{int(REASONS[code]["status"]): code for code in _SAID}}


def as_json(value: Any, status: int = 200) -> HttpResponse:
    """An answer that no cache keeps."""
    headers = {"Cache-Control": "no-store"}
    return HttpResponse(written(value), "application/json", status, headers=headers)


def failure(error: GateError, status: int = 0, wait_s: int = 0) -> HttpResponse:
    """A refusal as a caller reads it; ``wait_s``: in how many seconds to try again."""
    response = as_json(error.as_json(), status or error.status)
    if error.code == "GAT-003":
        response.headers["WWW-Authenticate"] = "Bearer"
    if wait_s:
        response.headers["Retry-After"] = str(wait_s)
    return response


def refusal(status: int) -> HttpResponse:
    """The same as another part of the server refused; what it does not say was its failure."""
    code = CODES.get(status)
    return failure(GateError(code or BROKE), status if code else 0)


def told(error: Exception) -> GateError:
    """An error as a caller may know it; of one of ours its place is logged, and no word."""
    if isinstance(error, GateError):
        return error
    log.error("the gate broke: %s at %s", type(error).__name__, place_of(error))
    return GateError(BROKE)


class JsonErrors:
    """The outermost middleware: what is refused at the gate is refused in the gate's words."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        """Pass the request on, and put a page of an error into JSON."""
        response = self.get_response(request)
        status, kind = response.status_code, response.headers.get("Content-Type", "")
        if status < 400 or not request.path_info.startswith(ROOT) or kind == "application/json":
            return response
        said = refusal(status)
        for name in {"Allow", "Content-Security-Policy"} & {*response.headers}:
            said.headers[name] = response.headers[name]
        return said

    def process_view(self, request: HttpRequest, *_: Any) -> HttpResponse | None:
        """The refusal of what a page of another site sends; agents name no origin."""
        own = {f"{request.scheme}://{request.get_host()}", *settings.CSRF_TRUSTED_ORIGINS}
        is_own = request.headers.get("Origin", "") in {"", *own}
        at_gate = request.path_info.startswith(ROOT)
        return failure(GateError("GAT-018"), 403) if at_gate and not is_own else None

    def process_exception(self, request: HttpRequest, error: Exception) -> HttpResponse | None:
        """The refusal that a view raised."""
        if not request.path_info.startswith(ROOT):
            return None
        found = told(error)
        return failure(found, wait_s=int(found.code == BROKE))
