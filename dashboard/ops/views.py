"""How the work goes, and where the log and Stripe differ: /ops/ and /reconcile/."""

from contextlib import suppress
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from dashboard.ops import tiles
from dashboard.web.idempotency import once
from dashboard.web.pages import or_404, page, posted, see_other
from dashboard.web.workspace import existing, name_of
from engine.models import Workspace
from engine.ops import said
from engine.queries import agents
from engine.store import ledgers
from nanovm_core.errors import RefusedError
from pipeline.reconcile import differences

HOME = "/reconcile/"
CONTROLLER = "controller"
NOT_YOURS = "your workspace has no open difference of that id"


@page
def home(request: HttpRequest) -> HttpResponse:
    """What waited, was refused and was paid in the visitor's workspace; what runs here."""
    log = existing(request)
    context = {
        "log": name_of(log) if log else "",
        "mine": tiles.of_log(log) if log else None,
        "here": tiles.of_installation(),
    }
    return render(request, "ops/page.html", context)


@page
def reconcile(request: HttpRequest) -> HttpResponse:
    """Where the visitor's audit log and Stripe's list differ, and when they were compared."""
    log = existing(request)
    found = differences.of_log(log) if log else ()
    asked = request.GET.get("checked", "")
    house = ledgers.house()
    context: dict[str, Any] = {
        "log": name_of(log) if log else "",
        "open": [each for each in found if not each.closed],
        "closed": [each for each in found if each.closed],
        "checked": next((each for each in found if each.closed and each.id == asked), None),
        "stopped": agents.waiting(log)[0] if log else (),
        "everyones": [each for each in differences.of_log(house) if not each.closed]
        if house
        else (),
        "status": said.heard(CONTROLLER),
        "why_not": said.in_words(CONTROLLER),
    }
    return render(request, "ops/reconcile.html", context)


@posted
def check(request: HttpRequest) -> HttpResponse:
    """Record that the visitor looked at a difference of their log: it is closed by that."""
    log, asked = existing(request), request.POST.get("difference", "")
    known = differences.of_log(log) if log else ()
    or_404(next((each for each in known if each.id == asked), None), NOT_YOURS)

    def act(owner: Workspace) -> str:
        with suppress(RefusedError):  # it is closed by now: the list says by whom
            differences.check(owner.id, asked, "visitor")
        return f"{HOME}?checked={asked}"

    return see_other(once(request, HOME, act))
