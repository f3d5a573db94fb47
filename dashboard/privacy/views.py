"""What a run holds of people, erasing it, and the certificate."""

from collections.abc import Callable
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.views.decorators.http import require_http_methods, require_safe

from dashboard.templatetags.show import refusal
from dashboard.verdicts import plans
from dashboard.web import broadcast
from dashboard.web.idempotency import once
from dashboard.web.pages import own_run, page, see_other
from pipeline.errors import ErasureRefusedError
from pipeline.privacy import erasure, erasure_log, retention
from pipeline.privacy.certificate import Certificate
from pipeline.privacy.certificate import newest as newest_certificate
from pipeline.queries import personal
from pipeline.queries.runs import RunHead
from pipeline.steps.seal import advice_file


class IncompleteError(Exception):
    """Some place still holds something: there is no certificate, and erasing goes on from here."""

    def __init__(self, made: Certificate) -> None:
        self.text = "; ".join(f"{place}: {outcome}" for place, outcome in made.places.items())
        super().__init__(self.text)


@page
@require_http_methods(["GET", "HEAD", "POST"])
def inventory(request: HttpRequest, code: str) -> HttpResponse:
    """What is stored where (GET); erase it (POST, with the typed confirmation)."""
    run = own_run(request, code)
    if request.method == "POST":
        return erase(request, run, f"/privacy/certificates/{run.code}/", _shown)
    return _shown(request, run)


@page
@require_safe
def erased(request: HttpRequest, code: str) -> HttpResponse:
    """Whether a page that is open shows what is erased by now (200), or not yet (204)."""
    run = own_run(request, code)
    return HttpResponse(status=204) if run.erased_ms is None else HttpResponse("erased")


@page
@require_safe
def certificate(request: HttpRequest, code: str) -> HttpResponse:
    run = own_run(request, code)
    found = _found(run)
    context = {"run": run, "certificate": found, "ground": erasure.REASONS.get(found.reason, "")}
    response = render(request, "privacy/certificate.html", context)
    response["Clear-Site-Data"] = '"cache"'  # page copies in this browser may hold values
    return response


@page
@require_safe
def certificate_json(request: HttpRequest, code: str) -> HttpResponse:
    run = own_run(request, code)
    response = JsonResponse(_found(run).to_json(), json_dumps_params={"indent": 2})
    response["Content-Disposition"] = f'attachment; filename="erasure-{run.code}.json"'
    return response


def erase(
    request: HttpRequest, run: RunHead, there: str, show: Callable[..., HttpResponse]
) -> HttpResponse:
    """Erase the run as the form says, and lead ``there``; what is wrong with it is shown."""
    typed = {"reason": request.POST.get("reason", ""), "confirm": request.POST.get("confirm", "")}
    errors = _errors(run, typed)
    if errors:
        return show(request, run, typed, errors, status=422)
    try:
        return see_other(once(request, there, lambda _: _erased(run, typed["reason"], there)))
    except ErasureRefusedError as refused:
        errors = {"refused": f"{refusal(refused.code)} ({refused.code})"}
        return show(request, run, typed, errors, status=409)
    except IncompleteError as incomplete:
        return show(request, run, typed, {"incomplete": incomplete.text}, status=500)


def _shown(
    request: HttpRequest,
    run: RunHead,
    typed: dict[str, str] | None = None,
    errors: dict[str, str] | None = None,
    *,
    status: int = 200,
) -> HttpResponse:
    context = context_of(run, typed or {}, errors or {})
    return render(request, "privacy/inventory.html", context, status=status)


def _erased(run: RunHead, reason: str, there: str) -> str:
    made = erasure.erase_run(run.id, reason, "visitor")
    broadcast.announce(run.id)
    if made.state != "done":
        raise IncompleteError(made)
    return there


def _errors(run: RunHead, typed: dict[str, str]) -> dict[str, str]:
    errors = {}
    if typed["reason"] not in erasure.REASONS:
        errors["reason"] = "Choose a ground for the erasure."
    if typed["confirm"].strip() != f"ERASE {run.code}":
        errors["confirm"] = f"Type ERASE {run.code} exactly. Nothing was erased."
    return errors


def context_of(run: RunHead, typed: dict[str, str], errors: dict[str, str]) -> dict[str, Any]:
    """What the form of an erasure shows, and the inventory above it."""
    stored = personal.inventory(run)
    return {
        "run": run,
        "stored": stored,
        "planned": plans.words_kept(run.id),
        "living": sum(item.erased_ms is None for item in stored),
        "unfinished": erasure.is_unfinished(run.id),
        "certificate": newest_certificate(run.id),
        "reasons": erasure.REASONS.items(),
        "kept": erasure.kept(run.id),
        "at_stripe": erasure.kept(run.id)[-1],
        "advice": advice_file(run.id).exists(),
        "retained": retention.of(run.id),
        "closed": erasure_log.is_closed(run.id),
        "typed": typed,
        "errors": errors,
    }


def _found(run: RunHead) -> Certificate:
    found = newest_certificate(run.id)
    if found is None:
        raise Http404("nothing of this run was erased")
    return found
