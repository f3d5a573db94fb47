"""What Stripe's own lists say of payments: read, and never written."""

import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http import HTTPStatus
from typing import Any, Final, NamedTuple
from uuid import UUID

import stripe

from engine.errors import OutcomeUnknownError
from engine.store.records import part_of
from pipeline.reconcile.differences import Side
from pipeline.reconcile.sealed import SUCCEEDED, hash_of
from pipeline.steps.charge import gateway
from pipeline.steps.charge.afterwards import minor
from reader.currencies import DECIMALS

# The words of Stripe's that are sealed; another one is ELSE.
REQUIRES: Final = "requires_(action|capture|confirmation|payment_method)"
STATUS: Final = re.compile(f"succeeded|processing|canceled|{REQUIRES}")
DISPUTE: Final = re.compile("(warning_)?(needs_response|under_review|closed)|won|lost|prevented|")
ELSE: Final = "other"
ASKED_MAX = 100  # payments of one turn that are asked for one by one
EXPAND: Final = "latest_charge"


class Payment(NamedTuple):
    """A payment as Stripe has it.

    ``id`` is a hash, ``key`` and ``run`` what its metadata name. ``paid``: it succeeded, or
    received money.
    """

    id: str
    key: str
    run: str
    paid: bool
    created_ms: int
    side: Side


class Lists:
    """The lists since a time, as Stripe answered now.

    ``why``: what was not read, and why: then nothing is missing at Stripe. ``news``: by Stripe's id
    of a payment, id and status of its refunds and disputes. ``alive`` is called between objects.
    """

    def __init__(self, since_ms: int, alive: Callable[[], None]) -> None:
        self.since_ms, self.why, self._alive, self._asked = since_ms, "", alive, 0
        self.payments: dict[str, Payment] = {}  # by hash of the id, the oldest first
        self.news: dict[str, set[tuple[str, str]]] = defaultdict(set)
        disputes: dict[str, str] = {}
        for kind in ("refunds", "disputes"):
            for each in self._read(kind):
                status, of = str(each.get("status")), str(each.get("payment_intent"))
                self.news[of].add((str(each.get("id")), status))
                if kind == "disputes":  # the newest comes first
                    disputes.setdefault(of, status)
        if not self.why:  # else it is not known what a payment has afterwards
            for each in reversed(self._read("payment_intents")):
                self._take(each, disputes.get(str(each.get("id")), ""))

    def _read(self, kind: str) -> list[dict[str, Any]]:
        found, expand = [], (f"data.{EXPAND}",) if kind == "payment_intents" else ()
        with self._noted("a list"):
            for each in gateway.listed(kind, self.since_ms, expand=expand):
                self._alive()
                found.append({**each})
        return found

    def ask(self, name: str) -> Payment | None:
        """The payment of this id, which no list has; None where Stripe has none, or see ``why``."""
        self._asked += 1
        if self._asked > ASKED_MAX:
            self.why = f"more than {ASKED_MAX} payments would have to be asked for one by one"
            return None
        self._alive()
        v1, params = gateway.configured().v1, {"payment_intent": name, "limit": 1}
        with self._noted("a payment", may_lack=True):
            intent = v1.payment_intents.retrieve(name, {"expand": [EXPAND]}).to_dict()
            disputes = v1.disputes.list(params).data  # type: ignore[arg-type]
            self._take(intent, str(disputes[0].status) if disputes else "")
        return self.payments.get(hash_of(name))

    def _take(self, intent: dict[str, Any], dispute: str) -> None:
        with self._noted("a payment"):
            found = _payment(intent, dispute)
            if intent["livemode"] is False:
                self.payments[found.id] = found

    @contextmanager
    def _noted(self, what: str, *, may_lack: bool = False) -> Iterator[None]:
        """Note in ``why`` what ends the block."""
        try:
            yield
        except OutcomeUnknownError:
            self.why = "a list of Stripe's does not end in time, or repeats itself"
        except stripe.StripeError as error:
            if not may_lack or error.http_status != HTTPStatus.NOT_FOUND:
                self.why = f"{what} of Stripe's could not be read ({type(error).__name__})"
        except (AttributeError, KeyError, TypeError, ValueError):
            self.why = f"{what} of Stripe's is not of the form that its API documents"


def _payment(intent: dict[str, Any], dispute: str) -> Payment:
    """What an answer says of a payment; ValueError where it is none."""
    match intent:
        case {"object": "payment_intent", "id": str(name), "status": str(status),
              "currency": str(currency), "amount": int(amount), "amount_received": int(received),
              "created": int(created_s), "livemode": bool()}:  # fmt: skip
            pass
        case _:
            raise ValueError(intent)
    paid, currency = status == SUCCEEDED or received > 0, currency.upper()
    named, charge = part_of(intent, "metadata"), part_of(intent, EXPAND)
    account = part_of(intent, "transfer_data").get("destination")
    side: Side = {
        "status": status if STATUS.fullmatch(status) else ELSE,
        "amount_minor": minor(received if paid else amount, currency),
        "currency": currency if currency in DECIMALS else "",
        "account": hash_of(account) if account else "",
        "refunded_minor": minor(charge["amount_refunded"], currency) if paid else 0,
        "dispute": dispute if DISPUTE.fullmatch(dispute) else ELSE,
    }
    key, run = str(named.get("key", "")), _uuid(named.get("run"))
    return Payment(hash_of(name), key, run, paid, created_s * 1_000, side)


def _uuid(value: object) -> str:
    try:
        return str(UUID(str(value)))
    except ValueError:
        return ""
