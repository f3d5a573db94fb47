"""What somebody with the key does at Stripe, and lists that are not what they should be."""

import json
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import pytest
from django.conf import settings

from engine.clock import now_ms
from engine.models import Run
from pipeline.reconcile.turns import Compared, Turns
from pipeline.steps.charge import gateway
from tests.kit.house import House
from tests.pipeline.after_payment.pages import far, sdk


def paid(run: Run | None = None, key: str = "", **more: Any) -> Any:
    """A payment behind everybody's back; it names a run or nobody."""
    named = {"run": str(run.id)} if run else {}
    params: Any = {
        "amount": 500,
        "currency": "usd",
        "payment_method": "pm_card_visa",
        "confirm": True,
        "automatic_payment_methods": {"enabled": True, "allow_redirects": "never"},
        "metadata": named | ({"key": key} if key else {}),
        **more,
    }
    return sdk().v1.payment_intents.create(params)


def refunded(run: Run, amount: int = 100) -> None:
    """A part given back, as a person does in Stripe's dashboard; no event announces it yet."""
    params: Any = {"payment_intent": far(run).id, "amount": amount}
    sdk().v1.refunds.create(params)


def edited(house: House, run: Run, change: Callable[[dict[str, Any]], object]) -> None:
    """Stripe's record of a run's payment, changed in the counterpart's own database."""
    where = "account = ? AND id = ?"
    own = (f"acct_{settings.STRIPE['key'][-4:]}", far(run).id)
    (file,) = house.counterpart.folder.glob("*.sqlite3")
    with closing(sqlite3.connect(file, timeout=20)) as records, records:
        ((text,),) = records.execute(f"SELECT body FROM object WHERE {where}", own).fetchall()
        body = json.loads(text)
        if change(body) is GONE:
            records.execute(f"DELETE FROM object WHERE {where}", own)
        else:
            records.execute(f"UPDATE object SET body = ? WHERE {where}", (json.dumps(body), *own))


GONE = object()


def two(turns: Turns, at_ms: int = 0) -> Compared:
    """Two turns; what the second did."""
    turns.turn(at_ms or now_ms())
    return turns.turn((at_ms or now_ms()) + 1)


def lying(monkeypatch: pytest.MonkeyPatch, change: Callable[[list[Any]], list[Any]]) -> None:
    """Stripe's list of payments as something between changed it, in one page."""
    honest = gateway.listed

    def listed(kind: str, *given: Any, **more: Any) -> Iterator[Any]:
        found = [*honest(kind, *given, **more)]
        yield from change(found) if kind == "payment_intents" else found

    monkeypatch.setattr(gateway, "listed", listed)


def changed(found: Any, **fields: Any) -> Any:
    """An object of a list, with other fields."""
    return found | fields
