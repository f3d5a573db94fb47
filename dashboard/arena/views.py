"""The red team's arena: the box, its dry runs and proposals, levels, scores and bundles."""

import json
from typing import Any
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.template.loader import render_to_string

from dashboard.arena import box, judge, score, target
from dashboard.arena import poison as poisons
from dashboard.arena.box import BoxError, Typed
from dashboard.templatetags.counted import COUNTS
from dashboard.verdicts import cards
from dashboard.web import broadcast
from dashboard.web import workspace as visitors
from dashboard.web.downloads import attached
from dashboard.web.idempotency import key_of, once
from dashboard.web.pages import news, or_404, own_invoice_run, page, posted, see_other
from dashboard.web.refusals import LINE
from engine.models import Workspace
from engine.queries import dry_run
from engine.queries.runs import RunHead
from nanovm_core.core.proposals import PROPOSAL_BYTES_MAX
from sabotage.kit import code_locations

COUNTS.update(
    levels=lambda: len(box.levels()),
    hours=lambda: score.HOURS,
    nickname=lambda: score.NAME_CHARS_MAX,
)

HERE = "/attack/"
NO_RUN = "There is no run to attack yet. Start one, then propose this."


@page
def home(request: HttpRequest) -> HttpResponse:
    """The arena, its box filled with a preset or with the faithful call."""
    run = _run(request, request.GET.get("run", ""))
    chosen = box.presets().get(request.GET.get("preset", ""))
    more: dict[str, Any] = {"poison": poisons.box(poisons.example(request.GET.get("note", "")))}
    typed = box.filled(chosen, run) if chosen else _again(request, run) or _faithful(run)
    return _page(request, run, typed, **more)


@page
def board(request: HttpRequest) -> HttpResponse:
    """The scoreboard's counts, for a page that stays open."""
    return news(request, render_to_string("arena/_board.html", {"board": score.board()}))


@posted
def check(request: HttpRequest) -> HttpResponse:
    """What would come of these bytes: asked of the gate itself, and nothing is kept."""
    run, typed = _run(request, request.POST.get("run", "")), _typed(request)
    line = _line(run, typed)
    if LINE in request.headers:
        return render(request, "arena/_line.html", {"line": line})
    return _page(request, run, typed, line=line)


@posted
def propose(request: HttpRequest) -> HttpResponse:
    """Propose these bytes in earnest; the answer is the attack's own page."""
    run, typed = _run(request, request.POST.get("run", "")), _typed(request)
    if run is None:
        return _page(request, run, typed, problem=NO_RUN, status=422)

    def act(_: Workspace) -> str:
        attack = target.proposed(run, typed, key_of(request))
        broadcast.announce(run.id)
        return f"/runs/{run.code}/attacks/{attack.pk}/"

    try:
        return see_other(once(request, f"/runs/{run.code}/#verdict", act))
    except (BoxError, cards.InjectionError) as error:
        return _page(request, run, typed, problem=f"{error} Nothing was proposed.", status=422)


@posted
def start(request: HttpRequest) -> HttpResponse:
    """Make a run of the plain sample, and lead it to where its model is asked."""
    return see_other(once(request, HERE, lambda owner: _at(target.new_run(owner))))


@posted
def poison(request: HttpRequest) -> HttpResponse:
    """Make a PDF of the visitor's note, and begin a run over it."""
    run, given = _run(request, request.POST.get("run", "")), poisons.read(request.POST)
    more: dict[str, Any] = {"poison": poisons.box(given)}
    try:
        poisons.check(given)
    except BoxError as error:
        problem = f"{error} No run was made."
        return _page(request, run, _faithful(run), poison_problem=problem, status=422, **more)
    return see_other(once(request, "/runs/", lambda owner: poisons.begin_run(owner, given)))


