"""The line that tells of open alerts, on every page of a workspace that has some."""

from typing import Any

from django import template

from dashboard.web.workspace import existing
from engine.queries import agents

register = template.Library()


@register.inclusion_tag("_alerts.html", takes_context=True)
def open_alerts(context: template.Context) -> dict[str, Any]:
    """The newest open alert, and how many more there are; nothing on a page without a visitor."""
    request = context.get("request")
    log = existing(request) if request is not None else None
    found = agents.alerts(log) if log else []
    return {"first": found[0][1] if found else None, "more": len(found) - 1}
