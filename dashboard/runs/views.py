"""One run: the live page, its commands, its news, its steps, events and calls."""

from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from typing import Any
from uuid import UUID

from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render

from dashboard.arena import target
from dashboard.arena.views import box_of
from dashboard.runs import frames, run_view, story
from dashboard.verdicts import cards, verdict_card
from dashboard.web import held
from dashboard.web.idempotency import once
from dashboard.web.pages import is_live, or_404, own_run, page, posted, see_other
from dashboard.web.workspace import ensure, existing
from engine.models import Link, Workspace
from engine.queries import log, runs, step_detail, steps, why
from engine.queries.record import record_of
from engine.queries.runs import RunHead
from engine.queries.secrets import comments_of
from engine.runtime import api, step_times, terms
from nanovm_core.core.messages import Decision
from pipeline.after_payment import far_side
from pipeline.queries import far_side as recorded
from pipeline.queries import money, personal
from pipeline.reconcile import differences
from pipeline.reconcile.differences import Difference
from pipeline.register.details import DetailsError
from pipeline.steps import approvals
from reader import ReaderLostError

HOLD_CHARS, TERMS_CHARS = 64, 2_000
TERMS = {  # what an approval is bound to, as a person reads it
    "policy": "the policy",
    "program": "the program",
    "document": "the stored document",
    "supplier": "the supplier's entry in the register",
}
DECISIONS = ("approve", "approve_once", "decline")
STORY = "story"  # in place of a rule's code
CHANGED, LATE = "POL-025", "POL-024"
TABS = (
    ("events", "Events"),
    ("payment", "Payment"),
    ("invoice", "Invoice and personal data"),
    ("model", "Write the model's output"),
    ("machine", "State machine"),
    ("evidence", "Evidence"),
)
TABS_OF_CALLS = tuple(each for each in TABS if each[0] in ("events", "machine", "evidence"))
SHARED_S = 5
SHARED = (  # the fragments that somebody with a link sees
    *("alarm", "title", "outcome", "hold", "strip", "rail", "asked", "lanes", "own_verdict"),
    *("payment", "facts", "machine", "receipt", "tail"),
)
COMMANDS: Mapping[str, Callable[[str, str], Decision | None]] = {
    "start": api.start,
    "pause": api.pause,
    "resume": api.resume,
    "step": api.step,
    "kill": api.kill,
    "wake": api.wake,
    "checked": far_side.checked,
    "fooled": story.let_model_answer,
    "honest": story.let_honest_model_answer,
}


@page
def live(request: HttpRequest, code: str) -> HttpResponse:
    run = own_run(request, code)
    link = held.of_request(request)
    if link is not None:
        return _shared(request, run, link)
    flash = flash_of(request.GET.get("refused", "")[:60])
    tab, tabs = request.GET.get("tab", ""), TABS_OF_CALLS if run.is_call else TABS
    shown = {"tab": tab if tab in dict(tabs) else TABS[0][0], "present": "present" in request.GET}
    context = {**page_of(run), **shown, "tabs": tabs, **flash}
    context["differs"] = _differs(request, run)
    like = _like(request, run)
    if like is not None:
        verdicts = context["verdicts"]
        context["verdicts"] = replace(verdicts, cards=cards.varied(verdicts.cards, like))
    return render(request, "run/page.html", context)


def _differs(request: HttpRequest, run: RunHead) -> Difference | None:
    """The newest open difference of a run from Stripe."""
    owner = existing(request)
    found = differences.of_log(owner) if owner else ()
    return next((each for each in found if each.run == run.id and not each.closed), None)


def _shared(request: HttpRequest, run: RunHead, link: Link) -> HttpResponse:
    """The run for somebody with a link: no controls; until it ends the page looks again itself."""
    view = run_view.read(run)
    names = [name for name in SHARED if name in frames.names_of(run)]
    parts = {name: frames.draw(name, view, link) for name in names}
    rows = view.rows[-run_view.ROWS_SHOWN :]
    response = render(request, "run/shared.html", {"run": run, "parts": parts, "rows": rows})
    if not run.ended:
        response["Refresh"] = str(SHARED_S)
    return response


def _like(request: HttpRequest, run: RunHead) -> cards.Shot | None:
    """The attack of which the visitor wants to try a variation."""
    try:
        return cards.find(run, UUID(request.GET.get("vary", "")))
    except ValueError:
        return None


def page_of(run: RunHead) -> dict[str, Any]:
    """Everything the live page shows, with the mark of it."""
    view = run_view.read(run)
    context = {each.name: getattr(view, each.name) for each in fields(view)}
    return {
        **({} if run.is_call else box_of(run)),
        **context,
        "rows": view.rows[-run_view.ROWS_SHOWN :],
        "latest": view.latest,
        "parts": {name: frames.draw(name, view) for name in frames.names_of(run)},
        "mark": frames.mark_of(frames.marks_of(view)),
    }


@posted
def demo(request: HttpRequest) -> HttpResponse:
    """Begin the story of the poisoned invoice, led to where its model is asked."""
    return see_other(once(request, "/runs/", story.begin_run))


@posted
def command(request: HttpRequest, code: str, name: str) -> HttpResponse:
    """Submit a command of the page.

    A decision about a hold is for the hold that its page showed, and for no later one.
    """
    run = own_run(request, code)
    here = f"/runs/{run.code}/"
    url = submitted(request, run, name, here, here)
    return answer(run, url) if is_live(request) else see_other(url)


