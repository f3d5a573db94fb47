"""The gallery: nine more attacks, a card each, fired by a form; and the page of every shot."""

from uuid import UUID

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.template.loader import render_to_string
from django.views.decorators.http import require_POST, require_safe

from dashboard import broadcast, gallery, unguarded, workspace
from dashboard.once import key_of, once
from dashboard.pages import news, page, see_other
from dashboard.views.attacks import looking_again
from pipeline.models import Workspace


@page
@require_safe
def home(request: HttpRequest) -> HttpResponse:
    return _page(request)


@page
@require_safe
def latest(request: HttpRequest) -> HttpResponse:
    """What came of the visitor's shots, for a page that stays open."""
    shown = gallery.pieces(workspace.current(request))
    return news(request, render_to_string("gallery/_news.html", {"pieces": shown}))


@page
@require_POST
def fire(request: HttpRequest, name: str) -> HttpResponse:
    """Fire one exhibit once for this form's key, and show its card."""
    exhibit = gallery.EXHIBITS.get(name)
    if exhibit is None:
        raise Http404("there is no such attack in the gallery")
    params = {
        param.name: request.POST.get(param.name, str(param.default))
        for param in exhibit.injector.params
    }

    def fired(owner: Workspace) -> str:
        gallery.show_to(owner, name, params, key_of(request))
        return f"/attack/gallery/#{name}"

    try:
        return see_other(once(request, f"/attack/gallery/#{name}", fired))
    except gallery.InjectionError as error:
        return _page(request, failed=name, why=str(error), status=422)


@page
@require_safe
def shot(request: HttpRequest, name: str, attack_id: UUID) -> HttpResponse:
    """Everything of one shot, for the visitor who fired it."""
    shown = _own(request, name, attack_id)
    return looking_again(request, "gallery/shot.html", _context(shown), shown.beside)


@page
@require_POST
def without_guard(request: HttpRequest, name: str, attack_id: UUID) -> HttpResponse:
    """Have this shot made again on a throw-away copy that lacks its guard."""
    shown = _own(request, name, attack_id)
    try:
        unguarded.ask(attack_id)
    except unguarded.CopyError as error:
        context = {**_context(shown), "refused": str(error)}
        return render(request, "gallery/shot.html", context, status=422)
    broadcast.announce(shown.run_id)
    return see_other(f"{shown.url}#unguarded")


def _own(request: HttpRequest, name: str, attack_id: UUID) -> gallery.Shown:
    """The visitor's own shot; anyone else's is as absent as one that never was."""
    found = gallery.find(workspace.current(request), name, attack_id)
    if found is None:
        raise Http404("no such shot of yours in the gallery")
    return found


def _context(shown: gallery.Shown) -> dict[str, object]:
    return {"shot": shown, "verdict": shown, "beside": shown.beside}


def _page(
    request: HttpRequest, *, failed: str = "", why: str = "", status: int = 200
) -> HttpResponse:
    shown = gallery.pieces(workspace.current(request))
    context = {"pieces": shown, "failed": failed, "why": why}
    return render(request, "gallery/page.html", context, status=status)
