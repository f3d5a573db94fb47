"""What an agent checks before it makes a call: the one difference between the two loops."""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

PAY, MAIL = "stripe.create_payment_intent", "notify.send_email"
ITS_PAYEE = "{{payee}}"  # what a model calls the payee of the invoice
CURRENCY = re.compile("[A-Z]{3}")
NO_CALL = "The model's answer is no tool call."
NO_TOOL = "Its allowlist has no such tool."
NO_FIT = "Its schema does not allow these arguments."
KEY_USED = "Stripe refused another payment under the same idempotency key."


class RefusedCallError(Exception):
    """The call was not made; the text says which check refused it."""


Fits = Callable[[object], bool]


class Params(NamedTuple):
    """The arguments of a tool by name; no others are allowed."""

    required: Mapping[str, Fits]
    optional: Mapping[str, Fits]

    def fits(self, args: object) -> bool:
        known = {**self.required, **self.optional}
        return (
            isinstance(args, Mapping)
            and self.required.keys() <= args.keys() <= known.keys()
            and all(known[name](value) for name, value in args.items())
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Checks:
    """The checks of one kind of agent. ``account``: its key at the Stripe counterpart.

    ``tools`` is its allowlist with the schema of each tool; None allows everything.
    """

    label: str
    account: str
    says: str  # of a call that was made
    resends: str  # of a message that comes again
    tools: Mapping[str, Params] | None = None
    has_keys: bool = False  # an idempotency key for each message

    def read(self, answer: bytes) -> Any:
        """The call in a model's answer.

        Raises:
            RefusedCallError: it may not be made.
        """
        try:
            call = json.loads(answer)
        except (ValueError, RecursionError) as error:
            if self.tools is None:
                raise
            raise RefusedCallError(NO_CALL) from error
        self.require(call)
        return call

    def require(self, call: object) -> None:
        """Return if the call may be made.

        Raises:
            RefusedCallError: it may not.
        """
        if self.tools is None:
            return
        name, args = _parts(call)
        schema = self.tools.get(name)
        if schema is None:
            raise RefusedCallError(NO_TOOL)
        if not schema.fits(args):
            raise RefusedCallError(NO_FIT)

    def options(self, message: str) -> dict[str, Any]:
        """What a request to Stripe bears besides its parameters: the message's key, if it has."""
        return {"idempotency_key": message} if self.has_keys else {}


def _parts(call: object) -> tuple[str, object]:
    """The name and the arguments of a call; what is not there is empty."""
    if not isinstance(call, Mapping):
        return "", None
    name = call.get("tool")
    return name if isinstance(name, str) else "", call.get("args")


def _is_amount(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


def _is_currency(value: object) -> bool:
    return isinstance(value, str) and CURRENCY.fullmatch(value) is not None


def _is_text(value: object) -> bool:
    return isinstance(value, str)


ORDINARY = Checks(
    label="an ordinary agent loop: prompt → JSON → dispatch, the same tools, no checks",
    account="sk_test_nanovm_control",
    says="No checks: it executed the call.",
    resends="No idempotency key",
)
CAREFUL = Checks(
    label="a careful agent loop: the same with a tool allowlist, a schema of each tool's "
    "arguments and an idempotency key for each message",
    account="sk_test_nanovm_careful",
    says="Allowlist and schema passed: it executed the call.",
    resends="One idempotency key for each message",
    tools={
        PAY: Params(  # it has no register: a payee is any text
            required={"amount_minor": _is_amount, "currency": _is_currency},
            optional={"payee": _is_text, "memo": _is_text},
        ),
        MAIL: Params(required={"to": _is_text, "body": _is_text}, optional={"subject": _is_text}),
    },
    has_keys=True,
)
