"""One request from its authentication to its answer."""

import base64
import binascii
import json
import sys
import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from stripe_sandbox import API_VERSION, authentication, idempotency
from stripe_sandbox.api import endpoint_for
from stripe_sandbox.context import Context
from stripe_sandbox.errors import (
    ApiError,
    ApiResult,
    invalid_api_key,
    masked,
    no_api_key,
    server_error,
    unrecognized_url,
)
from stripe_sandbox.faults import NO_FAULT, PLACE, Fault, Faults, HangUpError
from stripe_sandbox.forms import parse_form
from stripe_sandbox.idempotency import KeysInUse, Post
from stripe_sandbox.identifiers import request_id
from stripe_sandbox.resources.accounts import no_such_account
from stripe_sandbox.store import Account, Store


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What came over the wire; ``origin`` is the address at which it came in."""

    method: str
    path: str
    query: str
    body: str
    authorization: str | None
    idempotency_key: str | None
    stripe_account: str | None
    origin: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Response:
    """What goes back."""

    status: int
    payload: bytes
    headers: Mapping[str, str]


def json_response(answer: ApiResult, headers: Mapping[str, str]) -> Response:
    """An answer as the API sends it."""
    payload = (json.dumps(answer.body, indent=2) + "\n").encode("ascii")
    headers = {"Content-Type": "application/json", **headers}
    return Response(status=answer.status, payload=payload, headers=headers)


class Sandbox:
    """Answers requests as Stripe does, for the accounts whose keys it was given."""

    def __init__(
        self,
        store: Store,
        accounts: Mapping[str, str],
        clock: Callable[[], float] = time.time,
        faults: Faults | None = None,
        changed: Callable[[], None] = lambda: None,
        *,
        has_connect: bool = True,
    ) -> None:
        """``accounts`` maps secret keys to account names; ``clock`` returns Unix seconds.

        Without ``faults`` no request can configure any. ``changed`` is called after each
        request that may have changed the records. Without ``has_connect`` no account can be made.
        """
        self._store = store
        self._accounts = dict(accounts)
        self._clock = clock
        self._faults = faults
        self._changed = changed
        self._has_connect = has_connect
        self._keys = KeysInUse()

    def respond(self, request: Request) -> Response:
        """Answer one request; a defect of ours is a 500 and a trace on stderr.

        Raises:
            HangUpError: where it was told to, and nothing else.
        """
        reply = _Reply()
        address = authentication.ADDRESS.fullmatch(request.path)
        try:
            if address is not None:
                return self._page(request, **address.groupdict())
            return reply.made(self._answer(request, reply))
        except ApiError as error:
            if error.status == 401:
                reply.headers["WWW-Authenticate"] = 'Basic realm="Stripe"'
            return reply.made(error.answer())
        except HangUpError:
            raise
        except Exception:  # noqa: BLE001 - the caller gets an answer, the operator a trace
            _trace()
            return reply.made(server_error().answer())
        finally:
            if request.method != "GET":
                self._changed()

    def _answer(self, request: Request, reply: "_Reply") -> ApiResult:
        if request.path == "/healthz" and request.method == "GET":
            self._store.rows("SELECT 1", ())
            return ApiResult(status=200, body={"ok": True})
        if self._faults is not None and request.path == PLACE:
            return self._faults.configure(request.method, parse_form(request.body))
        if not request.path.startswith(("/v1/", "/counterpart/")):
            raise unrecognized_url(request.method, request.path)
        context = self._context(request, reply)
        if request.method == "POST":
            return self._post(request, context, reply)
        prepare, object_id = endpoint_for(request.method, request.path)
        execution = prepare(object_id, parse_form(request.query))
        if request.method == "GET":
            return execution(context)
        with self._store.transaction():
            return execution(context)

    def _post(self, request: Request, context: Context, reply: "_Reply") -> ApiResult:
        prepare, object_id = endpoint_for("POST", request.path)
        form = parse_form("&".join(filter(None, (request.query, request.body))))
        call = Post(
            method="POST",
            path=request.path,
            form=form,
            request_id=reply.request_id,
            key=request.idempotency_key or None,
        )

        def executed(fault: Fault) -> ApiResult:
            execution = prepare(object_id, form)  # refuses here: nothing begun, nothing kept
            deed = fault.around(lambda: execution(context))
            answer = idempotency.execute(context.account, call, deed, self._clock(), _trace)
            fault.after()
            return answer

        if call.key is None:
            return executed(NO_FAULT)
        idempotency.check_key(call.key)
        reply.headers |= {"Idempotency-Key": call.key, "Original-Request": reply.request_id}
        with self._keys.held(context.account.name, call.key):
            fault = self._faults.take("POST", request.path) if self._faults else NO_FAULT
            fault.before()
            kept = idempotency.replayed(context.account, call, self._clock())
            if kept is None:
                return executed(fault)
        reply.headers |= {"Idempotent-Replayed": "true", "Original-Request": kept.request_id}
        return kept.answer

    def _context(self, request: Request, reply: "_Reply") -> Context:
        """Whose records the request is about: the key's, or those of its connected account."""
        platform = Account(self._store, self._account_named(request.authorization))
        context = Context(
            account=platform,
            platform=platform,
            key=masked(_presented_key(request.authorization)),
            now=int(self._clock()),
            url=request.origin,
            request_id=reply.request_id,
            idempotency_key=request.idempotency_key or None,
            has_connect=self._has_connect,
        )
        name = request.stripe_account
        if name in (None, "", platform.name):
            return context
        if platform.find("account", str(name)) is None:
            raise no_such_account(context, str(name))
        return context.acting_for(str(name))

    def _page(self, request: Request, account: str, intent: str, source: str) -> Response:
        """Answer a browser at the page of an authentication, which asks for no key."""
        owner = Account(self._store, account)
        context = Context(
            account=owner, platform=owner, key="", now=int(self._clock()), url=request.origin
        )
        with self._store.transaction():
            found = owner.find("payment_intent", intent)
            if request.method == "POST":
                page = authentication.finish(context, found, source, request.body)
            else:
                page = authentication.page(found, source)
        return Response(
            status=page.status,
            payload=page.html.encode(),
            headers={
                "Content-Type": "text/html; charset=utf-8",
                "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
                **page.headers,
            },
        )

    def _account_named(self, authorization: str | None) -> str:
        key = _presented_key(authorization)
        if not key:
            raise no_api_key()
        if key not in self._accounts:
            raise invalid_api_key(key)
        return self._accounts[key]


