"""The audit lists: a workspace's log with its filters and exports, and a run's chain."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import render
from django.utils.http import urlencode

from dashboard.web import held, workspace
from dashboard.web.downloads import attached, streamed
from dashboard.web.pages import not_a_page, or_404, own_run, page, unknown
from engine.evidence import bundles
from engine.models import Run, Workspace
from engine.queries import log, runs, timeline
from engine.queries.runs import RunHead
from engine.queries.secrets import comments_of
from engine.queries.timeline import Filter, TimelinePage
from nanovm_core.core.canonical import encode
from nanovm_core.verify import AGENT
from pipeline.application import EVERY_STEP
from pipeline.queries import far_side, named
from pipeline.register import csv_files
from pipeline.steps.reasons import REASONS, RULES

FIELDS = ("run", "kind", "rule", "step", "actor", "since", "until")
FIELD_CHARS_MAX = 40
CHAINS_MAX = 10  # runs and other chains on a page, so that it stays short on a phone
OPEN_MAX = 6  # events that are shown without a click, of several chains
FIRST_CHARS_MAX = 15  # any seq that JSON counts in
MOMENTS = ("since", "until")
SAID = {"kind": "event", "actor": "triggered by"}  # filters whose name is no label
ACTORS = ("runtime", "model", "visitor", "operator", "queue", "caller", "register")
FILTERED = "nanovm-filtered/1"
NOT_VERIFIABLE = "not verifiable: a selection cannot show what was left out"
COLUMNS = ("seq", "run", "n", "kind", "at_ms", "actor", "step", "tool", "rule", "hash")


@page
def everything(request: HttpRequest, name: str = "") -> HttpResponse:
    """The whole workspace's log, newest first."""
    owner = held.own_log(request, name) if name else workspace.existing(request)
    typed = _typed(request)
    cursor = request.GET.get("cursor", "")
    asked, wrong = _filter_of(owner, typed)
    wrong = wrong or not_a_page("" if cursor.isdecimal() else cursor)
    found = TimelinePage(rows=(), cursor="")
    if owner is not None and not wrong:
        found = timeline.page(owner.id, asked, cursor)
    if not (wrong or found.rows or found.cursor):
        wrong = _unknown(typed)
    rows, older = _on_this_page(found)
    context = {
        "name": workspace.name_of(owner) if owner else "",
        "typed": typed,
        "wrong": wrong,
        "chips": _chips(typed),
        "query": urlencode(_non_empty(typed)),
        "page": found,
        "older": older,
        "paged": cursor,
        "chains": _folded(owner, rows) if owner else [],
        "chains_max": CHAINS_MAX,
        "kinds": timeline.KINDS,
        "steps": EVERY_STEP,
        "actors": ACTORS,
    }
    return render(request, "audit/everything.html", context)


def _on_this_page(found: TimelinePage) -> tuple[tuple[log.EventRow, ...], str]:
    """The events of a page, of few chains, and the cursor of the older ones."""
    chains = [*dict.fromkeys(row.run for row in found.rows)]
    beyond = chains[CHAINS_MAX:]
    if not beyond:
        return found.rows, found.cursor
    count = next(at for at, row in enumerate(found.rows) if row.run == beyond[0])
    return found.rows[:count], str(found.rows[count - 1].seq)


def _folded(owner: Workspace, rows: Sequence[log.EventRow]) -> list[dict[str, Any]]:
    """Events by their chain, the one with the newest event first, each run as people call it."""
    chains: dict[str, list[log.EventRow]] = {}
    for row in rows:
        chains.setdefault(row.run, []).append(row)
    heads = runs.heads_of(owner.id, chains)
    names = named.of_runs([*heads.values()])
    return [
        {
            "chain": chain,
            "is_open": len(chains) == 1 or len(rows) <= OPEN_MAX,
            "run": heads.get(chain),
            "named": names.get(chain),
            "rows": log.with_amounts(heads[chain], some) if chain in heads else some,
        }
        for chain, some in chains.items()
    ]


@page
def export(request: HttpRequest, name: str, form: str) -> HttpResponseBase:
    """The whole log or one run as the verifier reads it; a selection says that it is one."""
    owner = held.own_log(request, name)
    typed = _typed(request)
    asked, wrong = _filter_of(owner, typed)
    if wrong:
        raise Http404("a filter names nothing of yours")
    first = _first(request, whole=form == "ndjson" and asked == Filter())
    if form == "ndjson" and asked == Filter(run=asked.run) and not _is_runless(asked.run):
        run = Run.objects.get(pk=asked.run) if asked.run else None
        lines = bundles.export_lines(owner, run, first)
        part = f"run-{run.code}" if run else f"log-{name}" + f"-from-{first}" * bool(first)
        return attached(streamed(request, lines, "application/x-ndjson"), f"{part}.ndjson")
    file = f"log-{name}-not-verifiable.{form}"
    if form == "csv":
        return attached(streamed(request, _csv(owner, asked), "text/csv; charset=utf-8"), file)
    parts = _selection(owner, asked, typed)
    return attached(streamed(request, parts, "application/x-ndjson"), file)


