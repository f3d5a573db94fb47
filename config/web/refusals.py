"""What the server answers by itself, before the application sees a request."""

from dataclasses import dataclass
from functools import cache
from http import HTTPStatus

from django.template.loader import render_to_string

from config.middleware import POLICY
from gate.doors.errors import refusal

AGAIN_S = 20  # by then those who say nothing have been hung up on


@dataclass(frozen=True, slots=True)
class Words:
    """The heading and the sentence of a refusal."""

    title: str
    text: str
    again: bool = True  # it may be asked again, as it was


WORDS = {
    HTTPStatus.FORBIDDEN: Words(
        "Open the form first",
        "A file is taken from visitors who have opened this site's form, and your request brought "
        "no cookie from it. Nothing was stored. Open the page, allow its cookies, and send the "
        "file from there.",
        again=False,
    ),
    HTTPStatus.REQUEST_TIMEOUT: Words(
        "The request did not arrive in time",
        "The rest of your request did not come, so nothing was done with it and nothing was "
        "stored. Send it again, over a faster connection if there is one.",
    ),
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: Words("", "", again=False),
    HTTPStatus.TOO_MANY_REQUESTS: Words(
        "Too many requests from your address",
        "Your address has too many connections or uploads open at once, so this one was not "
        "taken. Nothing was stored. Wait for the others to end, then send it again.",
    ),
    HTTPStatus.SERVICE_UNAVAILABLE: Words(
        "The server is busy",
        "Too many visitors send something at once, so your request was not taken. Nothing was "
        "stored. Send it again in a moment.",
    ),
}


@cache
def answer(status: HTTPStatus, at_gate: bool = False) -> bytes:
    """The whole answer, with the headers that every page has; the connection ends with it."""
    words, kind = WORDS[status], "application/json" if at_gate else "text/html; charset=utf-8"
    template = "413.html" if status == HTTPStatus.REQUEST_ENTITY_TOO_LARGE else "at_the_door.html"
    page = render_to_string(template, {"status": int(status), "words": words})
    body = refusal(status).content if at_gate else page.encode()
    headers = {
        "Content-Type": kind,
        "Content-Length": str(len(body)),
        "Content-Security-Policy": POLICY.format(sockets="").replace(" ;", ";"),
        "Cache-Control": "no-store",
        "Connection": "close",
        "Referrer-Policy": "same-origin",
        "X-Content-Type-Options": "nosniff",
        "X-Frame-Options": "DENY",
        **({"Retry-After": str(AGAIN_S)} if words.again else {}),
    }
    lines = [f"HTTP/1.1 {int(status)} {status.phrase}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode("ascii") + body
