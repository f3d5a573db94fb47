"""Erasing a run or a supplier whose code was typed, and the certificate of it."""

from collections.abc import Callable, Mapping
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render

from dashboard.web.downloads import attached
from dashboard.web.idempotency import once
from dashboard.web.pages import see_other
from engine.models import Workspace
from engine.privacy.certificate import REASONS, Certificate
from engine.queries import evidence

Words = dict[str, str]


class IncompleteError(Exception):
    """Some place still holds data: there is no certificate, and erasing can be continued."""


def erase(
    request: HttpRequest,
    code: str,
    there: str,
    act: Callable[[str], Certificate],
    show: Callable[[Words, int], HttpResponse],
) -> HttpResponse:
    """Erase as the form says, and lead ``there``; what is wrong with it is shown."""
    typed = typed_of(request)
    errors = errors_of(code, typed)
    if errors:
        return show(errors, 422)
    try:
        return carried_out(request, there, lambda: act(typed["reason"]))
    except IncompleteError as incomplete:
        return show({"incomplete": str(incomplete)}, 500)


def carried_out(
    request: HttpRequest, there: str, act: Callable[[], Certificate], of: Workspace | None = None
) -> HttpResponse:
    """Erase, once for this form's key, and lead ``there``. ``of``: as in ``once``.

    Raises:
        IncompleteError: some place still holds data, named with the number of those that do not.
    """

    def done(_: Workspace) -> str:
        made = act()
        if made.state != "done":
            left = [f"{at}: {how}" for at, how in made.places.items() if isinstance(how, str)]
            raise IncompleteError(f"{made.progress}. Left: {'; '.join(left)}")
        return there

    return see_other(once(request, there, done, of))


def typed_of(request: HttpRequest) -> Words:
    """What was typed into the form."""
    return {name: request.POST.get(name, "") for name in ("reason", "confirm")}


def form_of(
    request: HttpRequest, code: str, at: str, back: str, errors: Words, **more: Any
) -> dict[str, Any]:
    """What the form of an erasure shows: of whom, where it goes, and where *Cancel* leads."""
    given = {"code": code, "at": at, "back": back, "typed": typed_of(request), "errors": errors}
    return {"press": "Erase", "reasons": REASONS.items(), **given, **more}


def certificate(
    request: HttpRequest, made: Certificate | None, at: str, name: str, context: Mapping[str, Any]
) -> HttpResponse:
    """The certificate as a page, or as JSON where the address ends so; 404 for no erasure.

    ``at``: where erasing goes on. ``name``: of the JSON file.
    """
    if made is None:
        raise Http404("nothing of this was erased")
    if request.path.endswith(".json"):
        json = JsonResponse(made.to_json(), json_dumps_params={"indent": 2})
        return attached(json, f"{name}.json")
    there = {"at": at, "json": f"{request.path.rstrip('/')}.json"}
    given = {"certificate": made, **there, **_proof(made)}
    response = render(request, "privacy/certificate.html", {**context, **given})
    response["Clear-Site-Data"] = '"cache"'  # page copies in this browser may hold values
    return response


def _proof(made: Certificate) -> dict[str, object]:
    """The checkpoint that covers the certificate's event, if any does, and where its receipt is."""
    log = Workspace.objects.filter(origin=made.log).first()
    own = made.of == "run" and made.chain == made.subject
    at = f"/runs/{made.code}" if own else f"/audit/{made.log.rpartition('/')[2]}"
    signed = evidence.covering(log, made.seq) if log else None
    return {"signed": signed, "receipt": f"{at}/receipt.json?event={made.n + 1}"}


def errors_of(code: str, typed: Words) -> Words:
    """What is wrong with the form, by its field; nothing where it may be done."""
    errors = {}
    if typed["reason"] not in REASONS:
        errors["reason"] = "Choose a ground for the erasure."
    if typed["confirm"].strip() != f"ERASE {code}":
        errors["confirm"] = f"Type ERASE {code} exactly. Nothing was erased."
    return errors
