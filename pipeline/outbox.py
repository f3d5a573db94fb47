"""The outbox: the effects owed, as rows that workers look for. What counts is the snapshot."""

from nanovm_core.canonical import encode
from nanovm_core.messages import Decision, Effect, Event, ForeignIntent, Snapshot
from pipeline.models import Outbox, Run
from pipeline.world import now_ms


def keep(run: Run, decision: Decision) -> None:
    """Keep the outbox equal to what the snapshot owes."""
    owed = decision.snapshot.owed
    settled = Outbox.objects.filter(run=run, done_ms=None)
    settled.exclude(key=owed.key if owed else "").update(done_ms=now_ms())
    for effect in decision.effects:
        Outbox.objects.update_or_create(key=effect.key, defaults=_row(run, effect))


def foreign(run: Run, now: Snapshot) -> list[Event]:
    """The event that forged rows are: no sealed intent bears them, and they are taken out."""
    owed = Outbox.objects.filter(run=run, done_ms=None)
    dropped, _ = owed.exclude(key=now.owed.key if now.owed else "").delete()
    return [ForeignIntent(at_ms=now_ms())] if dropped else []


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
