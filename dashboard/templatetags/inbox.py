"""How much waits for a person: for the menu and the title of every page."""

from contextlib import suppress

from django import template
from django.db import DatabaseError
from django.http import HttpRequest

from dashboard.web.workspace import existing
from engine.queries import agents
from pipeline.queries import stuck_runs

register = template.Library()


@register.simple_tag(takes_context=True)
def inbox_count(context: template.Context) -> int:
    """How many runs, agents and alerts of the visitor wait; 0 on a page without a visitor."""
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
                stopped, alerts = agents.waiting(log)
                count = stuck_runs.waiting(log.id) + len(stopped) + len(alerts)
        request.inbox_waits = count  # type: ignore[attr-defined]
    return int(request.inbox_waits)  # type: ignore[attr-defined]
