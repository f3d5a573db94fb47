"""The seven steps as the rail shows them, also where envelopes are damaged."""

from typing import Any

from pipeline.models import Envelope
from pipeline.queries.runs import STEPS, RunHead, StepView, body_of

KINDS = ("intent", "result", "failed", "refused", "suspended")


def of_run(run: RunHead) -> tuple[StepView, ...]:
    """The seven steps, from the sealed intents, results and failures alone."""
    seen: dict[str, list[dict[str, Any]]] = {step: [] for step in STEPS}
    rows = Envelope.objects.filter(workspace_id=run.workspace, run=run.id, kind__in=KINDS)
    for n, data in rows.order_by("n").values_list("n", "bytes"):
        body = {**body_of(data), "n": n}
        seen.get(str(body.get("step")), []).append(body)
    return tuple(_step(run, number, name, seen[name]) for number, name in enumerate(STEPS, 1))


def _step(run: RunHead, number: int, name: str, bodies: list[dict[str, Any]]) -> StepView:
    intents, results = _of(bodies, "intent"), _of(bodies, "result")
    done = bool(results)
    return StepView(
        number=number,
        name=name,
        status=_status(run, name, number, done),
        attempts=max(len(intents), 1 if done else 0),
        refusals=len(_of(bodies, "refused")),
        duration_ms=_took(intents or results, results),
        first=bodies[0]["n"] if bodies else None,
        last=bodies[-1]["n"] if bodies else None,
    )


def _of(bodies: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    return [body for body in bodies if body.get("kind") == kind]


def _took(begun: list[dict[str, Any]], done: list[dict[str, Any]]) -> int | None:
    """From the first intent to the last result; None where a damaged time tells nothing."""
    if not begun or not done:
        return None
    since, until = begun[0].get("at_ms"), done[-1].get("at_ms")
    return until - since if isinstance(since, int) and isinstance(until, int) else None


def _status(run: RunHead, name: str, number: int, done: bool) -> str:
    if run.state == "terminated.completed":
        return "done"
    if name == run.step:
        if run.ended:
            return "failed"
        if run.running:
            return "now"
        return "waiting" if run.suspended else "todo"
    return "done" if done and number < run.number else "todo"
