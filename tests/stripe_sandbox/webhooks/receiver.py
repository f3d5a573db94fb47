"""An endpoint for events on loopback: it keeps what arrives and answers as it is told."""

import contextlib
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from queue import SimpleQueue

import stripe

ARRIVES_S_MAX = 20.0


@dataclass(slots=True, kw_only=True)
class Receiver:
    """``statuses`` are answered in turn, then 200; 0 hangs until the end."""

    url: str = ""
    statuses: list[int] = field(default_factory=list)
    arrived: SimpleQueue[tuple[str, bytes]] = field(default_factory=SimpleQueue)
    over: threading.Event = field(default_factory=threading.Event)

    def event(self, secret: str) -> stripe.Event:
        """The next event to arrive; the SDK has verified its signature."""
        signed, body = self.arrived.get(timeout=ARRIVES_S_MAX)
        return stripe.Webhook.construct_event(body, signed, secret)  # type: ignore[no-any-return]


@contextlib.contextmanager
def listening() -> Iterator[Receiver]:
    """A receiver on a free port."""
    receiver = Receiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            status = receiver.statuses.pop(0) if receiver.statuses else 200
            receiver.arrived.put((self.headers["Stripe-Signature"], body))
            if status == 0:
                receiver.over.wait(ARRIVES_S_MAX)
            else:
                self.send_response(status)
                self.send_header("Location", receiver.url)
                self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        receiver.url = f"http://127.0.0.1:{server.server_port}/hook?of=test"
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield receiver
        receiver.over.set()
        server.shutdown()
        thread.join()
