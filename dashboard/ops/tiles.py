"""What /ops/ shows: the figures of a log in words, and how this installation does."""

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from typing import Any, NamedTuple

import redis
from django.conf import settings

from dashboard.templatetags.show import length, on_the_clock
from engine.clock import now_ms
from engine.models import Workspace
from engine.ops import process_file, said
from engine.queries import figures
from engine.queries.figures import Figures
from engine.runtime import queue
from engine.store.turns import waiting_ms
from pipeline.reconcile import differences
from pipeline.steps.reasons import REASONS, RULES
from reader.currencies import shown

DAYS = 7  # of the tables
DAY = "%d %b"
WAITING_MS_MAX = 60_000  # for a worker: twice what the sweep leaves
WATCHING = {"follow": "Export of spans", "controller": "Comparison with Stripe"}


class Refused(NamedTuple):
    """How often a rule refused something: on each day, oldest first, and in all."""

    rule: str
    title: str
    counts: list[tuple[str, int]]
    total: int


class Part(NamedTuple):
    """One fact of the installation. ``is_wrong``: somebody has to do something."""

    name: str
    text: str
    is_wrong: bool = False


def of_log(log: Workspace) -> dict[str, Any]:
    """What a template shows of a log now: decisions since it began, the tables by day."""
    found, at_ms = figures.of_log(log), now_ms()
    decided, approved = found.of("decided").total(), found.of("decided")["approved"]
    today = datetime.fromtimestamp(at_ms // 1000, UTC).date()
    days = [today - timedelta(days=back) for back in reversed(range(DAYS))]
    return {
        "held": len(found.held),
        "oldest": length(at_ms - found.oldest_ms) if found.oldest_ms else "",
        "approved": approved,
        "decided": decided,
        "rate": f"{100 * approved // decided} %" if decided else "",
        "median": length(found.median_decide_ms or 0) if decided else "",
        "differences": differences.open_count(log),
        "days": [f"{day:{DAY}}" for day in days],
        "refusals": _refusals(found, days),
        "payments": [*_payments(found, days)],
    }


def _refusals(found: Figures, days: list[date]) -> list[Refused]:
    """The rules that refused something on these days, the one with the most first."""
    rules = {rule for what, day, rule in found.counts if what == "refused" and day >= days[0]}
    rows = []
    for rule in rules:
        counts = [found.counts["refused", day, rule] for day in days]
        known = RULES.get(rule) or REASONS.get(rule)
        shown_days = [(f"{day:{DAY}}", count) for day, count in zip(days, counts, strict=True)]
        title = known.title if known else "a rule of the policy"
        rows.append(Refused(rule, title, shown_days, sum(counts)))
    return sorted(rows, key=lambda row: (-row.total, row.rule))


def _payments(found: Figures, days: list[date]) -> Iterator[tuple[str, int, list[str]]]:
    """The days with payments, newest first."""
    for day in reversed(days):
        own = sorted(name for what, on, name in found.counts if (what, on) == ("paid", day))
        if own:
            count = sum(found.counts["paid", day, name] for name in own)
            sums = [shown(found.counts["minor", day, name], name) for name in own]
            yield f"{day:{DAY}}", count, sums


def of_installation() -> Iterator[Part]:
    """What /healthz shows everybody of all workspaces; what does not answer says so."""
    running = process_file.read()
    ended = {name: each for name, each in running.processes.items() if each.restarts}
    said_of = (
        f"{name} {each.restarts}, last at {on_the_clock(each.restarted_ms)}"
        for name, each in ended.items()
    )
    if running.processes:
        yield Part("Restarts", ", ".join(said_of) or "none since the start")
    else:
        yield Part("Restarts", "not known: no supervisor runs here")
    waits_ms = waiting_ms()
    text = f"the longest for {length(waits_ms)}" if waits_ms else "none"
    yield Part("Runs that wait for a worker", text, waits_ms > WAITING_MS_MAX)
    yield _queued()
    for name, does in WATCHING.items():
        text = said.in_words(name)
        yield Part(does, text, not text.startswith(("ok", "not in use")))


def _queued() -> Part:
    """The messages that no worker took yet, and those that were dropped as malformed."""
    name = "Messages in the queue"
    if not settings.REDIS_URL:
        return Part(name, "no queue server: make demo starts one")
    try:
        waiting, dropped = queue.counts(settings.REDIS_URL)
    except (redis.RedisError, OSError, ValueError) as error:
        text = f"the queue server does not answer ({type(error).__name__}): see /healthz"
        return Part(name, text, is_wrong=True)
    return Part(name, f"{waiting:,}; {dropped:,} malformed dropped")
