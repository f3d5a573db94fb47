"""The addresses of the site, from the table that serves them."""

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from django.urls import URLPattern, get_resolver

from dashboard.web.pages import METHODS

BARE = {"theme": "POST", "verifier": "GET"}  # neither belongs to a workspace


class Address(NamedTuple):
    """A page or the target of a form. ``is_link``: it opens as it stands, for every visitor."""

    path: str
    methods: str
    what: str
    is_link: bool


def addresses() -> Iterator[Address]:
    """Every address of the pages, in the order in which they are looked up.

    What it is for is the first sentence of its view, or its name where the view has none.
    """
    patterns = get_resolver("dashboard.urls").url_patterns
    for each in (one for one in patterns if isinstance(one, URLPattern)):
        path, name, view = f"/{each.pattern}", str(each.name), each.callback
        methods = BARE.get(name) or METHODS[view]
        yield Address(
            path=re.sub(r"<\w+:(\w+)>", r"<\1>", path),
            methods=methods,
            what=_said(view) or name.replace("_", " ").capitalize(),
            is_link="<" not in path and methods.startswith("GET"),
        )


def _said(view: Any) -> str:
    """The first sentence of a view's docstring; of a redirect, where it leads."""
    if leads := getattr(view, "view_initkwargs", {}).get("url"):
        return f"Leads to {leads}"
    return re.split(r"(?<=\.)\s", " ".join((view.__doc__ or "").split()))[0]
