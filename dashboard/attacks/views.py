"""Firing an injector at a run, planning it, the verdict's own page, and what is taken from it."""

from typing import Any
from uuid import UUID

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render

from dashboard.arena import target
from dashboard.attacks.export import breach_report
from dashboard.attacks.export import curl as curls
from dashboard.models import Entry
from dashboard.runs import frames
from dashboard.runs.views import answer
from dashboard.verdicts import ablation, cards, plans, verdict_card
from dashboard.web import broadcast
from dashboard.web.idempotency import key_of, once
from dashboard.web.pages import is_live, or_404, own_run, page, posted, see_other
from engine.clock import now_ms
from engine.models import Workspace
from engine.queries.runs import RunHead
from sabotage.gallery import SCENARIOS
from sabotage.models import Attack

PLAIN = "text/plain; charset=utf-8"
GONE = "The attack is already firing, or was canceled before."
A_CALL = "This run is a call of a foreign agent: attacks are fired at runs of invoices."
LOOK_AGAIN_S = 2


@posted
def fire(request: HttpRequest, code: str, name: str) -> HttpResponse:
    """Fire an injector once for this form's key."""
    run = own_run(request, code)
    if name not in (*cards.INJECTORS, cards.ALL):
        raise Http404("there is no such injector")
    if run.is_call or target.in_story(run):
        return not_fired(request, run, name, A_CALL if run.is_call else target.STORY_WAITS)
    if name == cards.ALL:
        return _all_fired(request, run)
    try:
        url = once(request, f"/runs/{run.code}/#verdict", lambda _: _fired(request, run, name))
    except cards.InjectionError as error:
        return not_fired(request, run, name, str(error))
    return htmx_response(run, name) if is_live(request) else see_other(url)


@posted
def plan(request: HttpRequest, code: str, name: str) -> HttpResponse:
    """Plan the attack of a card's form, once for this form's key."""
    run = own_run(request, code)
    if name not in cards.INJECTORS:
        raise Http404("there is no such injector")
    if run.is_call:
        return not_fired(request, run, name, A_CALL, f"{name} was not planned")
    there = f"/runs/{run.code}/#plans"

    def act(_: Workspace) -> str:
        params = cards.params_of(name, request.POST)
        plans.make(run.id, name, params, plans.step_of(request.POST.get("plan_step", "")))
        broadcast.announce(run.id)
        return there

    try:
        url = once(request, there, act)
    except cards.InjectionError as error:
        return not_fired(request, run, name, str(error), f"{name} was not planned")
    return htmx_response(run, name) if is_live(request) else see_other(url)


@posted
def take_back(request: HttpRequest, code: str, plan_id: UUID) -> HttpResponse:
    """Take a plan back, unless it was fired."""
    run = own_run(request, code)
    taken = plans.take_back(run.id, plan_id)
    broadcast.announce(run.id)
    if not taken:
        return not_fired(request, run, "plans", GONE, "The plan was not canceled")
    if not is_live(request):
        return see_other(f"/runs/{run.code}/#plans")
    response = answer(run)
    response.write(frames.render("injector_error", {"name": "plans", "why": ""}, oob=True))
    return response


@page
def verdict(request: HttpRequest, code: str, attack_id: UUID) -> HttpResponse:
    run = own_run(request, code)
    shot = _shot(run, attack_id)
    if shot.injector in SCENARIOS:  # a shot of the gallery has one page, there
        return redirect("gallery_shot", shot.injector, attack_id)
    card = verdict_card.of_attack(run, shot)
    context = {
        "run": run,
        "shot": shot,
        "verdict": card,
        "beside": card.beside,
        "changes": ablation.changed(attack_id),
        "entry": Entry.objects.filter(attack_id=attack_id).first(),
        "plan": plans.of_attack(attack_id),
        **_shared(request, run, attack_id),
    }
    return looking_again(request, "run/attack.html", context, card.beside)


def _shot(run: RunHead, attack_id: UUID) -> cards.Shot:
    return or_404(cards.find(run, attack_id), "there is no such attack on this run")


