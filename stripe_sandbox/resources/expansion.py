"""``expand[]``: an id in an answer is replaced by the object it names."""

from stripe_sandbox import parameters
from stripe_sandbox.errors import JsonObject, invalid_request
from stripe_sandbox.forms import Form
from stripe_sandbox.store import Account

DEPTH_MAX = 4
_EXPANDABLE = {
    "account": {},
    "charge": {
        "on_behalf_of": "account",
        "payment_intent": "payment_intent",
        "transfer": "transfer",
    },
    "dispute": {"charge": "charge", "payment_intent": "payment_intent"},
    "event": {},
    "payment_intent": {
        "latest_charge": "charge",
        "on_behalf_of": "account",
        "payment_method": "payment_method",
    },
    "payment_method": {},
    "payout": {},
    "refund": {"charge": "charge", "payment_intent": "payment_intent"},
    "transfer": {"destination": "account", "source_transaction": "charge"},
    "webhook_endpoint": {},
}
_NEVER_SET = ("application", "customer", "review", "balance_transaction")
"""Expandable in Stripe, null here: expanding null is allowed and changes nothing."""


def expansions_of(form: Form, kind: str, *, in_list: bool = False) -> tuple[str, ...]:
    """Return the checked paths, without the ``data.`` that those of a list begin with."""
    paths = parameters.array_of(form, "expand") or ()
    return tuple(_checked(path, kind, in_list) for path in paths)


def expanded(account: Account, body: JsonObject, paths: tuple[str, ...]) -> JsonObject:
    """Return ``body`` with the objects that ``paths`` name in place of their ids."""
    for path in paths:
        body = _expanded(account, body, path.split("."))
    return body


def _checked(path: str, kind: str, in_list: bool) -> str:
    inner = path.removeprefix("data.") if in_list else path
    names = inner.split(".")
    if len(path.split(".")) > DEPTH_MAX:
        raise invalid_request(
            f"You cannot expand more than {DEPTH_MAX} levels of a property: {path}"
        )
    known = not in_list or inner != path
    here = kind
    for index, name in enumerate(names):
        targets = _EXPANDABLE[here]
        if name in _NEVER_SET and index == len(names) - 1:
            break
        if name not in targets:
            known = False
            break
        here = targets[name]
    if not known:
        raise invalid_request(f"This property cannot be expanded ({path}).", param="expand")
    return inner


def _expanded(account: Account, body: JsonObject, names: list[str]) -> JsonObject:
    name, rest = names[0], names[1:]
    value = body.get(name)
    if isinstance(value, str):
        value = account.find(_EXPANDABLE[body["object"]][name], value)
    if isinstance(value, dict):
        return {**body, name: _expanded(account, value, rest) if rest else value}
    return body
