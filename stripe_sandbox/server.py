"""The HTTP side: one thread a connection, kept alive, on the loopback interface."""

import socketserver
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

from stripe_sandbox.errors import ApiResult, invalid_request
from stripe_sandbox.faults import HangUpError
from stripe_sandbox.sandbox import Request, Response, Sandbox, json_response

HOST = "127.0.0.1"
BODY_BYTES_MAX = 1024 * 1024
"""Of one request; Stripe's own calls stay far below."""
IDLE_S = 120.0
"""After which a silent connection is closed."""
FORM_TYPE = "application/x-www-form-urlencoded"


class SandboxServer(ThreadingHTTPServer):
    """Listens from the moment it exists; ``port`` 0 takes a free one."""

    daemon_threads = True
    block_on_close = False
    request_queue_size = 256

    def __init__(self, port: int, sandbox: Sandbox, *, verbose: bool = False) -> None:
        self.sandbox = sandbox
        self.verbose = verbose
        super().__init__((HOST, port), _Handler)

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self.server_address[1]}"

    def server_bind(self) -> None:
        # HTTPServer asks the resolver for the host's name here, which can take seconds.
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = HOST, self.server_address[1]

    def handle_error(self, request: object, client_address: object) -> None:
        # A client that hangs up is no event; respond() has already caught everything of ours.
        if not isinstance(sys.exc_info()[1], ConnectionError | TimeoutError):
            super().handle_error(request, client_address)  # type: ignore[arg-type]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_version = "stripe-sandbox"
    sys_version = ""
    disable_nagle_algorithm = True
    wbufsize = 64 * 1024
    timeout = IDLE_S
    server: SandboxServer

    def do_GET(self) -> None:
        self._respond()

    def do_POST(self) -> None:
        self._respond()

    def do_DELETE(self) -> None:
        self._respond()

    def do_PUT(self) -> None:
        self._respond()

    def do_PATCH(self) -> None:
        self._respond()

    def _respond(self) -> None:
        body = self._body()
        if body is None:
            return
        target = urlsplit(self.path)
        request = Request(
            method=self.command,
            path=target.path,
            query=target.query,
            body=body,
            authorization=self.headers.get("Authorization"),
            idempotency_key=self.headers.get("Idempotency-Key"),
            stripe_account=self.headers.get("Stripe-Account"),
            origin=self.server.url,
        )
        try:
            self._send(self.server.sandbox.respond(request))
        except HangUpError:
            self.close_connection = True

    def _body(self) -> str | None:
        """Return the body, or answer 4xx, end the connection and return None."""
        length = self.headers.get("Content-Length", "0")
        if "Transfer-Encoding" in self.headers or not length.isdecimal():
            self._refuse(411, "Invalid request: send the length of the body.")
            return None
        if int(length) > BODY_BYTES_MAX:
            self._refuse(413, f"Invalid request: more than {BODY_BYTES_MAX} bytes.")
            return None
        raw = self.rfile.read(int(length))
        kind = self.headers.get("Content-Type", FORM_TYPE).partition(";")[0].strip().lower()
        if raw and kind != FORM_TYPE:
            self._refuse(
                400, f"Invalid request (check that your POST content type is {FORM_TYPE})."
            )
            return None
        if not raw.isascii():
            self._refuse(400, "Invalid request: the parameters are not form-encoded.")
            return None
        return raw.decode("ascii")

    def _refuse(self, status: int, message: str) -> None:
        self.close_connection = True
        body = invalid_request(message).answer().body
        self._send(json_response(ApiResult(status=status, body=body), {"Connection": "close"}))

    def _send(self, response: Response) -> None:
        self.send_response(response.status)
        for name, value in response.headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(response.payload)))
        self.end_headers()
        self.wfile.write(response.payload)
        self.wfile.flush()

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        if self.server.verbose:
            path = urlsplit(self.path).path
            print(f"stripe_sandbox: {self.command} {path} {code}", file=sys.stderr, flush=True)

    def log_error(self, format: str, *args: object) -> None:
        """Say nothing: what the base class logs quotes the request."""
