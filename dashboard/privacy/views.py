"""A run's personal data, its erasure, and the certificate."""

from collections.abc import Callable
from functools import partial
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from dashboard.privacy import held
from dashboard.templatetags.show import refusal
from dashboard.verdicts import plans
from dashboard.web import broadcast, erasing
from dashboard.web.pages import own_run, page, page_and_form
from engine.errors import ErasureRefusedError
from engine.privacy import erasable, erasure, retention
from engine.privacy.certificate import Certificate
from engine.privacy.erasure import newest as newest_certificate
from engine.queries import secrets
from engine.queries.runs import RunHead
from pipeline.steps.seal import advice_file


@page_and_form
def inventory(request: HttpRequest, code: str) -> HttpResponse:
    """What is stored where (GET); erase it (POST, with the typed confirmation)."""
    run = own_run(request, code)
    if request.method == "POST":
        return erase(request, run, f"/privacy/certificates/{run.code}/", _page)
    return _page(request, run, {})


@page
def erased(request: HttpRequest, code: str) -> HttpResponse:
    """Whether a page that is open shows what is erased by now (200), or not yet (204)."""
    run = own_run(request, code)
    return HttpResponse(status=204) if run.erased_ms is None else HttpResponse("erased")


@page
def certificate(request: HttpRequest, code: str) -> HttpResponse:
    """The newest certificate of a run's erasure, as a page or as JSON."""
    run = own_run(request, code)
    made, name = newest_certificate(run.id), f"erasure-{run.code}"
    context = {"run": run, "clear": held.in_clear(run)}
    return erasing.certificate(request, made, f"/privacy/{run.code}/", name, context)


def erase(
    request: HttpRequest, run: RunHead, there: str, show: Callable[..., HttpResponse]
) -> HttpResponse:
    """Erase the run as the form says, and lead ``there``; what is wrong with it is shown."""

    def act(reason: str) -> Certificate:
        made = erasure.erase_run(run.id, reason, "visitor")
        broadcast.announce(run.id)
        return made

    try:
        return erasing.erase(request, run.code, there, act, partial(show, request, run))
    except ErasureRefusedError as refused:
        errors = {"refused": f"{refusal(refused.code)} ({refused.code})"}
        return show(request, run, errors, 409)


def _page(
    request: HttpRequest, run: RunHead, errors: erasing.Words, status: int = 200
) -> HttpResponse:
    context = context_of(request, run, errors)
    return render(request, "privacy/inventory.html", context, status=status)


def context_of(request: HttpRequest, run: RunHead, errors: erasing.Words) -> dict[str, Any]:
    """What the form of an erasure shows, and the inventory above it."""
    stored, closed = secrets.inventory(run), erasable.is_closed(run.id)
    at, back = f"/privacy/{run.code}/", f"/runs/{run.code}/?tab=invoice#erase-open"
    press = "Erase" if run.ended or closed else "Stop and erase"
    return {
        "run": run,
        "clear": held.in_clear(run),
        "stored": stored,
        "planned": plans.words_kept(run.id),
        "living": sum(item.erased_ms is None for item in stored),
        "unfinished": erasure.is_unfinished(run.id),
        "certificate": newest_certificate(run.id),
        "kept": erasure.remains(run.id),
        "at_stripe": erasure.remains(run.id)[-1],
        "advice": advice_file(run.id).exists(),
        "retained": retention.of(run.id),
        "closed": closed,
        **erasing.form_of(request, run.code, at, back, errors, press=press),
    }
