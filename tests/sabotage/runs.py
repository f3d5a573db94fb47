"""Runs at the moments at which a test attacks them."""

from collections.abc import Mapping
from functools import cache
from hashlib import sha256
from typing import Any

from django.db.models import Model

import samples
from engine import models
from engine.models import AdapterCall, Checkpoint, Envelope, Node, Run, Secret, Workspace
from engine.runtime import api
from engine.worker.drive import drive_patiently
from nanovm_core.core import lifecycle as life
from pipeline.create_run import create_run
from pipeline.register.sample_register import new_workspace
from sabotage.ablation.guards import claim_of, decided_in, line_of
from sabotage.fire import fire
from sabotage.models import Attack, Plan
from samples import fresh

VISITOR = "visitor"
PAUSED_BEFORE = ("extract", "vault", "propose", "charge", "seal")
BY_RUN: tuple[type[Model], ...] = (AdapterCall, models.Absorbed, Secret, Plan)
SAMPLE_OF = {"held": "over_limit", "failed": "broken"}
_shots = iter(range(1_000_000))


def at(moment: str, workspace: Workspace | None = None) -> Run:
    """A fresh run, brought to this moment; ``stepped`` has not begun, and will pause."""
    name = SAMPLE_OF.get(moment, "plain")
    path = samples.path(name)
    document = path.read_bytes() if workspace is None else _another(name, workspace.runs.count())
    stepping = moment in (*PAUSED_BEFORE, "stepped")
    run = create_run(workspace or new_workspace(), document, path.name, stepping=stepping)
    run_id = str(run.id)
    if moment not in ("ready", "stepped"):
        api.start(run_id, VISITOR)
    if moment not in ("ready", "stepped", "running"):
        drive_patiently(run_id)
    while moment in PAUSED_BEFORE and now(run).step != moment:
        api.step(run_id, VISITOR)
        drive_patiently(run_id)
    return now(run)


@cache
def _another(name: str, place: int) -> bytes:
    """The sample under a number that no other run of its workspace has."""
    return fresh.drawn(name, str(int(sha256(str(place).encode()).hexdigest(), 16))[:10])


def owing(step: str, workspace: Workspace | None = None) -> Run:
    """A run that owes this step's effect, which nobody has begun."""
    if step == "receive":
        return at("running", workspace)
    run = at(step, workspace)
    api.resume(str(run.id), VISITOR)
    return now(run)


def let_go(run: Run) -> Run:
    """Let the run go on to its end, as whoever owns it would."""
    run_id = str(run.id)
    go_on = {life.READY: api.start, life.PAUSED: api.resume, life.APPROVAL: api.approve}
    command = go_on.get(now(run).state)
    if command is not None:
        command(run_id, VISITOR)
    drive_patiently(run_id)
    return now(run)


def now(run: Run) -> Run:
    """The run as it is now."""
    return Run.objects.get(id=run.id)


def shoot(run: Run, injector: str, **params: str) -> Attack:
    """Fire an injector once."""
    return fire(str(run.id), injector, params, f"shot-{next(_shots)}")


def names_its_guard(attack: Attack) -> None:
    """The verdict names a line that *Without this check* removes, where it is that check's."""
    named, *refused = decided_in(attack.injector, attack.params, attack.rule, attack.where)
    claim = claim_of(attack.injector, attack.params)
    lacks = [":".join(map(str, line_of(each))) for each in (claim.without if claim else ())]
    assert named in lacks if refused else claim is None or attack.rule in ("FSM-003", "FSM-011")


def rows_hash(workspace: Workspace) -> str:
    """One hash over every row that belongs to a workspace."""
    owned: tuple[type[Model], ...] = (Envelope, Run, Attack, Node, Checkpoint)
    of_runs = [(model, {"run__workspace": workspace}) for model in BY_RUN]
    of_log = [(model, {"workspace": workspace}) for model in owned]
    return _hash((Workspace, {"id": workspace.id}), *of_log, *of_runs)


def run_hash(run: Run) -> str:
    """One hash over every row that belongs to a run, but for the attacks on it."""
    of_run = [(model, {"run": run}) for model in BY_RUN]
    return _hash((Run, {"id": run.id}), (Envelope, {"run": str(run.id)}), *of_run)


def _hash(*chosen: tuple[type[Model], Mapping[str, Any]]) -> str:
    rows = [
        [*model._default_manager.filter(**given).order_by("pk").values_list()]
        for model, given in chosen
    ]
    return sha256(repr(rows).encode()).hexdigest()
