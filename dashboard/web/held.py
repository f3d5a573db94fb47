"""The links that this browser used: a signed cookie names them, and each request asks the log.

A link grants to read its pages, and its own forms under ``/l/``; every other form stays its
owner's.
"""

from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import NamedTuple
from uuid import UUID

from django.core import signing
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import render

from dashboard.web import workspace
from engine.models import Link, Workspace
from engine.queries import runs
from engine.runtime import links
from engine.vault import secret_store

COOKIE = "nanovm_links"
SALT = "nanovm.dashboard.links"
LINKS_MAX = 20  # in one browser; the oldest goes
LIFE_S = links.LIFE_MS_MAX // 1000
READS = ("GET", "HEAD")
PERSONAL = {"sheet", "crop"}  # pictures of the document
RUN_PAGES = {
    *("run", "event", "event_bytes", "step", "calls", "run_audit", "run_export"),
    *("receipt", "bundle", "verify", "report_page", *PERSONAL),
}
LOG_PAGES = {"log", "log_bundle", "log_export"}
# The addresses that each kind of link opens.
PAGES = {
    links.VIEW: RUN_PAGES,
    links.APPROVE: RUN_PAGES,
    links.AUDIT: RUN_PAGES | LOG_PAGES,
    links.VERDICT: {"attack", "gallery_shot"},
    links.ERASE: set[str](),
}


class Refusal(NamedTuple):
    """The answer to an address that grants nothing: why, and what to do."""

    title: str
    why: str
    ask: str = "Ask the person who sent it for a new one."
    status: int = 410


REFUSALS = {
    links.UNKNOWN: Refusal(
        "This link is not known",
        "Part of the address may be missing.",
        "Copy all of it, or ask the person who sent it.",
        status=404,
    ),
    links.EXPIRED: Refusal("This link has expired", "It was made for a limited time."),
    links.ENDED: Refusal("This link was revoked", "Its owner ended it."),
    links.SPENT: Refusal("This link was used to decide", "It is for one decision."),
    links.CLOSED: Refusal(
        "This link has ended", "A backup was restored, which ends all links from before."
    ),
    links.CHANGED: Refusal(
        "This link was changed in the database",
        "It no longer says what was recorded when it was made, so it grants nothing.",
        "Ask the person who sent it for a new one, and the operator to run manage.py fsck.",
    ),
    links.WORN: Refusal(
        "This link was used too often", f"A link is used {links.USES_MAX:,} times at most."
    ),
}


def used(request: HttpRequest) -> list[str]:
    """The links that this browser's cookie names, if we signed it within the life of a link.

    The ids, the newest last.
    """
    cookie = request.COOKIES.get(COOKIE, "")
    try:
        return [str(each) for each in signing.loads(cookie, salt=SALT, max_age=LIFE_S)]
    except signing.BadSignature:
        return []


def remember(request: HttpRequest, response: HttpResponseBase, link: Link) -> None:
    """Name a link in this browser's cookie: it has no secret, and the log is asked each time."""
    ids = [*(each for each in used(request) if each != str(link.id)), str(link.id)]
    response.set_cookie(
        COOKIE,
        signing.dumps(ids[-LINKS_MAX:], salt=SALT),
        max_age=LIFE_S,
        httponly=True,
        samesite="Lax",
        secure=request.is_secure(),
    )


def by_id(request: HttpRequest, link_id: UUID, grants: str) -> Link:
    """A link of this kind that this browser used; 404 for any other.

    Raises:
        LinkError: where it grants nothing any more.
    """
    if str(link_id) not in used(request):
        raise Http404("this browser used no such link")
    found = links.standing(id=link_id)
    if found.grants != grants:
        raise Http404("the link grants something else")
    return found


def refused(request: HttpRequest, why: str) -> HttpResponse:
    """Why a link grants nothing, and nothing else of it."""
    refusal = REFUSALS[why]
    context = {"refusal": refusal}
    return private(render(request, "sharing/refused.html", context, status=refusal.status))


def private(response: HttpResponse) -> HttpResponse:
    """Send no address with a secret on to the pages that this one leads to.

    The origin alone is sent, and not nothing: a form's origin would read "null" then.
    """
    response["Referrer-Policy"] = "strict-origin"
    return response


def own_log(request: HttpRequest, name: str) -> Workspace:
    """A log by the last part of its name: the visitor's own, or one that a link shows; else 404."""
    mine = workspace.existing(request)
    if mine is not None and workspace.name_of(mine) == name:
        return mine
    link = _first(request, lambda link: workspace.name_of(link.workspace) == name)
    if link is None:
        raise Http404("no log of that name is yours")
    return link.workspace


def run_of(request: HttpRequest, code: str) -> runs.RunHead | None:
    """The run of that code, where a link shows it at this address; None where none does."""

    def shows(link: Link) -> bool:
        found = runs.by_code(link.workspace_id, code)
        return found is not None and _is_for(request, link, found)

    link = _first(request, shows)
    return runs.by_code(link.workspace_id, code) if link else None


def shot_of(request: HttpRequest, attack_id: UUID) -> UUID | None:
    """The workspace whose verdict a link shows at this address; None where none does."""
    link = _first(request, lambda link: link.target == str(attack_id))
    return link.workspace_id if link else None


def of_request(request: HttpRequest) -> Link | None:
    """The link by which this page is read; None for its owner."""
    return getattr(request, "held", None)


def _opening(request: HttpRequest) -> Iterator[Link]:
    """The links that open this address if they stand, those that hide nothing first."""
    match = request.resolver_match
    ids = used(request) if request.method in READS and match is not None else []
    rows = Link.objects.select_related("workspace").filter(id__in=ids).order_by("narrowed", "-id")
    for link in rows:
        name = match.url_name if match else ""
        hides = link.narrowed and name in PERSONAL
        if not hides and name in PAGES.get(link.grants, ()):
            yield link


def _first(request: HttpRequest, shows: Callable[[Link], bool]) -> Link | None:
    """The first such link that shows this; what it hides is not opened while the page is made.

    The log is asked last: that reads all of it since the link was made.
    """
    for link in filter(shows, _opening(request)):
        with suppress(links.LinkError):
            links.checked(link)
            request.held = link  # type: ignore[attr-defined]
            if link.narrowed:
                secret_store.hide()
            return link
    return None


def _is_for(request: HttpRequest, link: Link, run: runs.RunHead) -> bool:
    if link.grants == links.VERDICT:
        match = request.resolver_match
        return match is not None and link.target == str(match.kwargs.get("attack_id"))
    return link.grants == links.AUDIT or link.target == run.id
