"""Idempotency keys: one execution under a key, and the same answer for 24 hours."""

import hashlib
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from stripe_sandbox.errors import ApiError, ApiResult, invalid_request, server_error
from stripe_sandbox.forms import Form
from stripe_sandbox.store import Account, KeptAnswer

KEY_MAX = 255
"""Characters in an idempotency key."""
KEPT_S = 24 * 60 * 60
"""How long an answer is kept."""

Execution = Callable[[], ApiResult]


@dataclass(frozen=True, slots=True, kw_only=True)
class Post:
    """One POST: what is compared with the first use of its key."""

    method: str
    path: str
    form: Form
    request_id: str
    key: str | None

    def parameters(self) -> str:
        """Return a digest of the parameters that does not depend on their order."""
        text = json.dumps(self.form, sort_keys=True)
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


class KeysInUse:
    """The keys whose request is being executed right now, in this process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._held: set[tuple[str, str]] = set()

    @contextmanager
    def held(self, account: str, key: str) -> Iterator[None]:
        """Hold a key; raises the 409 where another request holds it."""
        with self._lock:
            if (account, key) in self._held:
                raise _in_use(key)
            self._held.add((account, key))
        try:
            yield
        finally:
            with self._lock:
                self._held.discard((account, key))


def replayed(account: Account, call: Post, now: float) -> KeptAnswer | None:
    """Return the answer kept under the call's key; raises where the key was for another call."""
    if call.key is None:
        return None
    kept = account.kept(call.key, since=now - KEPT_S)
    if kept is None:
        return None
    if (kept.method, kept.path) != (call.method, call.path):
        raise _misused(call.key, f"for the same endpoint they were first used for "
                                 f"('{call.path}' vs '{kept.path}')")  # fmt: skip
    if kept.parameters != call.parameters():
        raise _misused(call.key, "with the same parameters they were first used with")
    return kept


def execute(
    account: Account, call: Post, execution: Execution, now: float, crashed: Callable[[], None]
) -> ApiResult:
    """Execute a call and keep its answer: both in one transaction, or neither.

    What is refused once execution has begun, and a defect of ours (500), are
    kept too: a repeat under the key reads the same. ``crashed`` is called for the
    defect, while its exception is being handled.
    """
    with account.store.transaction():
        try:
            with account.store.attempt():
                answer = execution()
        except ApiError as error:
            answer = error.answer()
        except Exception:  # noqa: BLE001 - under this key the caller must read one 500 for ever
            crashed()
            answer = server_error().answer()
        if call.key is not None:
            kept = KeptAnswer(
                method=call.method,
                path=call.path,
                parameters=call.parameters(),
                request_id=call.request_id,
                answer=answer,
            )
            account.keep(call.key, kept, now, since=now - KEPT_S)
    return answer


def check_key(key: str) -> None:
    """Raise ApiError for a key that is too long."""
    if len(key) > KEY_MAX:
        raise invalid_request(
            f"Idempotency keys can be at most {KEY_MAX} characters long, but you passed in one "
            f"that is {len(key)} characters."
        )


def _in_use(key: str) -> ApiError:
    message = (
        "There is currently another in-progress request using this Idempotent Key (that probably "
        "means you submitted twice, and the other request is still going through): "
        f"{key}. Please try again later."
    )
    return ApiError(409, "idempotency_error", message, code="idempotency_key_in_use")


def _misused(key: str, rule: str) -> ApiError:
    message = (
        f"Keys for idempotent requests can only be used {rule}. Try using a key other than "
        f"'{key}' if you meant to execute a different request."
    )
    return ApiError(400, "idempotency_error", message)