def submitted(
    request: HttpRequest, run: RunHead, name: str, here: str, done: str, comment: str = ""
) -> str:
    """Where a form's command for a run leads: ``done``, or ``here`` with why it was refused."""

    def act(_: Workspace) -> str:
        code = submit(request, run, name, comment=comment)
        return f"{here}?refused={code}" if code else done

    # A typing error is tried again at once: the hold's name makes an approval count once.
    typed = any(field.startswith(("supplier_code", "value_")) for field in request.POST)
    again = name == "approve" and typed
    return act(ensure(request)) if again else once(request, here, act)


@page
def news(request: HttpRequest, code: str) -> HttpResponse:
    """What happened after a cursor, for a page that has no socket."""
    run = own_run(request, code)
    after, mark = frames.cursor_of(request.GET.get("after", ""), request.GET.get("mark", ""))
    [found] = frames.frames(run.id, [frames.Cursor(after=after, mark=mark)])
    response = HttpResponse(found.html)
    if found.resync:
        response["X-Resync"] = "1"
    return response


@page
def step(request: HttpRequest, code: str, number: int) -> HttpResponse:
    run = own_run(request, code)
    if not 1 <= number <= run.steps_count:
        raise Http404(f"there are {run.steps_count} steps")
    record = record_of(run)
    view = steps.of_run(record)[number - 1]
    events = [row for row in log.rows_of(run) if row.step == view.name]
    keys = {row.key for row in events}
    detail = step_detail.of_step(run, view.name)
    context = {
        "run": run,
        "step": view,
        "events": events,
        "calls": [call for call in record.calls if call.key in keys],
        "detail": detail,
        "checks": why.checks_of(run, detail.judged) if detail.judged else (),
        "times": step_times.of_step(run.id, view.name),
    }
    return render(request, "run/step.html", context)


@page
def event(request: HttpRequest, code: str, number: int) -> HttpResponse:
    run = own_run(request, code)
    found = or_404(log.event(run, number), "the run has no such event")
    rule = verdict_card.rule_of(found.row.rule)
    checks = why.checks_of(run, dict(found.fields))
    said = comments_of(run).get(number, "")
    context = {"run": run, "event": found, "rule": rule, "checks": checks, "comment": said}
    return render(request, "run/event.html", context)


@page
def calls(request: HttpRequest, code: str) -> HttpResponse:
    run = own_run(request, code)
    record = record_of(run)
    payment = money.payment_of(record, personal.of_run(run).values)
    context = {"run": run, "calls": record.calls, "payment": payment}
    return render(request, "run/calls.html", context)


@page
def authenticate(request: HttpRequest, code: str) -> HttpResponse:
    """Lead to the page where the card's owner authenticates a payment that waits for it."""
    run = own_run(request, code)
    return HttpResponseRedirect(recorded.bank_page(run) or f"/runs/{run.code}/")


@page
def crop(request: HttpRequest, code: str, place: int) -> HttpResponse:
    """A place in the document as the page shows it."""
    png = or_404(personal.crop_of(own_run(request, code), place), "the run has no such picture")
    return HttpResponse(png, content_type="image/png")


@page
def sheet(request: HttpRequest, code: str, number: int) -> HttpResponse:
    """A page of the document, as it is shown; none once the document is erased."""
    run = own_run(request, code)
    try:
        png = or_404(personal.page_of(run, number), "the run has no such page")
    except ReaderLostError as error:  # the machine's fault, and not the document's
        return HttpResponse(str(error), status=503, content_type="text/plain")
    return HttpResponse(png, content_type="image/png")


def answer(run: RunHead, url: str = "") -> HttpResponse:
    """The response to htmx: how much is sealed by now, and the form's message.

    The page takes the run's news from its cursor alone, and so in order: the socket knows what
    this page shows, and would not send again what an answer had painted over.
    """
    flash = frames.render("flash", flash_of(url.partition("?refused=")[2]), oob=True)
    return HttpResponse(frames.render("answered", {"run": runs.by_id(run.id)}, oob=True) + flash)


def flash_of(said: str) -> dict[str, Any]:
    """Why a command was not done: a rule and what changed, or the run's story; else nothing."""
    code, *names = said.split(".")
    known = code if code == STORY else verdict_card.rule_of(code).code
    return {"flash": known, "changed": [TERMS[name] for name in names if name in TERMS]}


def submit(
    request: HttpRequest, run: RunHead, name: str, actor: str = "visitor", comment: str = ""
) -> str:
    """Do what a form asks; the code with which it was refused, or nothing.

    Behind the code of an approval, each with a dot: what changed since its page was shown.
    """
    seen = terms.read(request.POST.get("terms", "")[:TERMS_CHARS])
    hold = request.POST.get("hold", "")[:HOLD_CHARS]
    typed = request.POST.get("supplier_code", "")[:HOLD_CHARS]
    if name in (*story.GO_ON, *story.LOSE) and target.in_story(run):
        told = story.story_of(record_of(run))
        if name in story.LOSE or told is None or told.next is None:
            return STORY
        name = told.next[0]
    try:
        if name in COMMANDS:
            decision = COMMANDS[name](run.id, actor)
        elif name in ("approve", "approve_once"):
            text: approvals.Text = "remember" if name == "approve" else "once"
            decision = approvals.approve(
                run.id,
                actor,
                hold,
                terms=seen,
                code=typed,
                text=text,
                form=request.POST.dict(),
                comment=comment,
            )
            if not decision.refusal and (decision.snapshot.reason or ("",))[0] == LATE:
                return LATE  # it is asked again
        else:
            decision = approvals.decline(run.id, actor, hold, comment=comment)
    except DetailsError as error:
        return error.code
    code = decision.refusal.code if decision and decision.refusal else ""
    differ = seen.items() ^ api.terms_now(run.id).items() if code == CHANGED else ()
    return ".".join((code, *sorted({each for each, _ in differ})))
