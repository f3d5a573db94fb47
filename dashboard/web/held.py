"""The links that this browser used: a signed cookie names them, and each request asks the log.

A link grants to read its pages, and its own forms under ``/l/``; every other form stays its
owner's.
"""

from collections.abc import Iterator
from uuid import UUID

from django.core import signing
from django.http import Http404, HttpRequest, HttpResponseBase

from dashboard.web import workspace
from engine import links
from engine.models import Link, Workspace
from engine.queries import runs
from engine.queries.runs import RunHead
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


def of_cookie(cookie: str) -> list[str]:
    """The ids that a cookie names, if we signed it within the life of a link."""
    try:
        return [str(each) for each in signing.loads(cookie, salt=SALT, max_age=LIFE_S)]
    except signing.BadSignature:
        return []


def used(request: HttpRequest) -> list[str]:
    """The ids of the links that this browser used, the newest last."""
    return of_cookie(request.COOKIES.get(COOKIE, ""))


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
    found = links.standing(link_id)
    if found.grants != grants:
        raise Http404("the link grants something else")
    return found


def own_log(request: HttpRequest, name: str) -> Workspace:
    """A log by the last part of its name: the visitor's own, or one that a link shows; else 404."""
    mine = workspace.existing(request)
    if mine is not None and workspace.name_of(mine) == name:
        return mine
    for link in _opening(request):
        if workspace.name_of(link.workspace) == name and _stands(link):
            _hold(request, link)
            return link.workspace
    raise Http404("no log of that name is yours")


def run_of(request: HttpRequest, code: str) -> RunHead | None:
    """The run of that code, where a link shows it at this address; None where none does."""
    for link in _opening(request):
        found = runs.by_code(link.workspace_id, code)
        if found is not None and _is_for(request, link, found) and _stands(link):
            _hold(request, link)
            return found
    return None


def shot_of(request: HttpRequest, attack_id: UUID) -> UUID | None:
    """The workspace whose verdict a link shows at this address; None where none does."""
    for link in _opening(request):
        if link.target == str(attack_id) and _stands(link):
            _hold(request, link)
            return link.workspace_id
    return None


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


def _stands(link: Link) -> bool:
    """Whether the log says so. Asked last: that reads all of it since the link was made."""
    try:
        links.checked(link)
    except links.LinkError:
        return False
    return True


def _is_for(request: HttpRequest, link: Link, run: RunHead) -> bool:
    if link.grants == links.VERDICT:
        match = request.resolver_match
        return match is not None and link.target == str(match.kwargs.get("attack_id"))
    return link.grants == links.AUDIT or link.target == run.id


def _hold(request: HttpRequest, link: Link) -> None:
    """Answer as this link allows: what it hides is not opened while the page is made."""
    request.held = link  # type: ignore[attr-defined]
    if link.narrowed:
        secret_store.hide()
