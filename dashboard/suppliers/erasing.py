"""Erasing a supplier, and the certificate."""

from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from dashboard.web import erasing
from dashboard.web.pages import own_supplier, page, page_and_form
from engine.privacy.certificate import Certificate
from pipeline.register import erasure as supplier_erasure


@page_and_form
def erase(request: HttpRequest, supplier_id: UUID) -> HttpResponse:
    """What an erasure destroys and keeps (GET); erase (POST, with the typed confirmation)."""
    row = own_supplier(request, supplier_id).row

    def act(reason: str) -> Certificate:
        return supplier_erasure.erase_supplier(row, reason, "visitor")

    def show(typed: erasing.Words, errors: erasing.Words, status: int) -> HttpResponse:
        line = own_supplier(request, supplier_id)
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
    """The newest certificate of a supplier's erasure, as a page or as JSON."""
    line = own_supplier(request, supplier_id)
    made, name = supplier_erasure.newest(line.row), f"erasure-supplier-{line.row.code}"
    at = f"/suppliers/{line.row.id}/erase/"
    return erasing.certificate(request, made, at, name, {"line": line})
