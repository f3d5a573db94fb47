"""The page that stands for the bank of a card's owner: two buttons, and the way back."""

import hmac
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from html import escape
from urllib.parse import parse_qs, urlencode

from stripe_sandbox.context import Context
from stripe_sandbox.errors import JsonObject
from stripe_sandbox.resources.attempts import AUTHENTICATIONS, authenticated
from stripe_sandbox.store import Account, Store

ADDRESS = re.compile(
    AUTHENTICATIONS + r"/(?P<account>[^/]+)/(?P<intent>pi_\w+)/(?P<source>src_\w+)", re.ASCII
)
_WAITING = """
SELECT account, body FROM object
WHERE kind = 'payment_intent' AND json_extract(body, '$.status') = 'requires_action'
"""
_TITLE = "Local Stripe counterpart: authentication of a test payment"


@dataclass(frozen=True, slots=True, kw_only=True)
class HtmlPage:
    """What a browser gets."""

    status: int
    html: str
    headers: Mapping[str, str] = field(default_factory=dict)


def page(intent: JsonObject | None, source: str) -> HtmlPage:
    """Ask the card's owner, of the intent that waits under exactly this address."""
    if intent is None or not _waits(intent, source):
        return _closed()
    amount = f"{intent['amount']} minor units of {intent['currency'].upper()}"
    return _page(
        200,
        f"<p>A test card asks for its owner's consent to a payment of {escape(amount)}.</p>"
        '<form method="post">'
        '<button name="outcome" value="complete">Complete authentication</button> '
        '<button name="outcome" value="fail">Fail authentication</button></form>',
    )


def finish(context: Context, intent: JsonObject | None, source: str, body: str) -> HtmlPage:
    """Do what the owner chose, once, and send the browser back to where it came from."""
    if intent is None or not _waits(intent, source):
        return _closed()
    chosen = parse_qs(body).get("outcome")
    if chosen not in (["complete"], ["fail"]):
        return _page(400, "<p>Choose one of the two buttons.</p>")
    action = intent["next_action"].get("redirect_to_url") or {}
    authenticated(context, intent, succeeded=chosen == ["complete"])
    is_paid = intent["status"] == "succeeded"
    if action.get("return_url") is None:
        return _page(200, f"<p>The payment {'succeeded' if is_paid else 'failed'}.</p>")
    return HtmlPage(status=303, html="", headers={"Location": _back(action["return_url"], intent)})


def readdress(store: Store, origin: str) -> None:
    """Give the payments that wait for their owners the address of this start's pages."""
    for account, body in store.rows(_WAITING, ()):
        intent = json.loads(str(body))
        for action, name in (("redirect_to_url", "url"), ("use_stripe_sdk", "stripe_js")):
            if found := intent["next_action"].get(action):
                found[name] = origin + AUTHENTICATIONS + found[name].partition(AUTHENTICATIONS)[2]
        Account(store, str(account)).replace(intent)


def _waits(intent: JsonObject, source: str) -> bool:
    """Whether the intent waits for its owner under this unguessable name."""
    action = intent["next_action"] or {}
    kinds = [action.get("redirect_to_url"), action.get("use_stripe_sdk")]
    pages = [kind.get("url") or kind.get("stripe_js") for kind in kinds if kind]
    return intent["status"] == "requires_action" and any(
        hmac.compare_digest(str(each).rpartition("/")[2], source) for each in pages
    )


def _back(return_url: str, intent: JsonObject) -> str:
    """The return address with what Stripe adds to it (docs.stripe.com/payments/3d-secure)."""
    added = urlencode(
        {
            "payment_intent": intent["id"],
            "payment_intent_client_secret": intent["client_secret"],
            "redirect_status": "succeeded" if intent["status"] == "succeeded" else "failed",
        }
    )
    address, mark, fragment = return_url.partition("#")
    return f"{address}{'&' if '?' in address else '?'}{added}{mark}{fragment}"


def _closed() -> HtmlPage:
    return _page(404, "<p>No payment waits for an authentication here.</p>")


def _page(status: int, content: str) -> HtmlPage:
    html = (
        f'<!DOCTYPE html><html lang="en"><meta charset="utf-8"><title>{_TITLE}</title>'
        f"<h1>{_TITLE}</h1>{content}</html>"
    )
    return HtmlPage(status=status, html=html)
