"""The calls of foreign agents in the list of runs: folded by agent and hour, and opened."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

from django.core.paginator import Paginator
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render

from dashboard.web import workspace
from dashboard.web.pages import page, page_number
from engine.clock import now_ms
from engine.models import Workspace
from engine.queries import runs
from gate import asked, queries, replies
from nanovm_core.core.lifecycle import ACTIVE

SIZE, NEWEST, OF_AGENT = 50, 5, 10  # of a page; lines above the list of runs; on an agent's page
HOUR = "%Y-%m-%dT%H"  # as addresses have it, UTC
WORDS = {  # on chips
    replies.ALLOWED: "ALLOWED, not reported yet",
    replies.HELD: "ON HOLD",
    replies.UNKNOWN: "OUTCOME UNKNOWN",
    **{each: each.upper() for each in ("done", "refused", "running", "failed")},
}
UNTAKEN = "APPROVED, not asked for again yet"
COUNTED = {replies.ALLOWED: "not reported yet", replies.UNKNOWN: "of unknown outcome"}
COUNTED[replies.HELD] = "on hold"
ALL = "Calls of foreign agents"


class Line(queries.Folded):
    """An agent's calls within an hour, in words."""

    __slots__ = ()

    @property
    def url(self) -> str:
        """Where the line opens into its calls."""
        return f"/runs/calls/{self.agent}/{_at(self.hour_ms):{HOUR}}/"

    @property
    def title(self) -> str:
        """The agent and the hour, with the day where it is not today's."""
        hour = _at(self.hour_ms)
        day = "" if hour.date() == _at(now_ms()).date() else f"{hour:%Y-%m-%d}, "
        return f"{self.agent} · {day}{hour:%H:00} to {_at(self.hour_ms + queries.HOUR_MS):%H:00}"

    @property
    def counted(self) -> str:
        """How many calls, and of each verdict how many."""
        counts, total = self.counts, sum(self.counts.values())
        order = (replies.DONE, *(each for each in replies.VERDICTS if each != replies.DONE))
        by = [f"{counts[each]} {COUNTED.get(each, each)}" for each in order if each in counts]
        return f"{total} call{'s' * (total != 1)}: {', '.join(by)}"


def newest(log: Workspace | None) -> list[Line]:
    """The newest lines, for the top of the list of runs."""
    return _lines(log, queries.hours(log.id)[:NEWEST]) if log else []


def word(run: runs.RunHead, it: asked.Asked) -> str:
    """For a chip; of an allowed call also whether its warrant was taken: an active one waits."""
    return UNTAKEN if (it.verdict, run.state) == (replies.ALLOWED, ACTIVE) else WORDS[it.verdict]


def rows(found: Sequence[runs.RunHead]) -> list[tuple[runs.RunHead, asked.Asked, str]]:
    """Calls with what they asked, and the word for what became of each."""
    calls = asked.of_runs(found)
    return [(run, calls[run.id], word(run, calls[run.id])) for run in found if run.id in calls]


def of_agent(log: Workspace, agent: str) -> list[tuple[runs.RunHead, asked.Asked, str]]:
    """The newest calls of an agent."""
    found = queries.calls(log.id, agent, 0, now_ms() + 1)[:OF_AGENT]
    return rows(runs.listed([each.run_id for each in found]))


@page
def folded(request: HttpRequest) -> HttpResponse:
    """All lines, newest first."""
    log = workspace.existing(request)
    found = _paged(request, queries.hours(log.id) if log else [])
    lines = _lines(log, found["page"].object_list) if log else []
    return render(request, "start/calls.html", {**found, "title": ALL, "lines": lines})


@page
def opened(request: HttpRequest, agent: str, hour: str) -> HttpResponse:
    """The calls of an agent within an hour, newest first."""
    log, at_ms = workspace.existing(request), _hour_ms(hour)
    calls = queries.calls(log.id, agent, at_ms, at_ms + queries.HOUR_MS) if log else None
    if log is None or calls is None or not calls.exists():
        raise Http404("your workspace has no calls of that agent in that hour")
    (line,) = _lines(log, [(agent, at_ms)])
    found = _paged(request, calls.values_list("run_id", flat=True))
    shown = rows(runs.listed([*found["page"].object_list]))
    context = {**found, "title": line.title, "line": line, "calls": shown}
    return render(request, "start/calls.html", context)


def _paged(request: HttpRequest, found: Any) -> dict[str, Any]:
    number, wrong = page_number(request)
    return {"page": Paginator(found, SIZE).get_page(number), "wrong": wrong}


def _lines(log: Workspace, hours: Iterable[tuple[str, int]]) -> list[Line]:
    return [Line(*each) for each in queries.folded(log.id, [*hours])]


def _at(at_ms: int) -> datetime:
    return datetime.fromtimestamp(at_ms / 1000, UTC)


def _hour_ms(text: str) -> int:
    try:
        return int(datetime.strptime(text, HOUR).replace(tzinfo=UTC).timestamp()) * 1000
    except ValueError as error:
        raise Http404("there is no such hour") from error
