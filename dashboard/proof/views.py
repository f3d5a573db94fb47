"""Verification in the visitor's browser, and the same as one file to keep."""

import re
from base64 import b64encode
from functools import cache
from hashlib import sha256
from pathlib import Path

from django.contrib.staticfiles import finders
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.template.loader import render_to_string

from dashboard.web import workspace
from dashboard.web.downloads import attached
from dashboard.web.pages import page
from engine.evidence import published

TABS = (("browser", "In this browser"), ("offline", "Offline file"), ("command", "Command line"))
PARTS = ("format", "proofs", "zip", "chains", "walk", "files", "verify", "page")
MODULES = ("syntax", *(f"verify/{name}" for name in PARTS))  # each after those it imports
LINKS = re.compile(r"^import .*?;\n|^export (?=\w)", re.MULTILINE | re.DOTALL)
OFFLINE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Verify offline · nanovm</title>
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; connect-src 'none'; \
style-src '{}'; script-src '{}'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<style>{}</style></head>
<body><main><h1>Verify offline</h1>{}</main><script type="module">{}</script></body></html>
"""


@page
def verify(request: HttpRequest) -> HttpResponse:
    """The three ways to verify a file, which comes to no view."""
    mine, asked = workspace.existing(request), request.GET.get("tab", "")
    key = published.verifier(mine.origin) if mine else None
    context = {
        "tabs": TABS,
        "tab": asked if asked in dict(TABS) else TABS[0][0],
        "vkey": key.vkey if key else "",
        "sha256": sha256(_offline().encode()).hexdigest(),
    }
    return render(request, "proof/verify.html", context)


@page
def offline(_request: HttpRequest) -> HttpResponse:
    """The check as one file, whose own policy forbids every connection."""
    return attached(HttpResponse(_offline()), "offline.html")


@cache
def _offline() -> str:
    script = "".join(LINKS.sub("", _source(f"js/{name}.js")) for name in MODULES)
    style = "".join(_source(f"css/{name}.css") for name in ("tokens", "base", "components"))
    digests = (sha256(text.encode()).digest() for text in (style, script))
    allowed = (f"sha256-{b64encode(each).decode()}" for each in digests)
    return OFFLINE.format(*allowed, style, render_to_string("proof/_checker.html"), script)


def _source(name: str) -> str:
    return Path(str(finders.find(name))).read_text(encoding="utf-8")
