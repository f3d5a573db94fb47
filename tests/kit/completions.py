"""A local server that answers a chat completion with what a test tells it to."""

import json
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Answers:
    """What comes back, and what was asked; ``send`` takes over the whole answer."""

    body: bytes = b"{}"
    status: int = 200
    headers: dict[str, str] = field(default_factory=lambda: {"Content-Type": "application/json"})
    send: Callable[[BaseHTTPRequestHandler], None] | None = None
    asked: list[dict[str, Any]] = field(default_factory=list)
    seen: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    url: str = ""

    def says(self, content: Any, **more: Any) -> None:
        """Answer with this content, as a model's words."""
        self.message({"role": "assistant", "content": content}, **more)

    def calls(self, *functions: tuple[str, Any]) -> None:
        """Answer with these tool calls."""
        made = [
            {"id": f"call_{n}", "type": "function", "function": {"name": name, "arguments": args}}
            for n, (name, args) in enumerate(functions)
        ]
        self.message({"role": "assistant", "content": None, "tool_calls": made})

    def message(self, message: Any, **more: Any) -> None:
        """Answer with this message."""
        self.body = json.dumps({"choices": [{"index": 0, "message": message}], **more}).encode()


@contextmanager
def completions(tls: ssl.SSLContext | None = None) -> Iterator[Answers]:
    """The server, for as long as the block lasts; over TLS with this context."""
    answers = Answers()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.do_POST()

        def do_POST(self) -> None:
            answers.seen.append((f"{self.command} {self.path}", dict(self.headers)))
            size = int(self.headers.get("Content-Length", 0))
            answers.asked.append(json.loads(self.rfile.read(size) or b"null"))
            if answers.send is not None:
                answers.send(self)
                return
            self.send_response(answers.status)
            for name, value in {
                **answers.headers,
                "Content-Length": str(len(answers.body)),
            }.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(answers.body)

        def log_message(self, format: str, *args: Any) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    if tls:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    answers.url = f"{'https' if tls else 'http'}://127.0.0.1:{server.server_address[1]}/v1"
    try:
        yield answers
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
