"""Registering this application's webhook endpoint at the local counterpart of Stripe."""

import base64
import json
from collections.abc import Mapping
from typing import Any
from urllib.error import URLError
from urllib.parse import urlencode
from urllib.request import Request, urlopen

from engine.ops.processes import ProcessError

PATH = "/webhooks/stripe/"
ENDPOINTS = "/v1/webhook_endpoints"
ANSWER_SECONDS_MAX = 10


def registered(api_base: str, key: str, here: str) -> str:
    """Register ``here`` in the place of what earlier starts registered; the signing secret.

    Raises:
        ProcessError: the counterpart refused.
    """
    try:
        for endpoint in _sent("GET", api_base, key, f"{ENDPOINTS}?limit=100")["data"]:
            if str(endpoint["url"]).endswith(PATH):
                _sent("DELETE", api_base, key, f"{ENDPOINTS}/{endpoint['id']}")
        asked = {"url": f"{here}{PATH}", "enabled_events[]": "*"}
        return str(_sent("POST", api_base, key, ENDPOINTS, asked)["secret"])
    except (URLError, OSError, KeyError, ValueError) as error:
        raise ProcessError(
            f"The local Stripe counterpart took no webhook endpoint ({type(error).__name__}): "
            "see its log, and start again."
        ) from error


def _sent(
    method: str, api_base: str, key: str, path: str, form: Mapping[str, str] | None = None
) -> Any:
    """Ask the counterpart, which is on this machine; its client library is slow to load."""
    headers = {"Authorization": "Basic " + base64.b64encode(f"{key}:".encode()).decode()}
    body = urlencode(form).encode() if form else None
    request = Request(f"{api_base}{path}", body, headers, method=method)  # noqa: S310
    with urlopen(request, timeout=ANSWER_SECONDS_MAX) as answer:  # noqa: S310
        return json.load(answer)
