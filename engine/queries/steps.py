"""A run's steps as its page lists them, also where envelopes are damaged."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from engine.queries.record import HALTS, RunRecord
from engine.queries.runs import DECLINED, RunHead, StepView, time_of

OWN = ("intent", "result", "failed", "refused", "terminal")
HALTS_MAX = 60  # of a run that was paused more often, the newest
SHOWN = (*OWN[:4], "suspended")
Body = dict[str, Any]
Span = tuple[int, int]  # from, until
Halt = tuple[str, Span]  # a suspension that ended, and its step


class Attempt(NamedTuple):
    """One attempt of a step; None for what a damaged envelope does not tell."""

    asked_ms: int | None  # when its intent was sealed
    begun_ms: int | None  # its adapter's record tells, where there is one after the intent
    until_ms: int | None  # its answer, else the next attempt or the end


def of_run(record: RunRecord) -> tuple[StepView, ...]:
    """The steps, from the recorded intents, results and failures alone."""
    run, entries = record.run, record.entries
    newest = {*[entry.row.number for entry in entries if entry.kind in HALTS][-HALTS_MAX:]}
    read = [each for each in entries if each.kind in OWN or each.row.number in newest]
    found = [{**entry.body, "n": entry.row.number - 1} for entry in read]
    seen: dict[str, list[Body]] = {step: [] for step in run.steps}
    for body in found:
        if body.get("kind") in SHOWN:
            seen.get(str(body.get("step")), []).append(body)
    halts = _halts(found)
    ended = [at for at in map(time_of, of_kind(found, "terminal")) if at is not None]
    end = ended[-1] if ended else None
    calls = {call.key: call.at_ms for call in reversed(record.calls)}
    return tuple(
        _step(run, name, bodies, _attempts(bodies, calls, end), halts)
        for name, bodies in seen.items()
    )


def _step(
    run: RunHead, name: str, bodies: list[Body], attempts: list[Attempt], halts: list[Halt]
) -> StepView:
    done, number = bool(of_kind(bodies, "result")), run.steps.index(name) + 1
    first = time_of(bodies[0]) if bodies else None
    work = [
        (since, max(since, until))
        for _, since, until in attempts
        if since is not None and until is not None
    ]
    took = sum(_length(span) - _overlap(span, halts) for span in work)
    is_told = bool(work) or not attempts  # without one it was decided in the commit that led here
    waits = [(at, begun) for at, begun, _ in attempts if at is not None and begun is not None]
    gaps = (begun - at - _overlap((at, begun), halts) for at, begun in waits)
    delayed = sum(min(max(0, gap), run.pace_ms) for gap in gaps)
    return StepView(
        number=number,
        name=name,
        status=_status(run, name, number, done),
        attempts=max(len(attempts), 1 if done else 0),
        refusals=len(of_kind(bodies, "refused")),
        duration_ms=took if done and is_told else None,
        paused_ms=sum(_length(span) for step, span in halts if step == name) + delayed,
        begun_ms=attempts[0].begun_ms if attempts else first,
        first=bodies[0]["n"] if bodies else None,
        last=bodies[-1]["n"] if bodies else None,
    )


def of_kind(bodies: list[Body], kind: str) -> list[Body]:
    """Those of one kind."""
    return [body for body in bodies if body.get("kind") == kind]


def _halts(bodies: list[Body]) -> list[Halt]:
    """The suspensions that ended: by going on, or with the run."""
    halts: list[Halt] = []
    since: tuple[str, int] | None = None
    for body in bodies:
        at, kind = time_of(body), body.get("kind")
        if at is None:
            continue
        if since is not None and kind in ("suspended", "resumed", "terminal"):
            halts.append((since[0], (since[1], max(since[1], at))))
            since = None
        if kind == "suspended":
            since = str(body.get("step")), at
    return halts


def _attempts(bodies: list[Body], calls: Mapping[str, int], end: int | None) -> list[Attempt]:
    """A step's attempts. ``calls``: when an adapter recorded the first call under a key."""
    intents, found = of_kind(bodies, "intent"), []
    answered = [body for body in bodies if body.get("kind") in ("result", "failed")]
    answers = {str(body.get("idempotency_key")): time_of(body) for body in answered}
    follows = [*map(time_of, intents[1:]), end]
    for intent, after in zip(intents, follows, strict=False):
        key, at = str(intent.get("idempotency_key")), time_of(intent)
        begun = at if at is None else max(at, calls.get(key, at))
        found.append(Attempt(at, begun, answers.get(key) or after))
    return found


def _overlap(span: Span, halts: list[Halt]) -> int:
    """How much of it is within suspensions that ended."""
    within = (each for _, each in halts if span[0] < each[1] <= span[1])
    return sum(_length((max(span[0], since), until)) for since, until in within)


def _length(span: Span) -> int:
    return max(0, span[1] - span[0])


def _status(run: RunHead, name: str, number: int, done: bool) -> str:
    if run.state == "terminated.completed":
        return "done"
    if name == run.step:
        if run.ended:
            return "todo" if run.label == DECLINED else "failed"
        if run.running:
            return "now"
        return "waiting" if run.suspended else "todo"
    return "done" if done and number < run.number else "todo"
