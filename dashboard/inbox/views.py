"""All that waits for a person, and deciding about it in place."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, TypeAlias
from uuid import UUID

from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from dashboard.agents.words import shown
from dashboard.runs import run_view
from dashboard.runs.views import flash_of, submitted
from dashboard.web import workspace
from dashboard.web.idempotency import once
from dashboard.web.pages import own_run, page, posted, see_other, unknown
from engine.queries import agents, log, runs
from engine.queries.runs import RunHead
from engine.runtime import terms
from gate.asked import Asked
from gate.asked import of_runs as asked_of
from pipeline.queries import holds, named, stuck_runs
from pipeline.queries.named import Named
from pipeline.reconcile import differences
from pipeline.steps import approvals

HOME = "/inbox/"
TABS = {"payments": "Payments and calls", "agents": "Agents", "differences": "Differences"}
COMMENT_CHARS_MAX = 500
TOO_LONG = "The comment has {:,} characters of at most {}. Nothing was decided: shorten it."
PAGE = 10
Found: TypeAlias = tuple[RunHead, stuck_runs.StuckReason]


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A run of the list. ``alike``: how many wait by its rule for its supplier, with itself.

    0 where the register has not changed since.
    """

    run: RunHead
    named: Named
    stall: stuck_runs.StuckReason
    why: holds.Reasons | None  # None where no rule holds it
    alike: int = 0
    asked: Asked | None = None  # of a foreign agent's call

    @property
    def who(self) -> str:
        """Who may decide about it."""
        if self.stall.final:
            return "Nobody can approve it; it can only be declined"
        if self.why and self.why.four_eyes:
            return "May decide: another person than the one who started it; you may decline"
        if self.stall.waits:
            return "May decide: you"
        is_asked = self.stall.says == stuck_runs.TO_TAKE.says
        then = "the agent has to ask again" if is_asked else "it continues by itself"
        return f"No decision is needed: {then}"


@page
def home(request: HttpRequest, code: str = "") -> HttpResponse:
    """What waits: payments, one of them opened in its place; agents and alerts; or differences."""
    return _shown(request, own_run(request, code) if code else None)


@posted
def decide(request: HttpRequest, code: str, name: str) -> HttpResponse:
    """Submit a command for the open run, and go on to the next one in the list."""
    run = own_run(request, code)
    here = f"{HOME}{run.code}/"
    comment = "\n".join(request.POST.get("comment", "").split("\r\n")).strip()
    if len(comment) > COMMENT_CHARS_MAX:
        wrong = TOO_LONG.format(len(comment), COMMENT_CHARS_MAX)
        return _shown(request, run, status=422, wrong=wrong, comment=comment)
    then = _after(run, _waiting(UUID(run.workspace)))
    return see_other(submitted(request, run, name, here, then, comment))


@posted
def judge(request: HttpRequest, code: str) -> HttpResponse:
    """Have a run judged again by what the register says now; ``all``: all like it in the list."""
    run = own_run(request, code)
    asked = [run.id, *_alike(run)]

    def act(_: object) -> str:
        for run_id in asked if "all" in request.POST else asked[:1]:
            approvals.judge_again(run_id)
        return f"{HOME}?decided={run.code}"

    return see_other(once(request, HOME, act))


def _shown(
    request: HttpRequest, run: RunHead | None = None, *, status: int = 200, **said: Any
) -> HttpResponse:
    owner = workspace.existing(request)
    asked = request.GET.get("tab", "")[:20]
    tab = asked if asked in TABS else "payments"
    found = stuck_runs.of_workspace(owner.id) if owner and tab == "payments" else []
    waits = [each for each in found if each[1].waits]
    paged = Paginator(waits, PAGE).get_page(_page_of(request, run, waits))
    stopped, alerts = agents.waiting(owner) if owner else ([], [])
    compared = differences.of_log(owner) if owner else ()
    context = {
        "tabs": TABS,
        "tab": tab,
        "page": paged,
        "listed": len(waits),
        "rows": _rows([*paged.object_list], waits),
        "others": _rows([each for each in found if not each[1].waits], ()),
        "stopped": [shown(each) for each in stopped],
        "alerts": alerts,
        "differing": [each for each in compared if not each.closed],
        "log": workspace.name_of(owner) if owner else "",
        "decided": _decided(request),
        "comment_max": COMMENT_CHARS_MAX,
        "wrong": unknown("tab", asked, TABS),
        **flash_of(request.GET.get("refused", "")[:60]),
    }
    if run is not None:
        context |= _opened(run) | {"gone": all(each.id != run.id for each, _ in found)}
    return render(request, "inbox/page.html", {**context, **said}, status=status)


