"""What happened on this server: payments, attacks, and what an ordinary agent lost under them."""

from collections import Counter
from dataclasses import dataclass

from django.core.cache import cache

from dashboard.templatetags.show import money
from dashboard.verdicts.cards import ACCEPTED, BREACHED
from pipeline.queries.money import payments_made
from sabotage.models import Attack

KEY, FRESH_S = "dashboard.happened", 3  # the scoreboard is as old as that, too


@dataclass(frozen=True, slots=True, kw_only=True)
class Happened:
    """Counts over all workspaces; ``lost`` holds one sum for each currency."""

    paid: int
    attacks: int
    stopped: int
    lost: tuple[str, ...]


def here() -> Happened:
    """The counts, at most three seconds old."""
    found = cache.get(KEY)
    if not isinstance(found, Happened):
        found = _counted()
        cache.set(KEY, found, FRESH_S)
    return found


def _counted() -> Happened:
    judged = Attack.objects.exclude(verdict="")
    stopped = judged.exclude(integrity=BREACHED).exclude(verdict=ACCEPTED)
    lost: Counter[str] = Counter()
    for cost in judged.values_list("control__cost", flat=True).iterator():
        if cost and cost.get("amount_minor"):
            lost[str(cost["currency"])] += int(cost["amount_minor"])
    sums = tuple(money(amount, currency) for currency, amount in lost.most_common())
    return Happened(
        paid=payments_made(), attacks=judged.count(), stopped=stopped.count(), lost=sums
    )
