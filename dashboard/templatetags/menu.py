"""The entries of the menus, marked where the visitor is."""

import re

from django import template
from django.utils.html import format_html
from django.utils.safestring import SafeString

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
