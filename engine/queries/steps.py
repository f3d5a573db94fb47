"""A run's steps as its page lists them, also where envelopes are damaged."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from engine.queries.record import HALTS, RunRecord
from engine.queries.runs import DECLINED, RunHead, StepView

OWN = ("intent", "result", "failed", "refused", "terminal")
HALTS_MAX = 60  # of a run that was paused more often, the newest
SHOWN = (*OWN[:4], "suspended")
Body = dict[str, Any]
Span = tuple[int, int]  # from, until


@dataclass(frozen=True, slots=True)
class StepTimes:
    """What the run recorded of time beside its steps' own envelopes."""

    halts: tuple[tuple[str, Span], ...]  # each suspension that ended, and its step
    calls: Mapping[str, int]  # when an adapter recorded the first call under a key
    pace_ms: int
    ended_ms: int | None


def of_run(record: RunRecord) -> tuple[StepView, ...]:
    """The steps, from the recorded intents, results and failures alone."""
    run, entries = record.run, record.entries
    halts = {entry.row.number for entry in entries if entry.kind in HALTS}
    halts = {*sorted(halts)[-HALTS_MAX:]}
    read = [each for each in entries if each.kind in OWN or each.row.number in halts]
    found = [{**entry.body, "n": entry.row.number - 1} for entry in read]
    seen: dict[str, list[Body]] = {step: [] for step in run.steps}
    for body in found:
        if body.get("kind") in SHOWN:
            seen.get(str(body.get("step")), []).append(body)
    times = _times(record, found)
    named = enumerate(run.steps, 1)
    return tuple(_step(run, number, name, seen[name], times) for number, name in named)


def _step(run: RunHead, number: int, name: str, bodies: list[Body], times: StepTimes) -> StepView:
    intents, results = _of_kind(bodies, "intent"), _of_kind(bodies, "result")
    done = bool(results)
    work = _work(bodies, times)
    halts = [span for step, span in times.halts if step == name]
    first = _at(bodies[0]) if bodies else None
    return StepView(
        number=number,
        name=name,
        status=_status(run, name, number, done),
        attempts=max(len(intents), 1 if done else 0),
        refusals=len(_of_kind(bodies, "refused")),
        duration_ms=_took(work, intents, times) if done else None,
        paused_ms=sum(_length(each) for each in halts) + _delayed(intents, times),
        begun_ms=_begun(intents[0], times) if intents else first,
        first=bodies[0]["n"] if bodies else None,
        last=bodies[-1]["n"] if bodies else None,
    )


def _of_kind(bodies: list[Body], kind: str) -> list[Body]:
    return [body for body in bodies if body.get("kind") == kind]


def _at(body: Body) -> int | None:
    at_ms = body.get("at_ms")
    return at_ms if type(at_ms) is int else None


def _times(record: RunRecord, bodies: list[Body]) -> StepTimes:
    calls = {call.key: call.at_ms for call in reversed(record.calls)}
    ended = [at for at in map(_at, _of_kind(bodies, "terminal")) if at is not None]
    return StepTimes(_halts(bodies), calls, record.run.pace_ms, ended[-1] if ended else None)


def _halts(bodies: list[Body]) -> tuple[tuple[str, Span], ...]:
    """The suspensions that ended: by going on, or with the run."""
    halts: list[tuple[str, Span]] = []
    since: tuple[str, int] | None = None
    for body in bodies:
        at, kind = _at(body), body.get("kind")
        if at is None:
            continue
        if since is not None and kind in ("suspended", "resumed", "terminal"):
            halts.append((since[0], (since[1], max(since[1], at))))
            since = None
        if kind == "suspended":
            since = str(body.get("step")), at
    return tuple(halts)


def _begun(intent: Body, times: StepTimes) -> int | None:
    """When an attempt began: its adapter's record tells, where there is one after the intent."""
    at = _at(intent)
    called = times.calls.get(str(intent.get("idempotency_key")))
    return at if at is None or called is None else max(at, called)


def _work(bodies: list[Body], times: StepTimes) -> list[Span]:
    """The attempts of a step: each from its begin to its answer, the next attempt or the end."""
    intents = _of_kind(bodies, "intent")
    answers = {
        str(body.get("idempotency_key")): _at(body)
        for body in bodies
        if body.get("kind") in ("result", "failed")
    }
    follows = [_at(after) for _, after in pairwise(intents)] + [times.ended_ms]
    spans = []
    for intent, after in zip(intents, follows, strict=False):
        since = _begun(intent, times)
        until = answers.get(str(intent.get("idempotency_key"))) or after
        if since is not None and until is not None:
            spans.append((since, max(since, until)))
    return spans


def _took(work: list[Span], intents: list[Body], times: StepTimes) -> int | None:
    """The time of the attempts, without suspensions that ended within one."""
    if not intents:
        return 0  # decided in the commit that brought it here
    if not work:
        return None  # a damaged time tells nothing
    halts = [span for _, span in times.halts]
    return sum(_length(span) - _overlap(span, halts) for span in work)


def _overlap(span: Span, halts: list[Span]) -> int:
    return sum(_length((max(span[0], a), b)) for a, b in halts if b <= span[1] and b > span[0])


def _delayed(intents: list[Body], times: StepTimes) -> int:
    """What the run's pace delayed the attempts; suspensions within are counted elsewhere."""
    halts = [span for _, span in times.halts]
    delayed = 0
    for intent in intents if times.pace_ms else ():
        since, begun = _at(intent), _begun(intent, times)
        if since is not None and begun is not None:
            gap = begun - since - _overlap((since, begun), halts)
            delayed += min(max(0, gap), times.pace_ms)
    return delayed


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
