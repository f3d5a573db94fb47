"""How a refused request is answered: as a page, as fragments for htmx, as one line, as text."""

import re
from collections.abc import Iterable

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from dashboard.web.pages import is_live
from dashboard.web.quotas import Refused

LINE = "X-Arena-Line"  # the header of a request that wants the line under the box alone
FORM = "application/x-www-form-urlencoded"
UNSTORABLE = re.compile("[\0\ud800-\udfff]")
TOKEN = "csrfmiddlewaretoken"  # noqa: S105 - its name: the page draws a new one


def shown(request: HttpRequest, refused: Refused) -> HttpResponse:
    """The refusal in the requested format; what was typed is not lost."""
    response = _answer(request, refused)
    response["Cache-Control"] = "no-store"
    if refused.wait_s:
        response["Retry-After"] = str(refused.wait_s)
    return response


def unstorable(request: HttpRequest, given: Iterable[tuple[str, str]]) -> HttpResponse | None:
    """The refusal of the first part whose text no column takes; None where there is none."""
    bad = next((name for name, text in given if UNSTORABLE.search(text)), None)
    if bad is None:
        return None
    named = UNSTORABLE.sub("\N{REPLACEMENT CHARACTER}", bad)[:80]
    text = f"There is a character in {named} that cannot be stored: NUL, or half of a pair"
    text += " (a surrogate). Nothing was changed. Go back, take it out, and send it again."
    return shown(request, Refused(title="This request cannot be read", text=text, unreadable=True))


def _answer(request: HttpRequest, refused: Refused) -> HttpResponse:
    context = {"refused": refused, "match": request.resolver_match}
    if LINE in request.headers:
        return render(request, "arena/_refused_line.html", context, status=refused.status)
    if is_live(request):
        return render(request, "run/_refused.html", context, status=refused.status)
    if "text/html" not in request.headers.get("Accept", ""):
        text = f"{refused.whole}\n"
        return HttpResponse(text, "text/plain; charset=utf-8", status=refused.status)
    fields = [] if refused.unreadable else _fields(request)
    return render(request, "429.html", {**context, "fields": fields}, status=refused.status)


def _fields(request: HttpRequest) -> list[tuple[str, str]]:
    """What the form had, to be sent again; None of a form with a file, which has to be chosen."""
    if request.content_type != FORM:
        return []
    lists = request.POST.lists()
    return [(name, value) for name, values in lists for value in values if name != TOKEN]
