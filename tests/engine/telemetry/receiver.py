"""A collector on a loopback port: takes what it is sent apart, and answers as a test says."""

import gzip
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.trace.v1.trace_pb2 import Span

Answer = Callable[[BaseHTTPRequestHandler], object]


def answered(
    status: int = 200, body: bytes = b"", kind: str = "", length: int = -1, coding: str = "identity"
) -> Answer:
    """An answer of this status and body; ``length``: another one than that of the body is said."""
    named = {"Content-Type": kind or "application/x-protobuf", "Content-Encoding": coding}
    named |= {"Location": "/v1/traces", "Content-Length": str(len(body) if length < 0 else length)}

    def answer(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(status)
        for name, value in named.items():
            handler.send_header(name, value)
        handler.end_headers()
        with suppress(OSError):  # an answer that is too long is not read to its end
            handler.wfile.write(body)
        handler.close_connection = length >= 0

    return answer


def rejecting(count: int, message: str = "") -> bytes:
    """The body of an answer that takes all but ``count`` spans."""
    answer = ExportTraceServiceResponse()
    answer.partial_success.rejected_spans = count
    answer.partial_success.error_message = message
    return bytes(answer.SerializeToString())


def attributes(span: Any) -> dict[str, Any]:
    """The attributes of a span or a resource, as Python's values."""
    found = {each.key: each.value for each in span.attributes}
    return {
        key: [one.string_value for one in value.array_value.values]
        if (kind := value.WhichOneof("value")) == "array_value"
        else getattr(value, str(kind))
        for key, value in found.items()
    }


@dataclass
class Receiver:
    """What came: the requests' raw bytes and sizes, and each span, by its ids."""

    answer: Answer = field(default_factory=answered)
    url: str = ""
    raw: list[bytes] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    resource: dict[str, Any] = field(default_factory=dict)
    spans: dict[tuple[bytes, bytes], bytes] = field(default_factory=dict)
    doubles: int = 0  # of ids that came before with other content

    def take(self, handler: BaseHTTPRequestHandler) -> None:
        """Parse a request by the published definitions, keep it, and answer it."""
        data = handler.rfile.read(int(handler.headers["Content-Length"]))
        self.headers.append({name.lower(): value for name, value in handler.headers.items()})
        if handler.headers.get("Content-Encoding") == "gzip":
            data = gzip.decompress(data)
        self.raw.append(data)
        assert handler.path == "/v1/traces"
        spans = []
        for each in ExportTraceServiceRequest.FromString(data).resource_spans:
            self.resource = attributes(each.resource)
            spans += [span for scope in each.scope_spans for span in scope.spans]
        self.sizes.append(len(spans))
        for span in spans:
            content = span.SerializeToString(deterministic=True)
            before = self.spans.setdefault((span.trace_id, span.span_id), content)
            self.doubles += before != content
        self.answer(handler)

    def parsed(self) -> list[Span]:
        """The spans that came, each once."""
        return [Span.FromString(each) for each in self.spans.values()]


@contextmanager
def receiving() -> Iterator[Receiver]:
    """A receiver that runs while the block does."""
    receiver = Receiver()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        timeout = 30

        def do_POST(self) -> None:
            receiver.take(self)

        def log_message(self, *_: object) -> None:
            """Nothing: the test says what it expects."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    receiver.url = f"http://127.0.0.1:{server.server_port}"
    Thread(target=server.serve_forever, daemon=True, args=(0.02,)).start()
    try:
        yield receiver
    finally:
        server.shutdown()
        server.server_close()
