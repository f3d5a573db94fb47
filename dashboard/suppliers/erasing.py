"""Erasing a supplier, and the certificate."""

from uuid import UUID

from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.views.decorators.http import require_http_methods, require_safe

from dashboard.suppliers.views import own
from dashboard.web.downloads import attached
from dashboard.web.idempotency import once
from dashboard.web.pages import page, see_other
from pipeline.privacy import supplier_erasure
from pipeline.privacy.erasure import REASONS
from pipeline.privacy.supplier_erasure import SupplierCertificate
from pipeline.queries.suppliers import Line


class IncompleteError(Exception):
    """Some place still holds something: there is no certificate, and erasing goes on from here."""

    def __init__(self, made: SupplierCertificate) -> None:
        self.text = "; ".join(f"{place}: {outcome}" for place, outcome in made.places.items())
        super().__init__(self.text)


@page
@require_http_methods(["GET", "HEAD", "POST"])
def erase(request: HttpRequest, supplier_id: UUID) -> HttpResponse:
    """What an erasure destroys and keeps (GET); erase (POST, with the typed confirmation)."""
    line = own(request, supplier_id)
    if request.method != "POST":
        return _shown(request, line, {}, {})
    typed = {name: request.POST.get(name, "") for name in ("reason", "confirm")}
    errors = _errors(line, typed)
    if errors:
        return _shown(request, line, typed, errors, status=422)
    there = f"/suppliers/{line.row.id}/certificate/"
    try:
        return see_other(once(request, there, lambda _: _erased(line, typed["reason"], there)))
    except IncompleteError as incomplete:
        errors = {"incomplete": incomplete.text}
        return _shown(request, own(request, supplier_id), typed, errors, status=500)


@page
@require_safe
def certificate(request: HttpRequest, supplier_id: UUID) -> HttpResponse:
    """The newest certificate of a supplier's erasure."""
    line = own(request, supplier_id)
    found = _found(line)
    context = {"line": line, "certificate": found, "ground": REASONS.get(found.reason, "")}
    response = render(request, "suppliers/certificate.html", context)
    response["Clear-Site-Data"] = '"cache"'  # page copies in this browser may hold values
    return response


@page
@require_safe
def certificate_json(request: HttpRequest, supplier_id: UUID) -> HttpResponse:
    """The same as JSON."""
    line = own(request, supplier_id)
    response = JsonResponse(_found(line).to_json(), json_dumps_params={"indent": 2})
    return attached(response, f"erasure-supplier-{line.row.code}.json")


def _erased(line: Line, reason: str, there: str) -> str:
    made = supplier_erasure.erase_supplier(line.row, reason, "visitor")
    if made.state != "done":
        raise IncompleteError(made)
    return there


def _errors(line: Line, typed: dict[str, str]) -> dict[str, str]:
    errors = {}
    if typed["reason"] not in REASONS:
        errors["reason"] = "Choose a ground for the erasure."
    if typed["confirm"].strip() != f"ERASE {line.row.code}":
        errors["confirm"] = f"Type ERASE {line.row.code} exactly. Nothing was erased."
    return errors


def _shown(
    request: HttpRequest,
    line: Line,
    typed: dict[str, str],
    errors: dict[str, str],
    *,
    status: int = 200,
) -> HttpResponse:
    context = {
        "line": line,
        "certificate": supplier_erasure.newest(line.row),
        "unfinished": supplier_erasure.is_unfinished(line.row),
        "reasons": REASONS.items(),
        "kept": supplier_erasure.KEPT,
        "typed": typed,
        "errors": errors,
    }
    return render(request, "suppliers/erase.html", context, status=status)


def _found(line: Line) -> SupplierCertificate:
    found = supplier_erasure.newest(line.row)
    if found is None:
        raise Http404("this supplier was not erased")
    return found
