"""The line that tells of open alerts, on every page: a workspace's own, and those of all."""

from typing import Any

from django import template

from dashboard.web.workspace import existing
from engine.queries import agents

register = template.Library()


@register.inclusion_tag("_alerts.html", takes_context=True)
def open_alerts(context: template.Context) -> dict[str, Any]:
    """The newest open alert, and how many more there are; nothing on a page without a visitor."""
    request = context.get("request")
    found = agents.alerts(existing(request)) if request is not None else []
    return {"first": found[0] if found else None, "more": len(found) - 1}
