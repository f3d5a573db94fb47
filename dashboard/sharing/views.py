"""Pages of links: the owner makes and revokes them, the holder opens and uses one."""

from collections.abc import Callable
from typing import Any
from uuid import UUID

from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from dashboard.privacy import suppliers as privacy
from dashboard.runs import frames, run_view
from dashboard.runs.views import DECISIONS, flash_of, submit
from dashboard.sharing import granted
from dashboard.sharing.granted import TargetError
from dashboard.web import held, workspace
from dashboard.web.pages import or_404, page, page_and_form, posted, see_other
from engine.clock import now_ms
from engine.models import Link
from engine.queries import runs
from engine.runtime import links, queue
from engine.runtime.links import LinkError
from engine.vault import secret_store
from pipeline.queries import suppliers as listed

NAMED_CHARS_MAX = 60
SHOWN_MAX = 300  # of one workspace: what ended longest ago is left out
OVER = "FSM-016"  # of a decision about a hold that is not there any more
FULL = f"You have {links.OPEN_MAX} open links, which is the limit. Revoke one first."


@page_and_form
def opened(request: HttpRequest, token: str) -> HttpResponse:
    """What a link grants (GET, which changes nothing); use it (POST).

    Mail programs and chats open addresses too, so only the form counts as a use.
    """
    link = links.read(token)
    if request.method != "POST":
        return held.private(_offered(request, link))
    if str(link.id) not in held.used(request):
        link = links.use(link)
    response = see_other(granted.of_link(link).url or "/")
    held.remember(request, response, link)
    return held.private(response)


@page_and_form
def listing(request: HttpRequest) -> HttpResponse:
    """The visitor's links (GET); make one, whose address is shown this once (POST)."""
    if request.method != "POST":
        return _listed(request, request.GET)
    owner, form = workspace.existing(request), request.POST
    grants, hours = form.get("grants", ""), form.get("hours", "")
    try:
        if grants not in granted.KINDS or hours not in map(str, granted.LIVES):
            raise TargetError("Choose what the link grants, and for how long.")
        if owner is None:
            raise TargetError("You have nothing to share yet: create a run first.")
        target = granted.target_of(owner, grants, form.get("of", "")[:NAMED_CHARS_MAX])
        link, secret = links.make(
            owner.id,
            grants,
            target,
            until_ms=now_ms() + int(hours) * granted.HOUR_MS,
            narrowed="personal" not in form and grants not in granted.SEES_ALL,
            actor="visitor",
        )
    except TargetError as error:
        return _listed(request, form, wrong=str(error))
    except LinkError:
        return _listed(request, form, wrong=FULL)
    address = request.build_absolute_uri(f"/l/{secret}/")
    return held.private(_listed(request, {}, made=granted.of_link(link), address=address))


@posted
def revoke(request: HttpRequest, link_id: UUID) -> HttpResponse:
    """End one of the visitor's links."""
    owner = or_404(workspace.existing(request), "you have no links")
    mine = links.of_workspace(owner.id).filter(id=link_id).exists()
    or_404(mine or None, "you have no such link")
    links.revoke(owner.id, link_id, actor="visitor")
    return see_other("/links/")


@page_and_form
def approve(request: HttpRequest, link_id: UUID) -> HttpResponse:
    """The payment that waits (GET); decide about the hold that the form showed (POST), once."""
    link = held.by_id(request, link_id, links.APPROVE)
    if link.spent_ms is not None:
        raise LinkError(links.SPENT)
    return _decided(request, link) if request.method == "POST" else _asked(request, link)


@page_and_form
def erase(request: HttpRequest, link_id: UUID) -> HttpResponse:
    """What the erasure of the link's supplier and its runs destroys (GET); confirm it (POST)."""
    return _erasing(request, link_id, privacy.flow)


@page
def certificate(request: HttpRequest, link_id: UUID) -> HttpResponse:
    """The certificate of the erasure that the link was for, as a page or as JSON."""
    return _erasing(request, link_id, privacy.certificate_of)


def _erasing(
    request: HttpRequest, link_id: UUID, answer: Callable[..., HttpResponse]
) -> HttpResponse:
    """``answer`` about the supplier of a link to erase it."""
    link = held.by_id(request, link_id, links.ERASE)
    line = listed.line(link.workspace, UUID(link.target))
    return answer(request, or_404(line, "the supplier is not there any more"), link)


def _offered(request: HttpRequest, link: Link) -> HttpResponse:
    """The page of a link that was not used here yet. No personal value is opened for it."""
    secret_store.hide()
    found = granted.of_link(link)
    is_used = str(link.id) in held.used(request)
    context = {"granted": found, "card": granted.card_of(found), "is_used": is_used}
    return render(request, "sharing/offered.html", {**context, "link": link})


def _listed(request: HttpRequest, typed: Any, *, wrong: str = "", **said: Any) -> HttpResponse:
    owner = workspace.existing(request)
    rows = links.of_workspace(owner.id).select_related("workspace")[:SHOWN_MAX] if owner else ()
    context = {
        "lines": [granted.of_link(each) for each in rows],
        "kinds": granted.KINDS.items(),
        "lives": granted.LIVES.items(),
        "typed": {name: typed.get(name, "") for name in ("grants", "of", "hours", "personal")},
        "wrong": wrong,
        **said,
    }
    return render(request, "sharing/links.html", context, status=422 if wrong else 200)


def _is_requester(request: HttpRequest, link: Link) -> bool:
    """Whether this browser is one of the workspace's own, which asked for the payment."""
    mine = workspace.existing(request)
    return mine is not None and mine.id == link.workspace_id


def _asked(request: HttpRequest, link: Link, refused: str = "") -> HttpResponse:
    view = run_view.read(runs.by_id(link.target))
    hold = {**frames.context_of(view, frames.FRAGMENTS["hold"]), "deciding": link}
    context = {
        "run": view.run,
        "view": view,
        "viewer": link,
        "parts": {name: frames.draw(name, view, link) for name in ("title", "outcome")},
        "hold": frames.render("hold", hold, oob=False),
        "is_asked": granted.is_asked(link.target),
        "is_requester": _is_requester(request, link),
        **flash_of(refused),
    }
    status = 409 if refused else 200
    return held.private(render(request, "sharing/approve.html", context, status=status))


def _decided(request: HttpRequest, link: Link) -> HttpResponse:
    """Decide about exactly the hold that the form showed, and spend the link in the same commit.

    A browser of the workspace itself decides as what it is: ``four_eyes`` refuses it then.
    """
    name = request.POST.get("decision", "")
    or_404(name in DECISIONS or None, "there is no such decision")
    actor = "visitor" if _is_requester(request, link) else links.actor_of(link)
    with transaction.atomic():
        links.acting(link)
        run = runs.by_id(link.target)
        code = submit(request, run, name, actor) if granted.is_asked(run.id) else OVER
        if code:
            links.use(link)  # counted: what is refused is sealed too
        else:
            links.spend(link, "declined" if name == "decline" else "approved")
    queue.wake(link.target)  # again: what was sent before the commit may have come too early
    return _asked(request, link, code) if code else see_other(f"/runs/{run.code}/")
