"""Erasing a supplier, and the certificate."""

from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from dashboard.suppliers.views import editable_or_404
from dashboard.web import erasing
from dashboard.web.pages import page, page_and_form
from engine.privacy.certificate import Certificate
from pipeline.register import erasure as supplier_erasure


@page_and_form
def erase(request: HttpRequest, supplier_id: UUID) -> HttpResponse:
    """What an erasure destroys and keeps (GET); erase (POST, with the typed confirmation)."""
    row = editable_or_404(request, supplier_id).row

    def act(reason: str) -> Certificate:
        return supplier_erasure.erase_supplier(row, reason, "visitor")

    def show(typed: erasing.Words, errors: erasing.Words, status: int) -> HttpResponse:
        line = editable_or_404(request, supplier_id)
        at = f"/suppliers/{row.id}/"
        context = {
            "line": line,
            "certificate": supplier_erasure.newest(line.row),
            "unfinished": supplier_erasure.is_unfinished(line.row),
            "kept": supplier_erasure.KEPT,
            **erasing.form_of(row.code, f"{at}erase/", at, typed, errors),
        }
        return render(request, "suppliers/erase.html", context, status=status)

    if request.method != "POST":
        return show({}, {}, 200)
    return erasing.erase(request, row.code, f"/suppliers/{row.id}/certificate/", act, show)


@page
def certificate(request: HttpRequest, supplier_id: UUID) -> HttpResponse:
    """The newest certificate of a supplier's erasure."""
    line = editable_or_404(request, supplier_id)
    made = supplier_erasure.newest(line.row)
    at = f"/suppliers/{line.row.id}"
    there = (f"{at}/erase/", f"{at}/certificate.json")
    return erasing.certificate_page(request, made, *there, {"line": line})


@page
def certificate_json(request: HttpRequest, supplier_id: UUID) -> HttpResponse:
    """The same as JSON."""
    row = editable_or_404(request, supplier_id).row
    name = f"erasure-supplier-{row.code}.json"
    return erasing.certificate_file(supplier_erasure.newest(row), name)