@posted
def ready(request: HttpRequest) -> HttpResponse:
    """Lead a run that goes step by step on to where its model is asked."""
    run = own_invoice_run(request, request.POST.get("run", ""))
    return see_other(once(request, _at(run), lambda _: _at(target.led(run.id))))


@posted
def rename(request: HttpRequest) -> HttpResponse:
    """Take a nickname for the scoreboard, or forget the one there was."""
    given = request.POST.get("name", "")
    try:
        score.rename(visitors.ensure(request).pk, given)
    except score.NicknameError as error:
        run = _run(request, "")
        more = {"name_problem": str(error), "name": given}
        return _page(request, run, _faithful(run), status=422, **more)
    return see_other(f"{HERE}#score")


@page
def bundle(request: HttpRequest, attack_id: UUID) -> HttpResponse:
    """The reproduction bundle of a bypass; the proposed bytes only where they are asked for."""
    entry = or_404(
        judge.bypasses(visitors.current(request)).filter(attack_id=attack_id).first(),
        "there is no bypass of that name in your workspace",
    )
    whole = judge.reproduction(entry, with_proposal="proposal" in request.GET)
    text = json.dumps(whole, indent=2, sort_keys=True)
    return attached(HttpResponse(text, content_type="application/json"), f"{attack_id}.json")


def _run(request: HttpRequest, code: str) -> RunHead | None:
    """The named run, which must be the visitor's own; else the one they would attack next."""
    return own_invoice_run(request, code) if code else target.newest(visitors.current(request))


def _typed(request: HttpRequest) -> Typed:
    mode = request.POST.get("mode", "")
    known = mode if mode in {each[0] for each in box.MODES} else box.MODES[0][0]
    return Typed(text=request.POST.get("proposal", ""), mode=known)


def _again(request: HttpRequest, run: RunHead | None) -> Typed | None:
    """What was proposed to this run before, to vary it; None where its words are not kept."""
    try:
        row = cards.row_of(run, UUID(request.GET.get("vary", ""))) if run else None
        return box.typed_of(cards.words_of(row)) if row else None
    except (ValueError, cards.GoneError):
        return None


def _faithful(run: RunHead | None) -> Typed:
    return box.filled(box.presets()[box.FAITHFUL], run)


def _line(run: RunHead | None, typed: Typed) -> dict[str, Any]:
    """What stands under the box: the dry verdict, where the fault is, how many bytes it has."""
    try:
        raw = typed.raw()
    except BoxError as error:
        return {"dry_run": dry_run.Dry(word="UNREADABLE", text=str(error))}
    found = dry_run.judged(run.id, raw) if run is not None else dry_run.parse(raw)
    refused = run is not None and found.word == "BLOCKED"
    return {
        "dry_run": found,
        "where": code_locations.where(found.rule, text=found.text) if refused else "",
        "place": box.place(raw, found.text),
        "size": len(raw),
    }


def _page(
    request: HttpRequest, run: RunHead | None, typed: Typed, *, status: int = 200, **more: Any
) -> HttpResponse:
    owner = visitors.current(request)
    context = {
        **box_of(run, typed),
        "presets": box.presets().values(),
        "levels": score.levels_of(owner),
        "mine": score.score_of(owner),
        "board": score.board(),
        "name": score.name_of(owner),
        "bypasses": judge.bypasses(owner),
    }
    return render(request, "arena/page.html", {**context, **more}, status=status)


def box_of(run: RunHead | None, typed: Typed | None = None) -> dict[str, Any]:
    """What the boxes show, here and on a run's own page: at first the faithful call."""
    return {
        "poison": poisons.box(),
        "run": run,
        "typed": typed or _faithful(run),
        "modes": box.MODES,
        "limit": PROPOSAL_BYTES_MAX,
        "is_read": box.is_read(run),
        "is_ready": run is not None and target.is_ready(run),
        "answers_left": target.refusals_left(run) if run is not None else 0,
    }


def _at(run: RunHead) -> str:
    return f"{HERE}?run={run.code}"
