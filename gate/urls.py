"""The addresses of the gate."""

from collections.abc import Callable
from importlib import import_module
from typing import Any

from asgiref.sync import sync_to_async
from django.http import HttpRequest, HttpResponse
from django.urls import URLPattern, path
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_http_methods

from gate.doors import http


def door(address: str, view: Callable[..., Any], *methods: str) -> URLPattern:
    """An address for machines: their token says who asks, so no cookie and no form counts."""
    return path(address, csrf_exempt(require_http_methods(methods)(view)), name=view.__name__)


async def mcp(request: HttpRequest) -> HttpResponse:
    """The MCP door, whose library takes a second to load: in a thread, where somebody asks."""
    door = await sync_to_async(import_module)("gate.doors.mcp")
    answer: HttpResponse = await door.serve(request)
    return answer


app_name = "gate"
urlpatterns = [
    door("v1/calls", http.call, "POST"),
    door("v1/calls/<path:name>", http.made, "GET", "POST"),
    door("v1/tools", http.tools, "GET"),
    door("v1/openapi.json", http.description, "GET"),
    door("mcp", mcp, "POST"),
    door("v1/key", http.key, "GET"),
]
