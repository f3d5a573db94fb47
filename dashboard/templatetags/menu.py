"""What every page shows: the entries of the menus, how much waits for a person, open alerts."""

import re
from contextlib import suppress
from typing import Any

from django import template
from django.db import DatabaseError
from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.safestring import SafeString

from dashboard.web.workspace import existing
from engine.queries import agents
from pipeline.queries import stuck_runs
from pipeline.reconcile import differences

register = template.Library()

OF_A_RUN = re.compile(r"^/runs/[^/]+(?=/audit/)")  # a run's audit list belongs to the audit


@register.simple_tag(takes_context=True)
def nav_link(context: template.Context, href: str, name: str, *group: str) -> SafeString:
    """An entry of a menu that leads to ``href``.

    It is the current one under ``href`` and under each address of ``group``: the page itself at
    ``href``, a page within it elsewhere. A page without a request marks none.
    """
    request = context.get("request")
    path = request.path if request is not None else ""
    within = OF_A_RUN.sub("", path).startswith((href, *group))
    current = "page" if path == href else "true" if within else ""
    mark = format_html(' aria-current="{}"', current) if current else ""
    return format_html('<li><a href="{}"{}>{}</a></li>', href, mark, name)


@register.simple_tag(takes_context=True)
def inbox_count(context: template.Context) -> int:
    """How much of the visitor's waits, as the inbox lists it; 0 on a page without a visitor."""
    request = context.get("request")
    return _counted(request) if request is not None else 0


@register.simple_tag(takes_context=True)
def inbox_name(context: template.Context) -> str:
    """The menu's word for the inbox, with how much is in it."""
    waits = inbox_count(context)
    return f"Inbox ({waits})" if waits else "Inbox"


def _counted(request: HttpRequest) -> int:
    """Counted once for a request."""
    if not hasattr(request, "inbox_waits"):
        count = 0
        with suppress(DatabaseError):  # the page of an error is shown without a database, too
            if (log := existing(request)) is not None:
                count = stuck_runs.waiting(log.id) + sum(len(each) for each in agents.waiting(log))
                count += differences.open_count(log)
        request.inbox_waits = count  # type: ignore[attr-defined]
    return int(request.inbox_waits)  # type: ignore[attr-defined]


@register.inclusion_tag("_alerts.html", takes_context=True)
def open_alerts(context: template.Context) -> dict[str, Any]:
    """The newest open alert, and how many more there are; nothing on a page without a visitor."""
    request, found = context.get("request"), list[agents.OpenAlert]()
    if request is not None:
        with suppress(DatabaseError):  # the page of an error is shown without a database, too
            found = agents.alerts(existing(request))
    return {"first": found[0] if found else None, "more": len(found) - 1}