@dataclass(slots=True)
class _Reply:
    """The headers of one response, as they come together."""

    request_id: str = field(default_factory=request_id)
    headers: dict[str, str] = field(default_factory=dict)

    def made(self, answer: ApiResult) -> Response:
        headers = {
            "Cache-Control": "no-cache, no-store",
            "Request-Id": self.request_id,
            "Stripe-Version": API_VERSION,
            **self.headers,
        }
        if answer.status == 409:
            headers["Stripe-Should-Retry"] = "true"
        elif answer.status >= 500:
            headers["Stripe-Should-Retry"] = "false"
        return json_response(answer, headers)


def _presented_key(authorization: str | None) -> str:
    """Return the key of a Bearer header or the user of a Basic one; "" where there is none."""
    scheme, _, rest = (authorization or "").partition(" ")
    rest = rest.strip()
    if scheme.lower() == "bearer":
        return rest
    if scheme.lower() != "basic":
        return ""
    try:
        return base64.b64decode(rest, validate=True).decode("utf-8").partition(":")[0]
    except (binascii.Error, UnicodeDecodeError):
        return ""


def _trace() -> None:
    """Write where the exception at hand came from, without its message: it may quote a value."""
    kind, _, place = sys.exc_info()
    name = kind.__name__ if kind else "no exception"
    print(f"stripe_sandbox: {name} at\n{''.join(traceback.format_tb(place))}", file=sys.stderr)
