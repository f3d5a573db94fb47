"""The two doors: HTTP requests as Stripe's reference writes them, and Stripe's official SDK."""

import base64
import contextlib
import http.client
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast
from urllib.parse import quote_plus, urlsplit

import stripe

INTENTS = "/v1/payment_intents"
FORM = "application/x-www-form-urlencoded"
ANSWER_SECONDS_MAX = 15.0

Params = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """One HTTP answer; header names are in lower case."""

    status: int
    headers: Mapping[str, str]
    raw: bytes

    @property
    def body(self) -> Any:
        """The decoded JSON body."""
        return json.loads(self.raw)

    @property
    def replayed(self) -> bool:
        """Whether the server says that it did not execute this request again."""
        return self.headers.get("idempotent-replayed") == "true"


Check = Callable[[str, Answer], None]


def no_check(_path: str, _answer: Answer) -> None:
    """Accept every answer: used where the published shapes are not at hand."""


def encoded(params: Params) -> str:
    """Form-encode with brackets: ``metadata[run]=x``, ``payment_method_types[]=card``."""
    return "&".join(f"{quote_plus(name)}={quote_plus(value)}" for name, value in _pairs(params, ""))


def _pairs(params: Params, prefix: str) -> Iterator[tuple[str, str]]:
    for name, value in params.items():
        path = f"{prefix}[{name}]" if prefix else name
        if isinstance(value, Mapping):
            yield from _pairs(value, path)
        elif isinstance(value, list):
            yield from ((f"{path}[]", _text(item)) for item in value)
        else:
            yield path, _text(value)


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Door:
    """A client of one account that speaks plain HTTP and checks the shape of every answer."""

    url: str
    key: str
    check: Check = field(default=no_check)

    def get(self, path: str, params: Params | None = None, **headers: str) -> Answer:
        """Send a GET with ``params`` in the query string."""
        target = f"{path}?{encoded(params)}" if params else path
        return self.send("GET", target, headers=self._headers(headers))

    def post(self, path: str, params: Params | None = None, *, key: str | None = None) -> Answer:
        """Send a POST with ``params`` form-encoded, under an idempotency key where one is given."""
        headers = self._headers({"Content-Type": FORM})
        if key is not None:
            headers["Idempotency-Key"] = key
        return self.send("POST", path, body=encoded(params or {}).encode(), headers=headers)

    def send(
        self, method: str, target: str, *, headers: Mapping[str, str], body: bytes | None = None
    ) -> Answer:
        """Send exactly this and return the answer, once its shape has been checked."""
        with contextlib.closing(self._connection()) as connection:
            connection.request(method, target, body=body, headers=dict(headers))
            return self._answer(connection, target)

    def volley(self, posts: Sequence[tuple[str, Params, str]]) -> list[Answer]:
        """Let POSTs (path, parameters, key) arrive together, each on a connection of its own.

        Everything but the last byte of each body is sent first, so that the server has one
        thread ready for each and the last bytes set them off within a millisecond.
        """
        with contextlib.ExitStack() as stack:
            ready = []
            for path, params, key in posts:
                connection = stack.enter_context(contextlib.closing(self._connection()))
                body = encoded(params).encode()
                connection.putrequest("POST", path)
                headers = {"Content-Type": FORM, "Idempotency-Key": key}
                headers["Content-Length"] = str(len(body))
                for name, value in self._headers(headers).items():
                    connection.putheader(name, value)
                connection.endheaders(body[:-1])
                ready.append((connection, body[-1:], path))
            for connection, last, _ in ready:
                connection.send(last)
            return [self._answer(connection, path) for connection, _, path in ready]

    def _connection(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection(urlsplit(self.url).netloc, timeout=ANSWER_SECONDS_MAX)

    def _answer(self, connection: http.client.HTTPConnection, target: str) -> Answer:
        response = connection.getresponse()
        names = {name.lower(): value for name, value in response.getheaders()}
        answer = Answer(status=response.status, headers=names, raw=response.read())
        self.check(target.partition("?")[0], answer)
        return answer

    def basic(self) -> str:
        """The Authorization header of HTTP Basic: the key as user name, no password."""
        return "Basic " + base64.b64encode(f"{self.key}:".encode()).decode()

    def ids(self) -> list[str]:
        """The ids of every PaymentIntent of the account, newest first, all pages."""
        found: list[str] = []
        more: dict[str, Any] = {"limit": 100}
        while True:
            page = self.get(INTENTS, more).body
            found += [intent["id"] for intent in page["data"]]
            if not page["has_more"]:
                return found
            more["starting_after"] = found[-1]

    def _headers(self, extra: Mapping[str, str]) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.key}", **extra}


def draft(**changes: object) -> dict[str, Any]:
    """The parameters of a good, unconfirmed payment; a keyword changes it, None leaves one out."""
    params: dict[str, Any] = {"amount": 1099, "currency": "usd", "payment_method_types": ["card"]}
    params.update(changes)
    return {name: value for name, value in params.items() if value is not None}


def payment(**changes: object) -> dict[str, Any]:
    """The parameters of a good payment that is confirmed at once."""
    return draft(**{"payment_method": "pm_card_visa", "confirm": True, **changes})


def refusal(answer: Answer) -> tuple[int, str | None, str | None, str | None]:
    """Status, type, code and param of an error answer, for one comparison."""
    error = answer.body.get("error", {})
    return answer.status, error.get("type"), error.get("code"), error.get("param")


def created(door: Door, **changes: object) -> Any:
    """Create a draft and return its body."""
    answer = door.post(INTENTS, draft(**changes))
    assert answer.status == 200, answer.raw
    return answer.body


def paid(door: Door, **changes: object) -> Any:
    """Create and confirm a payment that succeeds, and return its body."""
    answer = door.post(INTENTS, payment(**changes))
    assert answer.status == 200, answer.raw
    assert answer.body["status"] == "succeeded"
    return answer.body


def client_of(door: Door, http: stripe.RequestsClient) -> stripe.StripeClient:
    """The SDK's client of a door's account, without retries of its own."""
    return stripe.StripeClient(
        door.key, base_addresses={"api": door.url}, max_network_retries=0, http_client=http
    )


def connected(client: stripe.StripeClient, **changes: object) -> stripe.Account:
    """A connected account that can take transfers and card payments."""
    asked = {name: {"requested": True} for name in ("card_payments", "transfers")}
    params = {"type": "custom", "country": "DE", "capabilities": asked, **changes}
    return client.v1.accounts.create(cast(Any, params))


def pay(
    client: stripe.StripeClient, *, key: str | None = None, **changes: object
) -> stripe.PaymentIntent:
    """Create and confirm a payment; what is refused raises the SDK's own error."""
    # The SDK types its parameters as one TypedDict per call; the builder is shared by both doors.
    params = cast(Any, payment(**changes))
    options: stripe.RequestOptions = {} if key is None else {"idempotency_key": key}
    return client.v1.payment_intents.create(params, options)
