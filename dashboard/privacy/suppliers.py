"""Whose data is held: search, what is held of a supplier, and its erasure with all its runs."""

from typing import Any
from uuid import UUID

from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import render

from dashboard.privacy import erasures, held
from dashboard.templatetags.counted import counted
from dashboard.web import broadcast, erasing, grace, workspace
from dashboard.web.downloads import attached, streamed
from dashboard.web.erasing import Words
from dashboard.web.pages import own_supplier, page, page_and_form, page_number
from engine.models import Link
from engine.privacy.certificate import Certificate
from engine.privacy.erasure import hindrance
from engine.queries import runs
from engine.runtime import links
from nanovm_core.errors import VerificationError
from pipeline.queries import named
from pipeline.queries import suppliers as listed
from pipeline.queries.suppliers import SupplierLine
from pipeline.register import erasure, its_runs
from pipeline.register.details import CHARS_MAX

HOME = "/privacy/"
RUNS_SHOWN_MAX = 100
MINUTES = counted("grace_minutes")


@page_and_form
def home(request: HttpRequest) -> HttpResponse:
    """The suppliers and the erasures made (GET); a search (POST: a name is in no address)."""
    owner, asked = workspace.existing(request), request.POST.get("q", "").strip()
    number, wrong = page_number(request)
    found = listed.page(owner, number)
    lines: tuple[SupplierLine, ...] = found.lines
    if request.method == "POST":
        try:
            lines = listed.found(owner, asked[:CHARS_MAX])
        except VerificationError as error:
            lines, wrong = (), f"The register cannot be searched: {error.text}"
    counts = its_runs.counts(owner, [each.row.id for each in lines]) if owner else {}
    context = {
        "searched": request.method == "POST",
        "asked": asked,
        "too_long": len(asked) > CHARS_MAX,
        "wrong": wrong,
        "page": found,
        "lines": [(each, counts.get(str(each.row.id), 0)) for each in lines],
        "erasures": erasures.made(owner),
    }
    return render(request, "privacy/home.html", context)


@page_and_form
def erase(request: HttpRequest, supplier_id: UUID) -> HttpResponse:
    """What an erasure of the supplier and its runs destroys (GET); confirm it, then do it (POST).

    The confirmed form is answered with a ticket, and what it says is done after ten seconds.
    """
    return flow(request, own_supplier(request, supplier_id))


def flow(request: HttpRequest, line: SupplierLine, link: Link | None = None) -> HttpResponse:
    """The erasure of a supplier and its runs as one form; ``link``: whose holder orders it."""
    if request.method != "POST":
        return _form(request, line, link, {}, 200)
    actor = links.actor_of(link) if link else "visitor"
    of = f"{line.row.workspace_id} {line.row.id} {actor}"
    given = request.POST.get("ticket", "")
    if not given:
        typed = erasing.typed_of(request)
        errors = erasing.errors_of(line.row.code, typed)
        if errors:
            return _form(request, line, link, errors)
        given = grace.issued(of, typed["reason"])
    ticket = grace.read(of, given)
    if ticket is None:
        old = f"The confirmation is more than {MINUTES} minutes old. Confirm it again."
        return _form(request, line, link, {"ticket": old})
    if ticket.wait_ms:
        context = {"line": line, "ticket": given, "waits": ticket, "at": _at(line, link)}
        return render(request, "privacy/starts.html", context)

    def act() -> Certificate:
        made = erasure.erase_with_runs(line.row, ticket.reason, actor)
        for each in made.runs:
            broadcast.announce(str(each["run"]))
        return made

    try:
        there = f"{_at(line, link)}certificate/"
        return erasing.carried_out(request, there, act, line.row.workspace)
    except erasing.IncompleteError as incomplete:
        left = listed.line(line.row.workspace, line.row.id) or line
        return _form(request, left, link, {"incomplete": str(incomplete)}, 500)


def _form(
    request: HttpRequest, line: SupplierLine, link: Link | None, errors: Words, status: int = 422
) -> HttpResponse:
    found = its_runs.of_supplier(line.row)
    heads = [runs.head_of(each) for each in found[:RUNS_SHOWN_MAX]]
    called = named.of_runs(heads)
    rows = [
        {"run": head, "named": called[head.id], "rule": hindrance(run)}
        for run, head in zip(found, heads, strict=False)
    ]
    living = [each for each in found if each.erased_ms is None]
    back = "/" if link else HOME
    context = {
        "line": line,
        "viewer": link,
        "rows": rows,
        "count": len(found),
        "erasable": sum(not hindrance(each) for each in living),
        "living": len(living),
        "certificate": erasure.newest_with_runs(line.row),
        "unfinished": erasure.with_runs_unfinished(line.row),
        "kept": [(each, held.why_kept(each)) for each in erasure.SupplierAndRuns.kept],
        **erasing.form_of(request, line.row.code, _at(line, link), back, errors),
    }
    return render(request, "privacy/supplier.html", context, status=status)


@page
def certificate(request: HttpRequest, supplier_id: UUID) -> HttpResponse:
    """The newest certificate of a supplier and its runs, as a page or as JSON."""
    return certificate_of(request, own_supplier(request, supplier_id))


def certificate_of(
    request: HttpRequest, line: SupplierLine, link: Link | None = None
) -> HttpResponse:
    """The newest certificate, for the visitor or a link's holder; 404 without one."""
    made, context = erasure.newest_with_runs(line.row), {"line": line, "viewer": link}
    name = f"erasure-supplier-{line.row.code}-with-runs"
    return erasing.certificate(request, made, _at(line, link), name, context)


@page
def access(request: HttpRequest, supplier_id: UUID) -> HttpResponse:
    """What is held of a supplier, to read: Art. 15."""
    line = own_supplier(request, supplier_id)
    found = its_runs.of_supplier(line.row)
    context: dict[str, Any] = {
        "line": line,
        "held": held.of_supplier(line),
        "runs": [held.of_run(each, whole=False) for each in found[:RUNS_SHOWN_MAX]],
        "count": len(found),
    }
    return render(request, "privacy/access.html", context)


@page
def access_json(request: HttpRequest, supplier_id: UUID) -> HttpResponseBase:
    """The same with every value and document whole, as JSON."""
    line = own_supplier(request, supplier_id)
    response = streamed(request, held.export(line), "application/json")
    return attached(response, f"held-of-supplier-{line.row.code}.json")


def _at(line: SupplierLine, link: Link | None) -> str:
    """The address of the erasure; its certificate is below."""
    return f"/l/{link.id}/erase/" if link else f"{HOME}suppliers/{line.row.id}/"
