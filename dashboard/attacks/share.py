"""Sharing an attack: its link, its request, a variation of it, a report."""

from typing import Any
from uuid import UUID

from django.http import HttpRequest, HttpResponse, HttpResponseRedirect

from dashboard.attacks.export import breach_report
from dashboard.attacks.export import curl as curls
from dashboard.models import Entry
from dashboard.verdicts import cards
from dashboard.web.pages import or_404, own_run, page
from engine.queries.runs import RunHead
from sabotage.gallery import SCENARIOS
from sabotage.models import Attack

PLAIN = "text/plain; charset=utf-8"


def context_of(request: HttpRequest, run: RunHead, attack_id: UUID) -> dict[str, Any]:
    """The ways to share an attack, for its page."""
    row = _attack(run, attack_id)
    context = {"link": request.build_absolute_uri(f"/runs/{run.code}/attacks/{attack_id}/")}
    try:
        return {**context, "curl": curls.of_attack(row, run, _origin(request))}
    except cards.GoneError as error:
        return {**context, "no_curl": str(error)}


@page
def curl(request: HttpRequest, code: str, attack_id: UUID) -> HttpResponse:
    """The attack's request as a command; 404 with the reason where it cannot be told."""
    run = own_run(request, code)
    try:
        text = curls.of_attack(_attack(run, attack_id), run, _origin(request))
    except cards.GoneError as error:
        return HttpResponse(f"{error}\n", content_type=PLAIN, status=404)
    return HttpResponse(text, content_type=PLAIN)


@page
def vary(request: HttpRequest, code: str, attack_id: UUID) -> HttpResponse:
    """Lead to the form that fired this attack, filled in with what it was fired with."""
    run = own_run(request, code)
    row = _attack(run, attack_id)
    if row.injector in SCENARIOS:
        return HttpResponseRedirect(f"/attack/gallery/#{row.injector}")
    if Entry.objects.filter(attack_id=attack_id).exists():
        return HttpResponseRedirect(f"/attack/?run={run.code}&vary={attack_id}#arena-box")
    return HttpResponseRedirect(f"/runs/{run.code}/?vary={attack_id}#name-{row.injector}")


@page
def report(request: HttpRequest, code: str, attack_id: UUID) -> HttpResponse:
    """The report of a breach; where nothing got through there is none."""
    run = own_run(request, code)
    return breach_report.download(_attack(run, attack_id), run.code)


def _attack(run: RunHead, attack_id: UUID) -> Attack:
    return or_404(cards.row_of(run, attack_id), "there is no such attack on this run")


def _origin(request: HttpRequest) -> str:
    return f"{request.scheme}://{request.get_host()}"
