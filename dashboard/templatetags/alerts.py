"""The line that tells of open alerts, on every page: a workspace's own, and those of all."""

from contextlib import suppress
from typing import Any

from django import template
from django.db import DatabaseError

from dashboard.web.workspace import existing
from engine.queries import agents
from engine.queries.agents import OpenAlert

register = template.Library()


@register.inclusion_tag("_alerts.html", takes_context=True)
def open_alerts(context: template.Context) -> dict[str, Any]:
    """The newest open alert, and how many more there are; nothing on a page without a visitor."""
    request, found = context.get("request"), list[OpenAlert]()
    if request is not None:
        with suppress(DatabaseError):  # the page of an error is shown without a database, too
            found = agents.alerts(existing(request))
    return {"first": found[0] if found else None, "more": len(found) - 1}