def _opened(run: RunHead) -> dict[str, Any]:
    """What the open row shows, which is what the run's own page shows of its hold."""
    view = run_view.read(run)
    policy = terms.read(view.terms).get("policy", run.policy)
    return {
        **{each.name: getattr(view, each.name) for each in fields(view) if each.name != "rows"},
        "open": run.code,
        "is_older_policy": policy != run.policy,
        "decides_at": HOME,
    }


def _page_of(request: HttpRequest, run: RunHead | None, waits: Sequence[Found]) -> str:
    """The number of the page that is asked for, or that has the open run."""
    places = [place for place, (each, _) in enumerate(waits) if run and each.id == run.id]
    return str(places[0] // PAGE + 1) if places else request.GET.get("page", "")[:5]


def _waiting(workspace_id: UUID) -> list[Found]:
    return [each for each in stuck_runs.of_workspace(workspace_id) if each[1].waits]


def _rows(found: Sequence[Found], waits: Sequence[Found]) -> list[Row]:
    """Runs as rows, with every reason of each: some milliseconds a run."""
    names = named.of_runs([run for run, _ in (*found, *waits)])
    asked = asked_of(run for run, _ in found)
    alike = Counter((run.held_by, names[run.id].supplier) for run, _ in waits)
    rows = []
    for run, stall in found:
        why, name = holds.reasons_of(run) if run.held_by else None, names[run.id]
        same = alike[run.held_by, name.supplier] if why and why.changed else 0
        call = asked.get(run.id)
        rows.append(Row(run=run, named=name, stall=stall, why=why, alike=same, asked=call))
    return rows


def _alike(run: RunHead) -> list[str]:
    """The other waiting runs that the same rule holds for the same supplier."""
    held = [each for each, _ in _waiting(UUID(run.workspace)) if each.held_by == run.held_by]
    names = named.of_runs([run, *held])
    mine = [each.id for each in held if names[each.id].supplier == names[run.id].supplier]
    return [each for each in mine if each != run.id]


def _after(run: RunHead, waits: Sequence[Found]) -> str:
    """Where the list goes on once this run is decided: its next row opened, else the one before."""
    codes = [each.code for each, _ in waits]
    at = codes.index(run.code) if run.code in codes else len(codes)
    rest = [*codes[at + 1 :], *reversed(codes[:at])]
    there = f"{HOME}{rest[0]}/" if rest else HOME
    return f"{there}?decided={run.code}" + (f"#open-{rest[0]}" if rest else "")


def _decided(request: HttpRequest) -> str:
    """What became of the run that was decided just now, as its record says; else nothing."""
    code = request.GET.get("decided", "")[:8].upper()
    run = runs.by_code(workspace.current(request), code) if code else None
    if run is None:
        return ""
    resumed = log.envelopes(run).filter(kind="resumed").order_by("-n").first()
    last = log.row_of(resumed) if resumed else None
    name, call = named.of_runs([run])[run.id], asked_of([run]).get(run.id)
    about = " to ".join(filter(None, (name.amount, name.supplier))) or f"run {run.code}"
    about = f"{call.tool} for {call.agent}" if call else about
    if run.label == runs.DECLINED:
        return f"Declined: {about}; nothing is {'called' if call else 'paid'}."
    verb = "Done"
    if last and last.state_event == "Approved":
        verb = "Judged again" if last.actor == approvals.REGISTER else "Approved"
    return f"{verb}: {about}; {_became(run)}."


def _became(run: RunHead) -> str:
    if run.suspended:
        return "the run is on hold"
    if run.ended:
        return "the run succeeded" if run.label == "SUCCESS" else "the run failed"
    return "the run goes on"
