"""The decorator of every page: headers, the cookie, and 404 for a foreign run."""

import functools
import hashlib
from collections.abc import Callable, Collection
from http import HTTPStatus
from typing import Any, TypeVar
from uuid import UUID

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase, HttpResponseRedirect
from django.shortcuts import render
from django.utils.cache import patch_vary_headers
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from dashboard.web import held, workspace
from engine.queries import runs
from engine.runtime.links import LinkError
from engine.vault import secret_store
from nanovm_core.errors import ProgramError
from pipeline.queries import suppliers

T = TypeVar("T")
View = Callable[..., HttpResponseBase]
METHODS: dict[View, str] = {}  # of each page, as its decorator says
PAGE_DIGITS_MAX = 6


def page(view: View) -> View:
    """A page to read: never cached, and it sets the cookie of a new workspace."""
    return _guarded(require_safe(view), "GET")


def posted(view: View) -> View:
    """The target of a form, with the same promises. A form that is too large is not read."""
    return _guarded(require_POST(view), "POST")


def page_and_form(view: View) -> View:
    """Both at one address."""
    return _guarded(require_http_methods(["GET", "HEAD", "POST"])(view), "GET, POST")


def _guarded(view: View, methods: str) -> View:
    @functools.wraps(view)
    def wrapped(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        response: HttpResponseBase
        length = request.META.get("CONTENT_LENGTH") or "0"
        if length.isdecimal() and int(length) > settings.UPLOAD_SIZE_BYTES_MAX:
            response = render(request, "413.html", status=413)
        else:
            with secret_store.scope():
                response = _answered(view, request, *args, **kwargs)
        if response.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
            response = _not_by_address(request, response, kwargs.get("code", ""))
        response.setdefault("Cache-Control", "no-store")
        patch_vary_headers(response, ("HX-Request", "Cookie"))
        workspace.remember(request, response)
        return response

    METHODS[wrapped] = methods
    return wrapped


def _answered(view: View, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
    """The view's answer; where the operator's policy or a link grants nothing, why."""
    try:
        return view(request, *args, **kwargs)
    except LinkError as error:
        return held.refused(request, error.why)
    except ProgramError as error:
        return render(request, "policy_at_fault.html", {"error": error}, status=503)


def _not_by_address(request: HttpRequest, refused: HttpResponseBase, code: str) -> HttpResponseBase:
    """Where a form leads, opened from the address bar: the way back, with what is allowed."""
    before = f"/runs/{code}/" if code else f"/{request.path.split('/')[1]}/"
    response = render(request, "405.html", {"before": before}, status=refused.status_code)
    response["Allow"] = refused["Allow"]
    return response


def or_404(found: T | None, why: str) -> T:
    """``found``, or a 404 where it is None."""
    if found is None:
        raise Http404(why)
    return found


def own_run(request: HttpRequest, code: str) -> runs.RunHead:
    """The visitor's run of that code, or one that a link shows at this address.

    404 for anyone else's, as for an unknown one.
    """
    found = runs.by_code(workspace.current(request), code.upper())
    found = found or held.run_of(request, code.upper())
    return or_404(found, "no run of that code in your workspace")


def own_invoice_run(request: HttpRequest, code: str) -> runs.RunHead:
    """``own_run`` for what is done to invoices alone: 404 for a foreign agent's call, too."""
    run = own_run(request, code)
    return or_404(None if run.is_call else run, "that run is a call of a foreign agent")


def own_supplier(
    request: HttpRequest, supplier_id: UUID, *, or_company: bool = False
) -> suppliers.SupplierLine:
    """The visitor's supplier; 404 for anyone else's, as for an unknown one.

    The company itself is a supplier only with ``or_company``: it is neither blocked nor erased.
    """
    found = suppliers.line(workspace.existing(request), supplier_id)
    if found is not None and found.is_company and not or_company:
        raise Http404("that is your own company")
    return or_404(found, "no supplier of that id in your workspace")


def is_live(request: HttpRequest) -> bool:
    """Whether htmx asks for fragments, and not the browser for a page."""
    asked = request.headers.get("HX-Request") == "true"
    return asked and request.headers.get("HX-History-Restore-Request") != "true"


def news(request: HttpRequest, html: str) -> HttpResponse:
    """Fragments for a page that polls; nothing (204) where it has these already.

    It brings the mark of what it has, which the answer before bore in ``X-Mark``.
    """
    mark = hashlib.sha256(html.encode()).hexdigest()[:16]
    if request.GET.get("mark") == mark:
        return HttpResponse(status=204)
    response = HttpResponse(html)
    response["X-Mark"] = mark
    return response


def see_other(url: str) -> HttpResponse:
    """Redirect after a POST (303): a reload sends nothing again."""
    return HttpResponseRedirect(url, status=303)


def unknown(label: str, value: str, known: Collection[str]) -> str:
    """The sentence for a filter whose value no row can have; empty for one that is known."""
    if not value or value in known:
        return ""
    choices = ", ".join(each for each in known if each)
    return f"“{value}” is not a value of the filter “{label}”. Choose one of: {choices}."


def page_number(request: HttpRequest) -> tuple[int, str]:
    """The number of the page of a list that is asked for, and the sentence where it is none."""
    text = request.GET.get("page", "")
    is_short = text.isascii() and text.isdecimal() and len(text) <= PAGE_DIGITS_MAX
    number = int(text) if is_short else 0
    return max(1, number), "" if number else not_a_page(text)


def not_a_page(cursor: str) -> str:
    """The sentence for an address whose page is none; empty where nothing was asked for."""
    return f"“{cursor[:40]}” is not a page of this list. Go to its first page." if cursor else ""
