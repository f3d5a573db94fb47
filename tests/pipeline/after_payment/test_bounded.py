"""What is read of Stripe's answers: plain, of a bounded size, within a bounded time."""

import gzip
import json
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, HTTPServer
from itertools import repeat
from threading import Thread
from time import sleep
from typing import Any

import pytest
import stripe

from pipeline.steps.charge import bounded, gateway
from tests.pipeline.steps.test_charge import payment


@contextmanager
def answering(body: Iterator[bytes], **headers: str) -> Iterator[stripe.StripeClient]:
    """A client of a far side that gives one answer, which ends when the connection does."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            for name, text in headers.items():
                self.send_header(name.replace("_", "-"), text)
            self.end_headers()
            with suppress(OSError):
                for part in body:
                    self.wfile.write(part)

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield gateway.client("sk_test_x", f"http://127.0.0.1:{server.server_port}", 5)
        server.shutdown()


def dripping() -> Iterator[bytes]:
    for _ in range(100):
        sleep(0.05)
        yield b" "


BOMB = gzip.compress(b'{"object": "payment_intent", "id": "' + b" " * 9_000_000 + b'"}')


@pytest.mark.parametrize(
    ("body", "headers"),
    [
        (iter([BOMB]), {"Content_Encoding": "gzip"}),
        (repeat(b" " * 65_536, 140), {}),
        (dripping(), {}),
    ],
    ids=["compressed", "long", "slow"],
)
def test_answer_that_is_compressed_long_or_slow_is_not_read(
    monkeypatch: pytest.MonkeyPatch, body: Iterator[bytes], headers: dict[str, str]
) -> None:
    monkeypatch.setattr(bounded, "ANSWER_S_MAX", 3)
    with answering(body, **headers) as client, pytest.raises(stripe.APIConnectionError):
        client.v1.payment_intents.retrieve("pi_1")


def test_answer_of_the_usual_size_is_read_whole() -> None:
    text = json.dumps(payment(padding="x" * 500_000)).encode()
    with answering(iter([text])) as client:
        found: Any = client.v1.payment_intents.retrieve("pi_1")
    assert (found.id, len(found.padding)) == ("pi_3fake", 500_000)