@page
def of_run(request: HttpRequest, code: str) -> HttpResponse:
    run = own_run(request, code)
    context = {"run": run, "rows": rows_of(run), "later": far_side.later(run)}
    return render(request, "audit/run.html", context)


def rows_of(run: RunHead) -> list[tuple[log.EventRow, str]]:
    """Each event of a run, and what a person wrote about its decision."""
    said = comments_of(run)
    return [(row, said.get(row.number, "")) for row in log.rows_of(run)]


@page
def event_bytes(request: HttpRequest, code: str, number: int) -> HttpResponse:
    """The exact stored bytes of one envelope."""
    found = or_404(log.stored_bytes(own_run(request, code), number), "the run has no such event")
    response = HttpResponse(found, content_type="application/octet-stream")
    return attached(response, f"{code}-{number}.json")


def _first(request: HttpRequest, *, whole: bool) -> int:
    """The seq from which a whole log is asked for; 404 for none, or beside a filter."""
    typed = request.GET.get("first", "").strip()
    if not typed:
        return 0
    if not (whole and typed.isascii() and typed.isdecimal() and len(typed) <= FIRST_CHARS_MAX):
        raise Http404("first is a seq of the log's whole NDJSON export, and goes with no filter")
    return int(typed)


def _typed(request: HttpRequest) -> dict[str, str]:
    return {name: request.GET.get(name, "")[:FIELD_CHARS_MAX].strip() for name in FIELDS}


def _non_empty(typed: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in typed.items() if value}


def _chips(typed: Mapping[str, str]) -> list[dict[str, str]]:
    """Each filter that is on, and the address without it."""
    given = _non_empty(typed)
    return [
        {
            "name": SAID.get(name, name),
            "value": value,
            "without": urlencode({key: each for key, each in given.items() if key != name}),
        }
        for name, value in given.items()
    ]


def _filter_of(owner: Workspace | None, typed: Mapping[str, str]) -> tuple[Filter, str]:
    """What is asked for; and the sentence where a filter is none."""
    moments = {name: timeline.moment_ms(typed[name]) for name in MOMENTS if typed[name]}
    for name, at_ms in moments.items():
        if at_ms is None:
            why = f"“{typed[name]}” is not a date and time such as 2026-01-31T12:00 (UTC)."
            return Filter(), why
    run = typed["run"].lower()
    if run and not _is_runless(run):
        named = runs.by_code(owner.id if owner else None, run.upper())
        if named is None:
            return Filter(), f"You have no run “{typed['run']}”."
        run = named.id
    asked = Filter(
        run=run,
        kind=typed["kind"],
        rule=typed["rule"].upper(),
        step=typed["step"],
        actor=typed["actor"],
        since_ms=moments.get("since"),
        until_ms=moments.get("until"),
    )
    return asked, ""


def _unknown(typed: Mapping[str, str]) -> str:
    """The sentence for a filter of a list without rows whose value no event can have."""
    lists = {"kind": timeline.KINDS, "step": EVERY_STEP, "actor": ACTORS}
    said = (unknown(SAID.get(name, name), typed[name], lists[name]) for name in lists)
    if typed["rule"].upper() not in ("", *RULES, *REASONS):
        return f"“{typed['rule']}” is not a rule code. Docs lists every rule."
    return next(filter(None, said), "")


def _is_runless(chain: str) -> bool:
    """Whether a chain belongs to no run: the log's own, or an agent's."""
    return chain == "log" or AGENT.fullmatch(chain) is not None


def _selection(owner: Workspace, asked: Filter, typed: Mapping[str, str]) -> Iterator[bytes]:
    """The bytes of what matches, a line each, and a last line that says what this is not."""
    count = 0
    for envelope in timeline.matching(owner.id, asked):
        count += 1
        yield bytes(envelope.bytes) + b"\n"
    said: dict[str, Any] = {"v": FILTERED, "log": owner.origin, "count": count}
    yield encode({**said, "filters": _non_empty(typed), "warning": NOT_VERIFIABLE}) + b"\n"


def _csv(owner: Workspace, asked: Filter) -> Iterator[bytes]:
    """A table for a spreadsheet; its first line says what it is not."""
    yield csv_files.line([f"{owner.origin}, {NOT_VERIFIABLE}"])
    yield csv_files.line(COLUMNS)
    for envelope in timeline.matching(owner.id, asked):
        row = log.row_of(envelope)
        said = (row.kind, row.at_ms, row.actor, row.step, row.tool, row.rule, row.hash)
        yield csv_files.line([row.seq, row.run, row.number - 1, *said])
