"""An OpenAI-compatible endpoint as the model: one question, one answer, whose bytes are untrusted.

Nothing of it is believed: not its words, which go to the gate as they came, and not its manners,
which are bounded here. What goes out is the model's projection of the invoice and nothing else.
"""

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from django.conf import settings

from engine.errors import PermanentError, TransientError
from nanovm_core.core.messages import Scalar

NO_ANSWER, NO_COMPLETION, NO_ROOM = "MDL-001", "MDL-002", "MDL-003"
TIMEOUT_S = 60.0  # of one question, from the connection to the last byte: a local model is slow
ANSWER_BYTES_MAX = 262_144  # sixteen times what a proposal may have
TOKENS_MAX = 1_000_000_000  # what a provider may say that it used; more is counted as this
FOR_NOW = (408, 425, 429, 500, 502, 503, 504)  # another try of the same question may be answered

INSTRUCTION = """\
You pay invoices. The user's message is one invoice as JSON. What stands there as {{name}} is a \
value that you may use and not see: write it as it stands. Answer with one JSON object and \
nothing else, no code fence and no explanation:
{"tool": "stripe.create_payment_intent", "args": {"amount_minor": <integer>, \
"currency": "<string>", "payee": "{{payee}}", "memo": "{{memo}}"}}"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """Which endpoint answers, and within which bounds; ``url`` is its base, before the path.

    ``whose``: the model's or the advisor's. ``timeout_s``: None is ``TIMEOUT_S``.
    """

    url: str
    name: str
    key: str = field(repr=False)
    whose: str = "model"
    instruction: str = field(default=INSTRUCTION, repr=False)
    timeout_s: float | None = None
    body_bytes_max: int = ANSWER_BYTES_MAX


@dataclass(frozen=True, slots=True)
class Completion:
    """What the endpoint answered with: the proposal's bytes, and the tokens it says it used."""

    raw: bytes
    tokens: int = 0


def configured() -> Endpoint | None:
    """The endpoint that the settings name; None where they name none."""
    named: dict[str, Any] | None = settings.NANOVM_MODEL
    return Endpoint(**named) if named else None


def complete(endpoint: Endpoint, view: Mapping[str, Scalar], max_tokens: int) -> Completion:
    """Show the endpoint the projected invoice, once, and take its words byte for byte.

    ``max_tokens``: of its answer; it is asked to keep to them, and not believed to. No redirect is
    followed, no proxy of the environment is asked, and no text here repeats the key or anything
    that the endpoint said.

    Raises:
        TransientError: MDL-001, it could not be reached, is too busy or took too long.
        PermanentError: MDL-001, it refused; MDL-002, what it answered with is no completion.
    """
    import httpx2  # takes 80 ms, and most processes never ask an endpoint

    shown = json.dumps(dict(view), ensure_ascii=False, sort_keys=True)
    said = {"system": endpoint.instruction, "user": shown}  # no tools: some take none with a dot
    messages = [{"role": role, "content": text} for role, text in said.items()]
    question = {"model": endpoint.name, "messages": messages, "temperature": 0, "stream": False}
    question["max_tokens"] = max_tokens
    body = json.dumps(question).encode()
    timeout_s = endpoint.timeout_s or TIMEOUT_S
    try:
        answer = asyncio.run(asyncio.wait_for(_exchanged(endpoint, body), timeout_s))
    except TimeoutError as error:
        text = f"The {endpoint.whose}'s endpoint took over {timeout_s:g} seconds."
        raise TransientError(NO_ANSWER, text) from error
    except (OSError, httpx2.HTTPError, httpx2.InvalidURL) as error:
        text = f"The {endpoint.whose}'s endpoint did not answer ({type(error).__name__})."
        raise TransientError(NO_ANSWER, text) from error
    return _completion(endpoint.whose, answer)


async def _exchanged(endpoint: Endpoint, body: bytes) -> bytes:
    """Ask once; the answer is never unpacked, and a packed one is no JSON."""
    from httpx2 import AsyncClient

    url = f"{endpoint.url.rstrip('/')}/chat/completions"
    headers = {"Content-Type": "application/json", "Accept-Encoding": "identity"}
    if endpoint.key:
        headers["Authorization"] = f"Bearer {endpoint.key}"
    found = bytearray()
    async with (
        AsyncClient(trust_env=False, follow_redirects=False, timeout=None) as client,
        client.stream("POST", url, content=body, headers=headers) as response,
    ):
        _check_head(endpoint.whose, response.status_code, response.headers.get("Content-Type", ""))
        async for part in response.aiter_raw():
            found += part
            if len(found) > endpoint.body_bytes_max:
                raise _unusable(endpoint.whose, f"has over {endpoint.body_bytes_max:,} bytes")
    return bytes(found)


def _check_head(whose: str, status: int, content_type: str) -> None:
    """Take 200 with JSON, and nothing else."""
    if status in FOR_NOW:
        raise TransientError(NO_ANSWER, f"The {whose}'s endpoint answered {status}.")
    if status != 200:
        to_do = f"refused the request ({status}); check its name and key."
        if 300 <= status < 400:
            to_do = f"redirects ({status}); set NANOVM_{whose.upper()}_URL to the new address."
        raise PermanentError(NO_ANSWER, f"The {whose}'s endpoint {to_do}")
    if content_type.partition(";")[0].strip().lower() != "application/json":
        raise _unusable(whose, "does not have the type application/json")


def _completion(whose: str, body: bytes) -> Completion:
    """The first choice's words, or the one tool call that stands there in their place."""
    try:
        answer = json.loads(body)
        message = answer["choices"][0]["message"]
        calls = message.get("tool_calls") or ()
        words = [_call(each["function"]) for each in calls] or [_text(message.get("content"))]
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise _unusable(whose, "contains no message of a model") from error
    return Completion(b"\n".join(words), _tokens(answer.get("usage")))


def _call(function: Mapping[str, Any]) -> bytes:
    """A tool call as a proposal; its arguments are put in as they were written, unread."""
    return b'{"tool": %b, "args": %b}' % (
        json.dumps(function["name"]).encode(),
        _text(function["arguments"]),
    )


def _text(words: str | None) -> bytes:
    """The words' bytes; half a surrogate pair stays one, for the gate to refuse."""
    return (words or "").encode("utf-8", "surrogatepass")


def _tokens(usage: Any) -> int:
    """What the provider says that it used; it is believed where it says more than we count."""
    said = usage.get("total_tokens") if isinstance(usage, dict) else 0
    return min(max(said, 0), TOKENS_MAX) if type(said) is int else 0


def _unusable(whose: str, what: str) -> PermanentError:
    return PermanentError(NO_COMPLETION, f"The answer of the {whose}'s endpoint {what}.")
