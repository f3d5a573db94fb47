"""One run: the live page, its commands, its news, its steps, events and calls."""

from collections.abc import Callable, Mapping
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_POST, require_safe

from dashboard import frames, verdicts
from dashboard.once import once
from dashboard.pages import is_live, own_run, page, see_other
from nanovm_core.messages import Decision
from pipeline import runtime
from pipeline.queries import log, money, runs, steps, why
from pipeline.queries.runs import RunHead

COMMANDS: Mapping[str, Callable[[str, str], Decision]] = {
    "start": runtime.start,
    "pause": runtime.pause,
    "resume": runtime.resume,
    "step": runtime.step,
    "approve": runtime.approve,
    "decline": runtime.decline,
    "kill": runtime.kill,
}


@page
@require_safe
def live(request: HttpRequest, code: str) -> HttpResponse:
    run = own_run(request, code)
    rows = log.last_rows(run, frames.ROWS_SHOWN)
    flash = verdicts.rule_of(request.GET.get("refused", "")[:20])
    extra = {"rows": rows, "mark": frames.seen(run), "flash": flash.code and flash}
    return render(request, "run/page.html", {**frames.context_of(run), **extra})


@page
@require_POST
def command(request: HttpRequest, code: str, name: str) -> HttpResponse:
    """Submit a command of the page. The answer shows the run as it is then."""
    run = own_run(request, code)
    here = f"/runs/{run.code}/"
    url = once(request, here, lambda _: here + _refused(COMMANDS[name](run.id, "visitor")))
    return answer(request, run, url) if is_live(request) else see_other(url)


@page
@require_safe
def news(request: HttpRequest, code: str) -> HttpResponse:
    """What happened after a cursor, for a page that has no socket."""
    run = own_run(request, code)
    after, mark = frames.cursor_of(request.GET.get("after", ""), request.GET.get("mark", ""))
    found = frames.frame(run.id, after, mark, {})
    response = HttpResponse(found.html)
    if found.resync:
        response["X-Resync"] = "1"
    return response


@page
@require_safe
def step(request: HttpRequest, code: str, number: int) -> HttpResponse:
    run = own_run(request, code)
    if not 1 <= number <= len(runs.STEPS):
        raise Http404("there are seven steps")
    view = steps.of_run(run)[number - 1]
    events = log.of_step(run, view.name)
    keys = {row.key for row in events}
    calls = [call for call in money.calls_of(run) if call.key in keys]
    context = {"run": run, "step": view, "events": events, "calls": calls}
    return render(request, "run/step.html", context)


@page
@require_safe
def event(request: HttpRequest, code: str, number: int) -> HttpResponse:
    run = own_run(request, code)
    found = log.event(run, number)
    if found is None:
        raise Http404("the run has no such event")
    rule = verdicts.rule_of(found.row.rule)
    findings = why.of_event(run, dict(found.fields))
    context = {"run": run, "event": found, "rule": rule, "findings": findings}
    return render(request, "run/event.html", context)


@page
@require_safe
def calls(request: HttpRequest, code: str) -> HttpResponse:
    run = own_run(request, code)
    context = {"run": run, "calls": money.calls_of(run), "payment": money.payment_of(run)}
    return render(request, "run/calls.html", context)


def answer(request: HttpRequest, run: RunHead, url: str) -> HttpResponse:
    """The run's fragments as they are now, for htmx; rows come by the cursor alone.

    First comes how much was sealed then: a page that has seen more does not go back.
    """
    now = runs.by_id(run.id)
    context: dict[str, Any] = frames.context_of(now)
    names = ("answered", *frames.FRAGMENTS)
    parts = [frames.render(name, context, oob=True) for name in names]
    refused = verdicts.rule_of(url.partition("?refused=")[2])
    flash = frames.render("flash", {"flash": refused.code and refused}, oob=True)
    return HttpResponse("".join((*parts, flash)))


def _refused(decision: Decision) -> str:
    return f"?refused={decision.refusal.code}" if decision.refusal else ""
