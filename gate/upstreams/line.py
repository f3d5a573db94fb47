"""The connection to an upstream: bounded, direct, and sure of whether the call has left."""

import json
from collections.abc import AsyncIterator
from functools import cache
from ssl import SSLContext

import httpx2

from engine.errors import EffectError, NotSentError, OutcomeUnknownError, PermanentError
from gate.upstreams.listed import Upstream

BODY_BYTES_MAX = 1 << 20  # of one answer; a result may have a sixteenth
RESULT_BYTES_MAX = 65_536
NO_ANSWER, UNREADABLE, FAILED = "GAT-009", "GAT-012", "GAT-021"
KEY = "Idempotency-Key"
# What says that a call was not taken; other redirects may follow what was done (RFC 9110 15.4.4).
NOT_TAKEN = {307, 308, 400, 401, 403, 404, 405, 406, 410, 413, 415, 422}
TOO_BUSY = 429


@cache
def _roots() -> SSLContext:
    """What certificates are checked against; to read them takes longer than a call."""
    return httpx2.create_ssl_context(trust_env=False)


class Line(httpx2.AsyncHTTPTransport):
    """A transport without proxy, retries or unpacking, which remembers what became of the call.

    ``sent``: the call may have arrived. ``status``: of the answer to the call, or to the newest
    question before it; 0 while there is none.
    """

    def __init__(self, upstream: Upstream, key: str = "") -> None:
        self.upstream, self.headers, self.key = upstream, upstream.headers, key
        self.sent, self.too_large, self.status = False, False, 0
        self.lost = f"gave no answer in {upstream.timeout_ms / 1000:g} s"
        super().__init__(_roots(), trust_env=False)

    def client(self) -> httpx2.AsyncClient:
        """A client over this line; redirects, which the MCP library follows, are not followed."""
        seconds = self.upstream.timeout_ms / 1000
        return httpx2.AsyncClient(
            transport=self,
            headers=self.headers,
            timeout=httpx2.Timeout(seconds, connect=seconds / 2),  # it is known that none came
            trust_env=False,
            follow_redirects=False,
            max_redirects=0,
        )

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request; that of the call bears the effect's key."""
        request.headers["Accept-Encoding"] = "identity"
        is_call = self._is_call(request)
        counts = request.method == "POST" and (is_call or not self.sent)
        if is_call:
            request.headers[KEY] = self.key
            self.sent = True
        self.status = 0 if counts else self.status
        try:
            response = await super().handle_async_request(request)
        except (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout) as error:
            self.sent = self.sent and not is_call
            unsafe = "CERTIFICATE_VERIFY_FAILED" in str(error)
            self.lost = "has no valid certificate" if unsafe else "cannot be reached"
            raise
        except (httpx2.NetworkError, httpx2.RemoteProtocolError):
            self.lost = "closed the connection"
            raise
        self.status = response.status_code if counts else self.status
        if response.headers.get("Content-Encoding", "identity") != "identity":
            await response.aclose()
            raise httpx2.DecodingError("a packed answer", request=request)
        return httpx2.Response(
            response.status_code,
            headers=response.headers,
            stream=_Bounded(self, response.stream),
            extensions=response.extensions,
        )

    def _is_call(self, request: httpx2.Request) -> bool:
        if request.method != "POST" or self.upstream.kind != "mcp":
            return request.method == "POST"
        return bool(json.loads(request.content).get("method") == "tools/call")

    def fault(self, is_refused: bool = False) -> EffectError:
        """Why there is no result: known to have done nothing, or unknown.

        ``is_refused``: the upstream's own words say that it took no call.
        """
        said = f"answered HTTP {self.status}" if self.status else self.lost
        if self.status == TOO_BUSY:
            return NotSentError(NO_ANSWER, "The upstream is too busy (HTTP 429).")
        is_moved = 300 <= self.status < 400 and not self.sent
        if self.status in NOT_TAKEN or is_refused or is_moved:
            said = "answered that it takes no such call" if is_refused else said
            return PermanentError(FAILED, f"The upstream did not take the call: it {said}.")
        is_read = not self.too_large and not 200 <= self.status < 300
        if not self.sent:
            said = said if is_read else "lists no tools that can be read"
            return NotSentError(NO_ANSWER, f"The upstream {said}; nothing was sent.")
        if not is_read:
            text = "The upstream was called, and its answer is too large or not valid."
            return OutcomeUnknownError(UNREADABLE, f"{text} Look there, then decide.")
        text = f"The upstream was called and {said}: it may have acted."
        return OutcomeUnknownError(NO_ANSWER, f"{text} Look there, then decide.")


class _Bounded(httpx2.AsyncByteStream):
    def __init__(self, line: Line, stream: object) -> None:
        assert isinstance(stream, httpx2.AsyncByteStream)  # noqa: S101 - as an async transport's is
        self.line, self.stream = line, stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        async for part in self.stream:
            size += len(part)
            if size > BODY_BYTES_MAX:
                self.line.too_large = True
                raise httpx2.ReadError("an answer is too large")
            yield part

    async def aclose(self) -> None:
        await self.stream.aclose()
