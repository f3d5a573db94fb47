"""The gallery: more attacks, a card each, fired by a form; and the page of every shot."""

from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.template.loader import render_to_string

from dashboard.attacks.export import breach_report, curl
from dashboard.attacks.views import looking_again
from dashboard.gallery import shots
from dashboard.verdicts import ablation
from dashboard.web import broadcast, held, workspace
from dashboard.web.idempotency import key_of, once
from dashboard.web.pages import news, or_404, page, posted, see_other
from engine.models import Workspace
from engine.queries.runs import head_of
from sabotage.fire_scenario import fire_scenario
from sabotage.models import Attack


@page
def home(request: HttpRequest) -> HttpResponse:
    return _page(request)


@page
def latest(request: HttpRequest) -> HttpResponse:
    """What came of the visitor's shots, for a page that stays open."""
    shown = shots.pieces(workspace.current(request))
    return news(request, render_to_string("gallery/_news.html", {"pieces": shown}))


@posted
def fire(request: HttpRequest, name: str) -> HttpResponse:
    """Fire one exhibit once for this form's key, and show its card."""
    exhibit = or_404(shots.SCENARIOS.get(name), "there is no such attack in the gallery")
    params = {
        param.name: request.POST.get(param.name, str(param.default))
        for param in exhibit.injector.params
    }

    def fired(owner: Workspace) -> str:
        fire_scenario(owner, name, params, key_of(request))
        return f"/attack/gallery/#{name}"

    try:
        return see_other(once(request, f"/attack/gallery/#{name}", fired))
    except shots.InjectionError as error:
        return _page(request, failed=name, why=str(error), status=422)


@page
def shot(request: HttpRequest, name: str, attack_id: UUID) -> HttpResponse:
    """Everything of one shot, for the visitor who fired it."""
    row = _own(request, name, attack_id)
    shown = shots.shown_of(row)
    return looking_again(request, "gallery/shot.html", _context(request, row, shown), shown.beside)


@page
def report(request: HttpRequest, name: str, attack_id: UUID) -> HttpResponse:
    """The report of a breach; where nothing got through there is none."""
    return breach_report.download(_own(request, name, attack_id), name)


@posted
def without_guard(request: HttpRequest, name: str, attack_id: UUID) -> HttpResponse:
    """Have this shot made again on a throw-away copy that lacks its guard."""
    row = _own(request, name, attack_id)
    try:
        ablation.ask(attack_id)
    except ablation.CopyError as error:
        context = {**_context(request, row, shots.shown_of(row)), "refused": str(error)}
        return render(request, "gallery/shot.html", context, status=422)
    broadcast.announce(str(row.run_id))
    return see_other(f"{shots.url_of(name, attack_id)}#unguarded")


def _own(request: HttpRequest, name: str, attack_id: UUID) -> Attack:
    """The visitor's own shot, or one that a link shows here; anyone else's is absent."""
    found = shots.find(workspace.current(request), name, attack_id)
    found = found or shots.find(held.shot_of(request, attack_id), name, attack_id)
    return or_404(found, "no such shot of yours in the gallery")


def _context(request: HttpRequest, row: Attack, shown: shots.Shown) -> dict[str, object]:
    return {
        "shot": shown,
        "verdict": shown,
        "beside": shown.beside,
        "changes": ablation.changed(row.pk),
        "link": request.build_absolute_uri(shown.url),
        "curl": curl.of_attack(row, head_of(row.run), f"{request.scheme}://{request.get_host()}"),
    }


def _page(
    request: HttpRequest, *, failed: str = "", why: str = "", status: int = 200
) -> HttpResponse:
    shown = shots.pieces(workspace.current(request))
    context = {"goals": shots.by_goal(shown).items(), "failed": failed, "why": why}
    return render(request, "gallery/page.html", context, status=status)
