"""Sets up a temporary copy of the product, attacks it once and reports the outcome."""

import urllib.parse
import urllib.request
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import partial
from typing import Any

from django.conf import settings

from engine.management import schema
from engine.ops.processes import spawn_celery_worker
from mutations.changes import changes
from mutations.readers import lack_guards_too
from pipeline.ops.stripe_counterpart import stripe_counterpart
from pipeline.steps.charge import gateway
from sabotage.campaign import InjectorOutcome, attack, attack_at, services
from sabotage.gallery import SCENARIOS
from sabotage.injectors import double_exec
from sabotage.kit import throwaway, waiting
from sabotage.kit.moments import MOMENTS

CALLS = 4  # as many payments as the worker's threads ask for at once
SETTLED_MS = 5_000  # without the lease several drive the run, and not all are accounted for
FUNDS_MINOR = 99_999_999  # what the copy's balance holds: the most that one test charge brings in
SOON_MS = 100  # what a removed guard would have counted is never counted


def attack_copy(asked: Mapping[str, Any]) -> dict[str, object]:
    """Attack the copy; returns the outcome and the guards that were removed.

    Those of ``without`` are gone in this process already; here the worker and the children that
    read documents are started without them too. The Stripe counterpart is the copy's own, and
    takes ``far_side_ms`` for a payment.
    """
    lack_guards_too()
    schema.migrate()
    without = asked["without"]
    if without:
        double_exec.SETTLED_MS_MAX = SETTLED_MS
    through = ("mutations", *without, "--") if without else ()
    worker = partial(spawn_celery_worker, program=(*through, "mutations.worker"))
    with stripe_counterpart(settings.NANOVM_DATA, "--faults") as url:
        settings.STRIPE["api_base"] = url
        if asked["injector"] in SCENARIOS:
            outcome = _exhibited(asked["injector"], asked["params"], through)
        else:
            with services(worker):
                _fund()
                _slow(url, asked["far_side_ms"])
                outcome = attack_at(MOMENTS[asked["moment"]], asked["injector"], asked["params"])
    made = changes(without)
    return {
        **asdict(outcome),
        "got_through": outcome.got_through,
        "without": made["guards"],
        "changes": made,
        "evidence": _with_all_breaches(outcome.evidence),
    }


def _fund() -> None:
    """Put money into the copy's balance, as a firm has some: a payout needs it."""
    for currency in ("usd", "eur"):
        gateway.configured().v1.payment_intents.create(
            {
                "amount": FUNDS_MINOR,
                "currency": currency,
                "confirm": True,
                "payment_method": "pm_card_bypassPending",
                "automatic_payment_methods": {"enabled": True, "allow_redirects": "never"},
            }
        )


def _with_all_breaches(evidence: Mapping[str, Any]) -> dict[str, Any]:
    """The evidence, what this attack alone can see to have got out among its breaches."""
    own = evidence.get("seen_by_the_attack", ())
    return {**evidence, "breaches": [*evidence["breaches"], *own]}


def _exhibited(name: str, params: Mapping[str, Any], through: Sequence[str]) -> InjectorOutcome:
    """Show a piece of the gallery, driven here; commands that it starts lack the guards, too."""
    waiting.WAIT_MS_MAX = SOON_MS
    throwaway.THROUGH = (*through,)
    return attack(name, params)


def _slow(url: str, delay_ms: int) -> None:
    """Delay Stripe's answers, so that a second caller comes while the first waits."""
    if not delay_ms:
        return
    form = {"kind": "delay_before", "delay_ms": delay_ms, "count": CALLS}
    data = urllib.parse.urlencode(form).encode()
    with urllib.request.urlopen(f"{url}/faults", data=data, timeout=10) as answer:  # noqa: S310
        answer.read()
