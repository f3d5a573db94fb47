"""The guided tour: eight ordinary pages, whose state is in their address and in the run."""

from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render

import samples
from dashboard.privacy import views as privacy_views
from dashboard.runs.views import page_of
from dashboard.tour import stops
from dashboard.verdicts.cards import InjectionError
from dashboard.web import broadcast
from dashboard.web.idempotency import key_of, once
from dashboard.web.pages import own_invoice_run, page_and_form, see_other
from engine.models import Workspace
from engine.queries.runs import RunHead

LOOK_AGAIN_S = 2


@page_and_form
def stop(request: HttpRequest, number: int) -> HttpResponse:
    """One stop of the tour (GET); do what it is about, and lead to the next (POST)."""
    if not 1 <= number <= stops.LAST:
        raise Http404("the tour has eight stops")
    code = request.GET.get("run", "")
    run = own_invoice_run(request, code) if code else None
    if request.method != "POST":
        return _page(request, number, run)
    if number == stops.LAST and run is not None and stops.may(number, run):
        return privacy_views.erase(request, run, _at(number, run.code), _erase_page)
    try:
        here = _at(number, code)
        return see_other(once(request, here, lambda mine: _do(request, mine, number, run)))
    except InjectionError as error:
        return _page(request, number, run, problem=f"{error} Nothing was changed.", status=422)


def _do(request: HttpRequest, owner: Workspace, number: int, run: RunHead | None) -> str:
    """Do it, and say where the tour goes on; what cannot be done is said at the same stop."""
    if number == 1:
        return _at(2, stops.new_run(owner, request.POST.get("sample", "")[:40]))
    if run is None or number == stops.LAST or not stops.may(number, run):
        return _at(number, run.code if run else "")
    stops.do(number, run, key_of(request))
    broadcast.announce(run.id)
    return _at(number + 1, run.code)


def _page(
    request: HttpRequest, number: int, run: RunHead | None, *, status: int = 200, **more: Any
) -> HttpResponse:
    if run is not None and number == stops.LAST:
        return _erase_page(request, run, {}, status)
    context = {**_panel(number, run), **more}
    if run is None or number == 1:
        chosen = {"sample": samples.SAMPLES[0].name}
        lists = {"samples": samples.SAMPLES, "chosen": chosen, "errors": {}}
        return render(request, "tour/pick.html", {**lists, **context}, status=status)
    response = render(request, "tour/run.html", {**page_of(run), **context}, status=status)
    return _looking_again(request, response, context["standing"])


def _erase_page(
    request: HttpRequest, run: RunHead, errors: dict[str, str], status: int = 200
) -> HttpResponse:
    context = {
        **privacy_views.context_of(request, run, errors),
        **_panel(stops.LAST, run),
        "checked": stops.checked(run),
        "at": _at(stops.LAST, run.code),
    }
    response = render(request, "tour/erase.html", context, status=status)
    return _looking_again(request, response, context["standing"])


def _panel(number: int, run: RunHead | None) -> dict[str, Any]:
    """What the slim panel says and offers at a stop."""
    standing = stops.standing(number, run)
    code = run.code if run else ""
    offered = number if standing.kind == "do" else standing.offer
    return {
        "stop": stops.STOPS[number - 1],
        "last": stops.LAST,
        "standing": standing,
        "offered": stops.STOPS[offered - 1] if offered else None,
        "offer_at": _at(offered, code) if offered > 1 else "/tour/1/",
        "next_at": _at(number + 1, code) if number < stops.LAST else "",
        "end_at": f"/runs/{code}/" if code else "/",
        "run": run,
    }


def _looking_again(
    request: HttpRequest, response: HttpResponse, standing: stops.Standing
) -> HttpResponse:
    """While nobody has to do anything, the page looks by itself, without any script."""
    if standing.kind == "wait":
        response["Refresh"] = f"{LOOK_AGAIN_S}; url={request.get_full_path()}"
    return response


def _at(number: int, code: str) -> str:
    return f"/tour/{number}/?run={code}" if code else f"/tour/{number}/"
