"""The visitor's workspace, named by a signed cookie."""

from uuid import UUID

from django.core import signing
from django.http import HttpRequest, HttpResponseBase, parse_cookie
from django.utils.crypto import salted_hmac

from dashboard.web.client import client_address
from engine.clock import now_ms
from engine.models import Workspace
from engine.store import ledgers, turns
from pipeline.register import sample_register

COOKIE = "nanovm_workspace"
SALT = "nanovm.dashboard.workspace"
PLACE = "nanovm.dashboard.place"
DAY_MS = 24 * 3600 * 1000
YEAR_S = 365 * 24 * 3600


def current(request: HttpRequest) -> UUID | None:
    """The visitor's workspace, or None. Never makes one: a GET has no side effects."""
    made: UUID | None = getattr(request, "workspace_made", None)
    return made or of_cookie(request.COOKIES.get(COOKIE, ""))


def of_cookie(cookie: str) -> UUID | None:
    """The workspace that a cookie names, if we signed it within the year."""
    try:
        return UUID(signing.loads(cookie, salt=SALT, max_age=YEAR_S))
    except (signing.BadSignature, ValueError):
        return None


def of_headers(headers: list[tuple[bytes, bytes]]) -> UUID | None:
    """The same for a socket's handshake."""
    sent = (value.decode("latin-1") for name, value in headers if name == b"cookie")
    return of_cookie(parse_cookie("; ".join(sent)).get(COOKIE, ""))


def existing(request: HttpRequest) -> Workspace | None:
    """The visitor's workspace, or the one after it; read once for a page, each time for a form."""
    known = current(request)
    found: Workspace | None = getattr(request, "workspace_read", None)
    if request.method != "GET" or found is None or found.pk != known:
        found = ledgers.read(known) if known else None
        request.workspace_read = found  # type: ignore[attr-defined]
    return found if found is None or found.pk == known else adopt(request, found)


def name_of(workspace: Workspace) -> str:
    """What a log is called in an address: the last part of its origin."""
    return workspace.origin.rpartition("/")[2]


def ensure(request: HttpRequest) -> Workspace:
    """The visitor's workspace, made now if there is none. Only a POST may call this."""
    return placed(request, existing(request) or adopt(request, sample_register.new_workspace()))


def placed(request: HttpRequest, workspace: Workspace) -> Workspace:
    """Store this form's origin as a number that many addresses share and no two days do."""
    said = f"{client_address(request)} {now_ms() // DAY_MS}"
    turns.comes_from(workspace.pk, int(salted_hmac(PLACE, said).hexdigest()[:4], 16))
    return workspace


def adopt(request: HttpRequest, workspace: Workspace) -> Workspace:
    """Give the visitor this workspace: ``remember`` puts it in the cookie."""
    request.workspace_made = workspace.pk  # type: ignore[attr-defined]
    return workspace


def remember(request: HttpRequest, response: HttpResponseBase) -> None:
    made = getattr(request, "workspace_made", None)
    if made is None:
        return
    response.set_cookie(
        COOKIE,
        signing.dumps(str(made), salt=SALT),
        max_age=YEAR_S,
        httponly=True,
        samesite="Lax",
        secure=request.is_secure(),
    )
