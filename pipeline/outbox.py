"""The outbox: the effects owed, as rows that workers look for. What counts is the snapshot."""

from nanovm_core.canonical import encode
from nanovm_core.events import Event, ForeignIntent
from nanovm_core.messages import Decision, Effect, Snapshot
from pipeline.models import AdapterCall, Outbox, Run
from pipeline.world import now_ms


def keep(run: Run, decision: Decision) -> None:
    """Keep the outbox equal to what the snapshot owes."""
    owed = decision.snapshot.owed
    settled = Outbox.objects.filter(run=run, done_ms=None)
    settled.exclude(key=owed.key if owed else "").update(done_ms=now_ms())
    for effect in decision.effects:
        Outbox.objects.update_or_create(key=effect.key, defaults=_row(run, effect))


def reconcile(run: Run, now: Snapshot) -> list[Event]:
    """Make the rows what the snapshot owes again, and say so where somebody forged one.

    A row that no sealed intent bears is taken out; one that is missing is put back.
    """
    owed = Outbox.objects.filter(run=run, done_ms=None)
    dropped, _ = owed.exclude(key=now.owed.key if now.owed else "").delete()
    if now.owed is not None:
        row = _row(run, now.owed)
        Outbox.objects.get_or_create(key=now.owed.key, defaults=row)
        Outbox.objects.filter(key=now.owed.key).exclude(done_ms=None).update(done_ms=None)
    return [ForeignIntent(at_ms=now_ms())] if dropped else []


def begun(effect: Effect) -> bool:
    """Whether somebody began this effect: by its row or by the adapters' own record."""
    rows = Outbox.objects.filter(key=effect.key, begun_ms__isnull=False)
    return rows.exists() or AdapterCall.objects.filter(key=effect.key).exists()


def begin(run: Run, effect: Effect) -> None:
    """Mark an effect as begun, with the adapters' own record beside it."""
    Outbox.objects.filter(key=effect.key, begun_ms=None).update(begun_ms=now_ms())
    AdapterCall.objects.create(run=run, key=effect.key, tool=effect.tool, at_ms=now_ms())


def _row(run: Run, effect: Effect) -> dict[str, object]:
    return {
        "run": run,
        "step": effect.step,
        "tool": effect.tool,
        "attempt": effect.attempt,
        "args": encode(dict(effect.args)),
        "warrant_id": effect.warrant.id if effect.warrant else "",
        "warrant_expires_ms": effect.warrant.expires_ms if effect.warrant else 0,
        "intent_ms": effect.at_ms,
        "done_ms": None,
        "due_ms": 0,
        "tries": 0,
    }
