"""Planning an attack on a run that has not started, and taking a plan back."""

from collections.abc import Callable
from uuid import UUID

from django.http import Http404, HttpRequest, HttpResponse
from django.views.decorators.http import require_POST

from dashboard.attacks.views import answered, not_fired
from dashboard.runs import frames
from dashboard.runs.views import answer
from dashboard.verdicts import cards, plans
from dashboard.web import broadcast
from dashboard.web.idempotency import once
from dashboard.web.pages import is_live, own_run, page, see_other
from pipeline.models import Workspace
from pipeline.queries.runs import RunHead

GONE = "The attack is already firing, or was canceled before."


@page
@require_POST
def make(request: HttpRequest, code: str, name: str) -> HttpResponse:
    """Plan an attack as its card's form stands, once for this form's key."""
    run = own_run(request, code)
    if name not in cards.INJECTORS:
        raise Http404("there is no such injector")
    try:
        url = once(request, f"/runs/{run.code}/#plans", _making(request, run, name))
    except cards.InjectionError as error:
        return not_fired(request, run, name, str(error), f"{name} was not planned")
    return answered(run, name) if is_live(request) else see_other(url)


@page
@require_POST
def take_back(request: HttpRequest, code: str, plan_id: UUID) -> HttpResponse:
    """Take a plan back, as long as nobody fires it."""
    run = own_run(request, code)
    taken = plans.take_back(run.id, plan_id)
    broadcast.announce(run.id)
    if not taken:
        return not_fired(request, run, "plans", GONE, "The plan was not canceled")
    return _taken_back(run) if is_live(request) else see_other(f"/runs/{run.code}/#plans")


def _taken_back(run: RunHead) -> HttpResponse:
    response = answer(run)
    response.write(frames.render("injector_error", {"name": "plans", "why": ""}, oob=True))
    return response


def _making(request: HttpRequest, run: RunHead, name: str) -> Callable[[Workspace], str]:
    def act(_: Workspace) -> str:
        params = cards.params_of(name, request.POST)
        plans.make(run.id, name, params, plans.step_of(request.POST.get("plan_step", "")))
        broadcast.announce(run.id)
        return f"/runs/{run.code}/#plans"

    return act
