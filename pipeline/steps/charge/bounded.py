"""The HTTP client under Stripe's SDK: no answer is read without an end."""

import time
from http.client import HTTPException
from typing import Any

import stripe
from urllib3.exceptions import HTTPError

from engine.ops import timings

ANSWER_BYTES_MAX = 8_000_000  # a page of a hundred payments has some 500 kB
ANSWER_S_MAX = 20


class MeasuredClient(stripe.RequestsClient):
    """Stripe's client over HTTP: requests are timed where a run is, and answers bounded."""

    @timings.spent(timings.STRIPE)
    def request(self, method: str, url: str, headers: Any, post_data: Any = None, **_: Any) -> Any:
        """Send a request, once. An answer that is compressed, too long or too slow fails."""
        plain = {**(headers or {}), "Accept-Encoding": "identity"}
        until = time.monotonic() + ANSWER_S_MAX
        raw, status, named = self.request_stream(method, url, plain, post_data)
        body = b""
        try:
            while part := raw.read1(65_536, decode_content=False):
                body += part
                if len(body) > ANSWER_BYTES_MAX or time.monotonic() > until:
                    raise HTTPError("the answer is too long or too slow")
            if named.get("Content-Encoding", "identity") != "identity":
                raise HTTPError("the answer is compressed")
        except (HTTPError, OSError, HTTPException) as error:
            raw.close()
            raise stripe.APIConnectionError("Stripe's answer could not be read.") from error  # type: ignore[no-untyped-call]
        return body, status, named
