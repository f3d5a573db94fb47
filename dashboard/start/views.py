"""The start page, the list of runs, and making one."""

from collections import Counter
from dataclasses import dataclass
from typing import Any

from django.core.cache import cache
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.http import require_POST

import samples
from dashboard.start import forms
from dashboard.start import listing as list_of_runs
from dashboard.templatetags.show import money
from dashboard.verdicts import cards, plans
from dashboard.web import quotas, refusals, workspace
from dashboard.web.client import client_address
from dashboard.web.idempotency import once
from dashboard.web.pages import own_run, page, page_and_form, posted, see_other
from engine.models import Run, Workspace
from engine.privacy import expiry
from engine.runtime import api
from pipeline.create_run import create_run
from pipeline.queries import run_list
from pipeline.queries.money import payments_made
from sabotage.models import Attack

VISITOR = "visitor"
HAPPENED, FRESH_S = "dashboard.happened", 3  # the scoreboard is as old as that, too
BY_AGENT = "Run {} is a call of a foreign agent: only that agent can make it again."
GONE = "The document of {} can no longer be read. Choose a sample or upload the PDF again."
NEWEST_SHOWN = 5


@page
def home(request: HttpRequest) -> HttpResponse:
    owner = workspace.existing(request)
    rows = list_of_runs.rows(run_list.newest(owner, NEWEST_SHOWN))
    ends = expiry.of(owner.id if owner else None)
    context = {"rows": rows, "expiry": ends, "here": totals_here()}
    return render(request, "start/home.html", {**_form(None), **context})


@page
def new(request: HttpRequest) -> HttpResponse:
    return render(request, "start/new.html", _form(None))


@page_and_form
def listing(request: HttpRequest) -> HttpResponse:
    if request.method == "POST":
        return _create(request)
    return list_of_runs.shown(request)


@posted
def run_plain(request: HttpRequest) -> HttpResponse:
    return see_other(
        once(request, "/runs/", lambda owner: url_of(start_run(owner, forms.sample_run())))
    )


@posted
def again(request: HttpRequest, code: str) -> HttpResponse:
    """A new run of the same document, model, card and pace; the old one stays as it is."""
    run = own_run(request, code)
    wanted = None if run.is_call else forms.repeated(run)
    if wanted is None:
        why = BY_AGENT if run.is_call else GONE
        context = {**_form(None), "errors": {"sample": [why.format(run.code)]}}
        return render(request, "start/new.html", context, status=422)
    url = once(request, f"/runs/{run.code}/", lambda owner: url_of(start_run(owner, wanted)))
    return see_other(url)


@require_POST
def theme(request: HttpRequest) -> HttpResponse:
    """Remember light or dark for this browser; anything else means as the system says."""
    there = request.POST.get("next", "/")
    safe = url_has_allowed_host_and_scheme(there, allowed_hosts=None) and there.startswith("/")
    response = HttpResponseRedirect(there if safe else "/", status=303)
    chosen = request.POST.get("theme", "")
    value = chosen if chosen in ("light", "dark") else ""
    response.set_cookie("theme", value, max_age=workspace.YEAR_S, httponly=True, samesite="Lax")
    return response


def _create(request: HttpRequest) -> HttpResponse:
    form = forms.NewRunForm(request.POST, request.FILES)
    if not form.is_valid():
        return render(request, "start/new.html", _form(form), status=422)
    wanted = form.wanted()
    try:
        return see_other(once(request, "/runs/", lambda owner: _all_made(request, owner, wanted)))
    except quotas.FullError as error:
        return refusals.shown(request, error.refused)


def _all_made(request: HttpRequest, owner: Workspace, wanted: list[forms.RequestedRun]) -> str:
    """Where one run is seen, or all of them.

    Raises:
        FullError: there are more than may be started now; none is.
    """
    quotas.take_runs(workspace.current(request), client_address(request), len(wanted) - 1)
    runs_made = [start_run(owner, each) for each in wanted]
    return url_of(runs_made[0]) if len(runs_made) == 1 else "/runs/"


def start_run(owner: Workspace, wanted: forms.RequestedRun) -> Run:
    """Make the run, and begin it unless it is to be held."""
    run = create_run(
        owner,
        wanted.document,
        wanted.file_name,
        model=wanted.model,
        advisor=wanted.advisor,
        proposal=wanted.proposal,
        payment_method=wanted.payment_method,
        pace_ms=wanted.pace_ms,
        stepping=wanted.stepping,
        text_accepted=wanted.text_accepted,
        started_by="" if wanted.hold or wanted.plan else VISITOR,
    )
    if wanted.plan is not None:
        name, step = wanted.plan
        plans.make(str(run.id), name, {}, step)
        if not wanted.hold:
            api.start(str(run.id), VISITOR)
    return run


def url_of(run: Run) -> str:
    return f"/runs/{run.code}/"


def _form(form: forms.NewRunForm | None) -> dict[str, Any]:
    """The form's choices and what was chosen before."""
    chosen = form.data if form else {"sample": samples.SAMPLES[0].name, "proposal": forms.PLANTED}
    lists = {
        "samples": samples.SAMPLES,
        "models": forms.models(),
        "advisors": forms.advisors(),
        "cards": forms.CARDS,
        "paces": forms.PACES,
    }
    planned = {"injectors": tuple(cards.INJECTORS), "plan_steps": plans.CHOICES}
    typed = {"form": form, "chosen": chosen, "errors": form.errors if form else {}}
    return {**lists, **planned, **typed, "files_max": forms.FILES_MAX}


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """Counts over all workspaces; ``lost`` holds one sum for each currency."""

    paid: int
    attacks: int
    stopped: int
    lost: tuple[str, ...]


def totals_here() -> Totals:
    """The counts, at most three seconds old."""
    found = cache.get(HAPPENED)
    if not isinstance(found, Totals):
        found = _totals()
        cache.set(HAPPENED, found, FRESH_S)
    return found


def _totals() -> Totals:
    judged = Attack.objects.exclude(verdict="")
    stopped = judged.exclude(integrity=cards.BREACHED).exclude(verdict=cards.ACCEPTED)
    lost: Counter[str] = Counter()
    for cost in judged.values_list("control__cost", flat=True).iterator():
        if cost and cost.get("amount_minor"):
            lost[str(cost["currency"])] += int(cost["amount_minor"])
    sums = tuple(money(amount, currency) for currency, amount in lost.most_common())
    return Totals(paid=payments_made(), attacks=judged.count(), stopped=stopped.count(), lost=sums)
