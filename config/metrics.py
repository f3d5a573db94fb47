"""``GET /metrics``: figures of this installation for Prometheus, behind a token.

Every label is from a list that is closed here: nothing that a caller writes becomes a series. What
each metric is, and its label, is in the table of docs/metrics.md.
"""

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import partial
from hmac import compare_digest
from http import HTTPStatus
from pathlib import Path

from django.conf import settings
from django.db import DatabaseError
from django.db.models import Count, Sum
from django.http import HttpRequest, HttpResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from config import health
from config.webhooks import in_text
from engine.application import codes
from engine.clock import now_ms
from engine.evidence import published
from engine.models import Run, Workspace
from engine.ops import said
from engine.queries import figures
from engine.store import actors
from nanovm_core.core.lifecycle import STATES
from reader.currencies import DECIMALS

CURRENCIES_MAX = 100  # those with most payments: each has two series
DECISIONS = ("approved", "declined")
DIFFERENCES = ("REC-001", "REC-002", "REC-003")
PROGRAMS = ("queue", "stripe", "signer", "web", *health.WATCHING)  # beside the agents
TABLE = Path(__file__).parents[1] / "docs" / "metrics.md"
ROW = re.compile(r"^\| `nanovm_(\w+)` \| (?:`(\w+)` )?\| (.+) \|$", re.MULTILINE)
TEXTS = {name: (label, text) for name, label, text in ROW.findall(TABLE.read_text("utf-8"))}
# How a part does not answer; the last two where a process has not said this figure yet.
AWAY = (DatabaseError, OSError, ValueError, KeyError, TypeError)


@require_safe
@never_cache
def metrics(request: HttpRequest) -> HttpResponse:
    """200 with the figures; 401 without the token of NANOVM_METRICS_TOKEN, 404 where none is set.

    What does not answer is left out, and ``nanovm_up`` says 0 for it.
    """
    token = settings.NANOVM_METRICS_TOKEN
    if not token:
        text = "Metrics are off: set NANOVM_METRICS_TOKEN to a secret of 16 characters or more."
        return in_text(HTTPStatus.NOT_FOUND, text)
    scheme, _, given = request.headers.get("Authorization", "").partition(" ")
    if scheme.lower() != "bearer" or not compare_digest(given.strip().encode(), token.encode()):
        what = "another token than NANOVM_METRICS_TOKEN" if given else "no token"
        text = f"The request has {what}: send it as Authorization: Bearer and the token."
        refused = in_text(HTTPStatus.UNAUTHORIZED, text)
        refused.headers["WWW-Authenticate"] = 'Bearer realm="metrics"'
        return refused
    return HttpResponse(generate_latest(Parts()), content_type=CONTENT_TYPE_PLAIN_0_0_4)


def _metric(name: str, value: float | Mapping[str, float]) -> Metric:
    """A counter where the name ends so, else a gauge; ``value`` by label, if it has one."""
    label, text = TEXTS[name]
    made = CounterMetricFamily if name.endswith("_total") else GaugeMetricFamily
    found = made(f"nanovm_{name}", text, labels=[label] if label else [])
    for each, number in value.items() if isinstance(value, Mapping) else [(None, value)]:
        found.add_metric([each] if each is not None else [], float(number))
    return found


def _among(known: Collection[str], values: Mapping[str, int]) -> Counter[str]:
    """The values of labels that are known, and those of all others together."""
    found = Counter[str]()
    for label, value in values.items():
        found[label if label in known else "other"] += value
    return found


def _logs() -> Iterator[Metric]:
    found = figures.of_all()
    paid, sums = found.of("paid"), found.of("minor")
    most = [each for each, _ in paid.most_common(CURRENCIES_MAX) if each in DECIMALS]
    waits_ms = now_ms() - found.oldest_ms if found.oldest_ms is not None else 0
    open_ = dict(Run.objects.filter(ended_ms=None).values_list("state").annotate(Count("id")))
    states = _among(STATES, {**open_, **found.of("ended")})
    logs = Workspace.objects.filter(size__gt=0).aggregate(n=Count("id"), sum=Sum("size"))
    yield _metric("logs", logs["n"])
    yield _metric("envelopes_total", logs["sum"] or 0)
    yield _metric("held_runs", len(found.held))
    yield _metric("held_oldest_seconds", waits_ms / 1000)
    yield _metric("decisions_total", dict.fromkeys(DECISIONS, 0) | found.of("decided"))
    yield _metric("decisions_seconds_total", found.of("took_ms").total() / 1000)
    yield _metric("refusals_total", _among(codes(), found.of("refused")))
    yield _metric("payments_total", {each: paid[each] for each in most})
    yield _metric("payments_minor_total", {each: sums[each] for each in most})
    yield _metric("runs", dict.fromkeys(STATES, 0) | states)


def _load() -> Iterator[Metric]:
    found, restarts = health.load(), Counter[str]()
    for name, each in found.get("restarts", {}).items():
        restarts[name.rstrip("-0123456789")] += each["count"]  # reader-1, reader-2: one
    yield _metric("restarts_total", _among((*PROGRAMS, *actors.agents()), restarts))
    yield _metric("oldest_waiting_seconds", found["oldest_waiting_ms"] / 1000)
    yield _metric("webhooks_total", found["webhooks"])
    if settings.REDIS_URL:
        yield _metric("queue_length", found["queue_length"])
        yield _metric("dropped_total", found["dropped"])


def _signer() -> Iterator[Metric]:
    yield _metric("unsigned_logs", len(published.unsigned_logs()))
    if (silent_ms := published.silent_ms()) is not None:
        yield _metric("signer_silent_seconds", silent_ms / 1000)


def _watcher(name: str, *facts: str) -> Iterator[Metric]:
    """What a process said last of itself."""
    if last := said.heard(name):
        yield _metric(f"{name}_silent_seconds", (now_ms() - last.at_ms) / 1000)
        yield _metric(f"{name}_fault", bool(last.why))
        for each in facts:
            found = last.facts[each]
            if isinstance(found, Mapping):
                found = {code: found.get(code, 0) for code in DIFFERENCES}
            yield _metric(f"{name}_{each}", found)


PARTS: Mapping[str, Callable[[], Iterator[Metric]]] = {
    "logs": _logs,
    "load": _load,
    "signer": _signer,
    "follow": partial(_watcher, "follow", "behind", "exported"),
    "controller": partial(_watcher, "controller", "compared", "open"),
}


class Parts(Collector):
    """Asks every part anew at each scrape."""

    def collect(self) -> Iterator[Metric]:
        """The figures of the parts that answer, and which parts do."""
        up = dict.fromkeys(PARTS, 1)
        for name, part in PARTS.items():
            try:
                yield from part()
            except AWAY:
                up[name] = 0
        yield _metric("up", up)
