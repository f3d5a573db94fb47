"""Recording what became of a payment after its run: on the log's own chain, once a state."""

from collections.abc import Mapping
from typing import Any

from django.db import transaction

from engine.clock import now_ms
from engine.errors import TransientError
from engine.models import Run, Workspace
from engine.runtime import chains, queue
from engine.signals import announce
from engine.store import records, sql
from engine.vault.secret_store import TOMBSTONE, read_all
from nanovm_core.core import lifecycle as life
from nanovm_core.core.envelope import decode_snapshot
from nanovm_core.core.messages import Scalar
from pipeline.labels import CHARGE
from pipeline.models import FarSide, StripeEvent
from pipeline.register.found import value_of
from pipeline.steps.charge import afterwards
from pipeline.steps.charge.afterwards import Afterwards

LOOK = "pipeline.worker.tasks.look"  # as messages that wait in a queue name the task
GOES = (life.ACTIVE, life.IDLE, life.WAITING, *life.TERMINAL)  # the states in which one looks
ACTOR = "stripe"
NEWS_AFTER_MS = 3_000  # the message that the event queued does it before that
NEWS_MAX = 100
# How a payment came about: they say nothing new once the run has recorded it.
MAKING = {"charge.pending", "charge.succeeded", "payment_intent.created"}
MAKING |= {f"payment_intent.{each}" for each in ("processing", "requires_action", "succeeded")}
_NEWS = "SELECT digest, kind FROM pipeline_stripeevent WHERE run_id = %s AND looked_ms IS NULL"
_LOOKED = "UPDATE pipeline_stripeevent SET looked_ms = %s WHERE digest = %s"


def with_news(at_ms: int) -> list[str]:
    """The runs whose events arrived a while ago and whose Stripe record was not read since."""
    news = StripeEvent.objects.filter(looked_ms=None, run__state__in=GOES)
    news = news.filter(at_ms__lt=at_ms - NEWS_AFTER_MS, run__workspace__successor=None)
    return [str(run) for run in news.values_list("run_id", flat=True).distinct()[:NEWS_MAX]]


def sweep() -> None:
    """Queue the runs whose events arrived a while ago."""
    for run_id in with_news(now_ms()):
        schedule_look(run_id)


def schedule_look(run_id: str) -> None:
    """Have a worker read Stripe's record of a run's payment; the sweep repeats a lost message."""
    queue.send(LOOK, [run_id])


def has_payment(run: Run) -> bool:
    """Whether a run has ended and recorded its payment: only refunds and disputes are new then."""
    now = value_of(run) if run.state in life.TERMINAL else None
    return now is not None and "payment" in now.slots


def record_changes(run_id: str) -> bool:
    """Read Stripe's record of a run's payment where an event is new, and seal what changed.

    The run itself stays as it is: what was sealed of it is what happened then. False where no
    event is new. Where Stripe does not answer, the events stay new.
    """
    news: dict[str, str] = dict(sql.execute(_NEWS, (sql.key_of(run_id),)))
    if not news:
        return False
    [run] = sql.rows(Run, "WHERE id = %s", (sql.key_of(run_id),))
    slots = decode_snapshot(bytes(run.snapshot)).slots
    currency = str(slots.get("currency", ""))
    if MAKING.issuperset(news.values()) and has_payment(run):
        pass  # which is recorded: Stripe has nothing new to say
    elif "payment" in slots or run.state in life.TERMINAL:
        try:
            state = _read(run, slots.get("payment"), currency)
        except TransientError:
            return True
        if state is not None:
            _record(run_id, state, currency)
    elif run.state != life.WAITING:
        return True  # the payment's answer is not recorded yet
    sql.change_each(_LOOKED, [(now_ms(), digest) for digest in news])
    return True


def _read(run: Run, ref: Scalar | None, currency: str) -> Afterwards | None:
    if ref is None:
        return afterwards.unexpected(run.id, run.created_ms, currency)
    payment = read_all([str(ref)]).get(str(ref), TOMBSTONE)
    return None if payment == TOMBSTONE else afterwards.payment_record(payment, run.id, currency)


def _record(run_id: str, found: Afterwards, currency: str) -> None:
    """Seal a state that is not the one recorded last."""
    with transaction.atomic():
        run = Run.objects.select_related("workspace").get(id=run_id)
        workspace = records.lock_log(run.workspace.successor_id or run.workspace_id)
        states = FarSide.objects.filter(run=run).exclude(dispute=afterwards.CHECKED)
        last = states.order_by("-id").values_list("refunded_minor", "dispute").first() or (0, "")
        if (found.refunded_minor, found.dispute) == last:
            return
        out = {"amount_minor": found.refunded_minor, "currency": currency, "dispute": found.dispute}
        outcome = "refunded" if found.dispute == last[1] else "disputed"
        if found.dispute in afterwards.OF_NO_RESULT:
            out["received_minor"] = found.received_minor
            outcome = found.dispute.partition(" ")[0]
        _seal(run, workspace, found, {"outcome": outcome, "out": out}, ACTOR)


def checked(run_id: str, actor: str) -> None:
    """Seal that a person checked an unexpected payment; nothing where none is left to check."""
    with transaction.atomic():
        run = Run.objects.select_related("workspace").get(id=run_id)
        workspace = records.lock_log(run.workspace.successor_id or run.workspace_id)
        if afterwards.is_unchecked(run.id):
            found = Afterwards(dispute=afterwards.CHECKED)
            _seal(run, workspace, found, {"outcome": found.dispute}, actor)


def _seal(
    run: Run, workspace: Workspace, found: Afterwards, said: Mapping[str, Any], actor: str
) -> None:
    """Seal a state, and keep it; the caller holds the log's lock."""
    body = {"tool": CHARGE, "step": "charge", "in": {"run": str(run.id)}, **said}
    n = chains.seal(workspace.id, "alert", body, actor=actor)
    state = {"refunded_minor": found.refunded_minor, "dispute": found.dispute}
    FarSide.objects.create(run=run, at_ms=now_ms(), sealed_n=n, **state)
    transaction.on_commit(lambda: announce(run))
