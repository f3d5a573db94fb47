"""The gallery: nine more attacks, a card each, fired by a form."""

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.template.loader import render_to_string
from django.views.decorators.http import require_POST, require_safe

from dashboard import gallery, workspace
from dashboard.once import key_of, once
from dashboard.pages import news, page, see_other
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


def _page(
    request: HttpRequest, *, failed: str = "", why: str = "", status: int = 200
) -> HttpResponse:
    shown = gallery.pieces(workspace.current(request))
    context = {"pieces": shown, "failed": failed, "why": why}
    return render(request, "gallery/page.html", context, status=status)