def looking_again(
    request: HttpRequest, template: str, context: dict[str, Any], beside: ablation.CopyCard | None
) -> HttpResponse:
    """The page of an attack: while its copy is made it looks again by itself, without any script.

    To an address that differs from its own in what follows the # alone, a browser only scrolls.
    """
    if beside is None or not beside.under_way:
        return render(request, template, context)
    again = f"{request.path}?at={now_ms()}#unguarded"
    response = render(request, template, {**context, "again": again})
    response["Refresh"] = f"{LOOK_AGAIN_S}; url={again}"
    return response


@posted
def without_guard(request: HttpRequest, code: str, attack_id: UUID) -> HttpResponse:
    """Have this attack made on a throw-away copy that lacks its guard."""
    run = own_run(request, code)
    shot = _shot(run, attack_id)
    try:
        ablation.ask(attack_id)
        broadcast.announce(run.id)
    except ablation.CopyError as error:
        name = f"The copy without the check against {shot.injector}"
        context = {"run": run, "name": name, "why": error}
        return render(request, "run/not_fired.html", context, status=422)
    return see_other(f"/runs/{run.code}/attacks/{attack_id}/#unguarded")


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
        return redirect(f"/attack/gallery/#{row.injector}")
    if Entry.objects.filter(attack_id=attack_id).exists():
        return redirect(f"/attack/?run={run.code}&vary={attack_id}#arena-box")
    return redirect(f"/runs/{run.code}/?vary={attack_id}#name-{row.injector}")


@page
def report(request: HttpRequest, code: str, attack_id: UUID) -> HttpResponse:
    """The report of a breach; where nothing got through there is none."""
    run = own_run(request, code)
    return breach_report.download(_attack(run, attack_id), run.code)


def not_fired(
    request: HttpRequest, run: RunHead, name: str, why: str, title: str = ""
) -> HttpResponse:
    """The attack cannot be made so: say what to change, beside its form or on a page of its own."""
    if is_live(request):
        return HttpResponse(frames.render("injector_error", {"name": name, "why": why}, oob=True))
    context = {"run": run, "name": name, "title": title, "why": why}
    return render(request, "run/not_fired.html", context, status=422)


def _all_fired(request: HttpRequest, run: RunHead) -> HttpResponse:
    """Each injector once, as its form stands at first; what cannot be made so is told."""
    complaints: list[str] = []

    def act(_: Workspace) -> str:
        complaints.extend(cards.fire_all(run.id, key_of(request)))
        return here

    here = f"/runs/{run.code}/#all_fired"
    url = once(request, here, act)
    if complaints and len(complaints) < len(cards.INJECTORS):
        complaints.append("The others were fired.")
    why = " ".join(complaints)
    broadcast.announce(run.id)
    if is_live(request):
        return htmx_response(run, cards.ALL, why)
    return not_fired(request, run, cards.ALL, why) if why else see_other(url)


def htmx_response(run: RunHead, name: str, why: str = "") -> HttpResponse:
    """The response to htmx: done, a fresh key for the form, and the form's message."""
    response = answer(run)
    response.write(frames.render("key", {"name": name}, oob=True))
    response.write(frames.render("injector_error", {"name": name, "why": why}, oob=True))
    return response


def _fired(request: HttpRequest, run: RunHead, name: str) -> str:
    params = cards.params_of(name, request.POST)
    attack = cards.fire(run.id, name, params, key_of(request))
    broadcast.announce(run.id)
    return f"/runs/{run.code}/attacks/{attack.pk}/"


def _shared(request: HttpRequest, run: RunHead, attack_id: UUID) -> dict[str, Any]:
    """The ways to share an attack, for its page."""
    row = _attack(run, attack_id)
    context = {"link": request.build_absolute_uri(f"/runs/{run.code}/attacks/{attack_id}/")}
    try:
        return {**context, "curl": curls.of_attack(row, run, _origin(request))}
    except cards.GoneError as error:
        return {**context, "no_curl": str(error)}


def _attack(run: RunHead, attack_id: UUID) -> Attack:
    return or_404(cards.row_of(run, attack_id), "there is no such attack on this run")


def _origin(request: HttpRequest) -> str:
    return f"{request.scheme}://{request.get_host()}"
