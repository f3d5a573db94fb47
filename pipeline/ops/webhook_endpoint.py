"""Registering this application's webhook endpoint at the local counterpart of Stripe."""

import httpx2

from engine.ops.processes import ProcessError

PATH = "/webhooks/stripe/"
ENDPOINTS = "/v1/webhook_endpoints"
ANSWER_SECONDS_MAX = 10


def registered(api_base: str, key: str, here: str) -> str:
    """Register ``here`` in the place of what earlier starts registered; the signing secret.

    It asks without Stripe's client library, which is slow to load.

    Raises:
        ProcessError: the counterpart refused.
    """
    asked = {"url": f"{here}{PATH}", "enabled_events[]": "*"}
    try:
        with httpx2.Client(
            base_url=api_base,
            auth=(key, ""),
            timeout=ANSWER_SECONDS_MAX,
            trust_env=False,
            event_hooks={"response": [httpx2.Response.raise_for_status]},
        ) as counterpart:
            for endpoint in counterpart.get(ENDPOINTS, params={"limit": 100}).json()["data"]:
                if str(endpoint["url"]).endswith(PATH):
                    counterpart.delete(f"{ENDPOINTS}/{endpoint['id']}")
            return str(counterpart.post(ENDPOINTS, data=asked).json()["secret"])
    except (httpx2.HTTPError, KeyError, ValueError) as error:
        why = f"took no webhook endpoint ({type(error).__name__}): see its log, and start again."
        raise ProcessError(f"The local Stripe counterpart {why}") from error
