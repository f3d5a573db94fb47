"""A run at a glance, its steps, and a workspace's list of runs."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from uuid import UUID

from engine import application
from engine.models import Run
from engine.store import programs, sql
from engine.store.records import hold_of, part_of
from nanovm_core.core.program import AUTHORIZED

LABELS = {  # of a state, else of the first part of its name
    "initializing": "READY",
    "running": "RUNNING",
    "suspended": "SUSPENDED",
    "terminated.completed": "SUCCESS",
    "suspended.user_paused": "PAUSED",
    "running.waiting": "WAITING",
}
FILTERS = {  # of lists, by what a state of each begins with
    "ready": "initializing.",
    "running": "running.",
    "paused": "suspended.user_paused",
    "suspended": "suspended.",
    "success": "terminated.completed",
    "failed": "terminated.",
}
ROW = (  # what a head says as the run's row has it
    *("code", "state", "step", "length", "quarantined", "model", "pace_ms"),
    *("created_ms", "ended_ms", "erased_ms"),
)
STATES = ("ready", "running", "suspended", "paused")  # of FILTERS: a head says if it is in one
DECLINED, DECLINED_BY = "DECLINED", "POL-022"  # a failed run that a person did not want
_BY_CODE = "WHERE code = %s AND workspace_id IN "
_CLOSED = "SELECT id FROM pipeline_workspace WHERE successor_id = %s"
UUID_FORM = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


@dataclass(frozen=True, slots=True, kw_only=True)
class RunHead:
    """A run as its title bar shows it. ``label`` is the word for its state."""

    id: str
    code: str
    workspace: str
    state: str
    label: str
    step: str
    number: int  # the step's place, from 1
    length: int
    head: str
    quarantined: bool
    model: str
    pace_ms: int
    created_ms: int
    ended_ms: int | None
    erased_ms: int | None
    reason: tuple[str, str] | None
    held_by: str
    hold: str  # the name of what a person has to decide about; empty where it is nothing
    stepping: bool
    program: str
    policy: str
    slots: Mapping[str, Any] = field(hash=False)  # clear facts and refs, as the snapshot has them
    steps: tuple[str, ...] = ()  # the names of its program's steps, in order
    paid_steps: tuple[str, ...] = ()  # those that judge the call or make it
    is_call: bool = False  # one call of an agent that others wrote
    agent: str = ""
    ended: bool = False
    ready: bool = False
    running: bool = False
    suspended: bool = False
    paused: bool = False

    @property
    def steps_count(self) -> int:
        return len(self.steps)


class StepView(NamedTuple):
    """One step: how far it came, how often it was tried, how long it took.

    ``duration_ms`` is the time of its attempts, from the adapter's record to the answer, without
    ``paused_ms``: what the run was suspended at this step, or delayed by its pace.
    """

    number: int
    name: str
    status: str  # todo, now, waiting, done, failed
    attempts: int
    refusals: int
    duration_ms: int | None
    paused_ms: int
    begun_ms: int | None  # when its first attempt began
    first: int | None  # n of its first and last envelope
    last: int | None


def by_code(workspace: UUID | str | None, code: str) -> RunHead | None:
    """The run of that code, if it is this workspace's own."""
    logs = [sql.key_of(str(each)) for each in logs_of(workspace)] if workspace else []
    return next(map(head_of, sql.rows(Run, sql.listed(_BY_CODE, len(logs)), (code, *logs))), None)


def logs_of(workspace: UUID | str) -> list[UUID | str]:
    """A workspace, and the logs that a restore closed and that it goes on for."""
    rows = sql.execute(_CLOSED, (sql.key_of(str(workspace)),))
    return [workspace, *(sql.uuid(each) for (each,) in rows)]


def by_id(run_id: str) -> RunHead:
    return head_of(stored(run_id))


def stored(run_id: str) -> Run:
    """The row of a run; Run.DoesNotExist where there is none."""
    with suppress(ValueError, IndexError):  # it is no id, or no run's
        return sql.rows(Run, "WHERE id = %s", (sql.key(sql.uuid(run_id)),))[0]
    return Run.objects.get(pk=run_id)


def head_of(run: Run) -> RunHead:
    snapshot, shape = body_of(run.snapshot), programs.shape_of(run)
    slots, reason = part_of(snapshot, "slots"), _reason(snapshot.get("reason"))
    own = application.named(shape.name)
    passed_over = own.passed_over(slots)
    steps = {name: step for name, step in shape.steps.items() if name not in passed_over}
    said: dict[str, Any] = {name: getattr(run, name) for name in ROW}
    said |= {name: run.state.startswith(FILTERS[name]) for name in STATES}
    return RunHead(
        **said,
        id=str(run.pk),
        workspace=str(run.workspace_id),
        label=DECLINED if reason and reason[0] == DECLINED_BY else label_of(run.state),
        number=[*steps].index(run.step) + 1 if run.step in steps else 1,
        head=run.shown_head,
        reason=reason,
        held_by=str(snapshot.get("held_by") or ""),
        hold=hold_of(run),
        stepping=bool(snapshot.get("stepping")),
        program=run.program_hash,
        policy=run.policy_hash,
        slots=slots,
        steps=(*steps,),
        paid_steps=tuple(s for s, at in steps.items() if at.authorizes or at.call == AUTHORIZED),
        is_call=programs.is_gate(shape),
        agent=str(snapshot.get("agent") or ""),
        ended=run.state.startswith("terminated."),
    )


def label_of(state: str) -> str:
    return LABELS.get(state) or LABELS.get(state.partition(".")[0], "FAILED")


def group_of(state: str) -> str:
    """The filter of ``FILTERS`` under which lists have a run of this state: the first that fits."""
    return next((name for name, each in FILTERS.items() if state.startswith(each)), "failed")


def listed(ids: Sequence[UUID]) -> tuple[RunHead, ...]:
    """These runs in this order; one that has no row any more is left out."""
    rows = Run.objects.in_bulk(ids)
    return tuple(head_of(rows[each]) for each in ids if each in rows)


def heads_of(workspace: UUID, ids: Iterable[str]) -> dict[str, RunHead]:
    """A workspace's runs among these names of chains, by id; "log" is no run and has none."""
    own = {str(each) for each in logs_of(workspace)}
    # By their ids alone: asked for the workspace too, SQLite reads every run that it ever had.
    found = listed([UUID(each) for each in ids if UUID_FORM.fullmatch(each)])
    return {head.id: head for head in found if head.workspace in own}


def body_of(data: bytes | memoryview) -> dict[str, Any]:
    """The fields of stored envelope bytes; damaged ones read as nothing."""
    try:
        text = bytes(data).decode()
        value = json.loads(text)
        if "\\u" in text:  # half a surrogate pair, spelled as an escape, is no text
            json.dumps(value, ensure_ascii=False).encode()
    except (ValueError, RecursionError):
        return {"kind": "damaged"}
    return value if isinstance(value, dict) else {"kind": "damaged"}


def time_of(body: Mapping[str, Any]) -> int | None:
    """When an envelope was sealed; None where its time is no number."""
    at_ms = body.get("at_ms")
    return at_ms if type(at_ms) is int else None


def _reason(value: object) -> tuple[str, str] | None:
    """A snapshot's (code, sentence); a damaged one gives none."""
    if isinstance(value, list) and len(value) == 2:
        return str(value[0]), str(value[1])
    return None
