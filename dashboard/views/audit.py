"""The audit lists: a workspace's log, a run's chain, and recomputing it."""

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_POST, require_safe

from dashboard import verdicts, workspace
from dashboard.pages import own_run, page
from pipeline import runtime
from pipeline.queries import log, runs


@page
@require_safe
def everything(request: HttpRequest) -> HttpResponse:
    """The whole workspace's log, newest first."""
    owner = workspace.current(request)
    asked = {name: request.GET.get(name, "")[:40] for name in ("kind", "run", "cursor")}
    named = runs.by_code(owner, asked["run"].strip().upper()) if asked["run"].strip() else None
    missing = bool(asked["run"].strip()) and named is None
    found = log.workspace_page(
        None if missing else owner,
        kind=asked["kind"],
        run=named.id if named else "",
        cursor=asked["cursor"],
    )
    codes = runs.codes_of(owner, {row.run for row in found.rows})
    rows = [{"row": row, "code": codes.get(row.run, "")} for row in found.rows]
    context = {"asked": asked, "page": found, "rows": rows, "kinds": log.kinds_of(owner)}
    return render(request, "audit/everything.html", context)


@page
@require_safe
def of_run(request: HttpRequest, code: str) -> HttpResponse:
    run = own_run(request, code)
    context = {"run": run, "rows": log.rows_after(run, 0, run.length)}
    return render(request, "audit/run.html", context)


@page
@require_POST
def verify(request: HttpRequest, code: str) -> HttpResponse:
    """Recompute the chain from the stored bytes; what is damaged is shown, then sealed."""
    run = own_run(request, code)
    links = log.chain(run)
    decision = runtime.check(run.id)
    sealed = (
        verdicts.rule_of(decision.snapshot.reason[0])
        if decision and decision.snapshot.reason
        else None
    )
    context = {
        "run": runs.by_id(run.id),
        "links": links,
        "faults": [link for link in links if link.fault],
        "head": log.head_fault(run, links),
        "sealed": sealed,
        "whole": decision is None,
    }
    return render(request, "audit/verified.html", context)


@page
@require_safe
def event_bytes(request: HttpRequest, code: str, number: int) -> HttpResponse:
    """The exact stored bytes of one envelope."""
    found = log.stored_bytes(own_run(request, code), number)
    if found is None:
        raise Http404("the run has no such event")
    response = HttpResponse(found, content_type="application/octet-stream")
    response["Content-Disposition"] = f'attachment; filename="{code}-{number}.json"'
    return response
