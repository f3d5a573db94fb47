"""The errors of Stripe's API as values: status, and the body that the caller reads."""

from dataclasses import dataclass
from typing import Any

JsonObject = dict[str, Any]
"""A JSON object on its way out: what Stripe's shapes are written in."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiResult:
    """An HTTP status and the JSON object that goes with it."""

    status: int
    body: JsonObject


class ApiError(Exception):
    """A refusal in Stripe's form; ``answer`` is what goes over the wire."""

    def __init__(self, status: int, error_type: str, message: str, **fields: object) -> None:
        super().__init__(message)
        self.status = status
        self.fields = error_fields(error_type, message, **fields)

    def answer(self) -> ApiResult:
        return ApiResult(status=self.status, body={"error": self.fields})


def error_fields(error_type: str, message: str, **fields: object) -> JsonObject:
    """Return the object under ``error``: absent fields are absent, a code brings its page."""
    error: JsonObject = {name: value for name, value in fields.items() if value is not None}
    if isinstance(error.get("code"), str):
        error["doc_url"] = doc_url(error["code"])
    return dict(sorted({**error, "message": message, "type": error_type}.items()))


def doc_url(code: str) -> str:
    return "https://stripe.com/docs/error-codes/" + code.replace("_", "-")


def invalid_request(message: str, **fields: object) -> ApiError:
    """Return a 400 ``invalid_request_error``."""
    return ApiError(400, "invalid_request_error", message, **fields)


def missing(noun: str, object_id: str, param: str, status: int) -> ApiError:
    """Return ``resource_missing``: 404 for an object in the path, 400 for one in a parameter."""
    message = f"No such {noun}: '{object_id}'"
    return ApiError(status, "invalid_request_error", message, code="resource_missing", param=param)


def unexpected_state(message: str, intent: JsonObject | None, param: str | None = None) -> ApiError:
    """Return ``payment_intent_unexpected_state`` with the current intent."""
    return invalid_request(
        message, code="payment_intent_unexpected_state", payment_intent=intent, param=param
    )


def unrecognized_url(method: str, path: str) -> ApiError:
    message = (
        f"Unrecognized request URL ({method}: {path}). Please see https://stripe.com/docs "
        "or we can help at https://support.stripe.com/."
    )
    return ApiError(404, "invalid_request_error", message)


def no_api_key() -> ApiError:
    message = (
        "You did not provide an API key. You need to provide your API key in the Authorization "
        "header, using Bearer auth (e.g. 'Authorization: Bearer YOUR_SECRET_KEY'). See "
        "https://stripe.com/docs/api#authentication for details, or we can help at "
        "https://support.stripe.com/."
    )
    return ApiError(401, "invalid_request_error", message)


def invalid_api_key(key: str) -> ApiError:
    return ApiError(401, "invalid_request_error", f"Invalid API Key provided: {masked(key)}")


def masked(key: str) -> str:
    """Return ``key`` with everything but its kind and its last four characters starred out."""
    pieces = key.split("_", 2)
    known = len(pieces) == 3 and pieces[0] in {"sk", "pk", "rk"} and pieces[1] in {"test", "live"}
    prefix = f"{pieces[0]}_{pieces[1]}_" if known else ""
    rest = key[len(prefix) :]
    shown = rest[-4:] if len(rest) > 8 else ""
    return prefix + "*" * (len(rest) - len(shown)) + shown


def server_error() -> ApiError:
    message = (
        "An unknown error occurred in the local Stripe counterpart; its standard error says where."
    )
    return ApiError(500, "api_error", message)
