"""Planned attacks as the pages show them: what is planned for which step, and what came of it."""

from collections.abc import Mapping
from dataclasses import dataclass
from uuid import UUID

from engine.queries.runs import RunHead
from engine.store import sql
from pipeline.application import STEPS
from sabotage.models import Plan
from sabotage.planned import plans
from sabotage.planned.plans import make as make
from sabotage.planned.plans import take_back as take_back
from sabotage.planned.plans import why_not as why_not

_OF_RUN = "WHERE run_id = %s ORDER BY step, created_ms"
CHOICES = tuple(enumerate(STEPS, start=1))
SAYS: Mapping[str, str] = {
    plans.PLANNED: "Planned: fires automatically at step {step}, {name}.",
    plans.DUE: "The run has reached step {step}, {name}. The attack is about to fire.",
    plans.FIRING: "The run has reached step {step}, {name}. The attack is firing.",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanLine:
    """One planned attack, in a sentence."""

    id: UUID
    injector: str
    step: int
    says: str
    open: bool  # it can still be taken back
    attack: UUID | None
    verdict: str


def of_run(run: RunHead) -> tuple[PlanLine, ...]:
    """What is or was planned for a run, in the order of the steps."""
    return tuple(map(_view, sql.rows(Plan, _OF_RUN, (sql.key_of(run.id),))))


def of_attack(attack_id: UUID) -> PlanLine | None:
    """The plan that fired an attack; None where a visitor fired it."""
    row = Plan.objects.filter(attack_id=attack_id).select_related("attack").first()
    return _view(row) if row else None


def words_kept(run_id: str) -> int:
    """How many planned attacks on a run still hold typed text."""
    return Plan.objects.filter(run_id=run_id).exclude(words=None).count()


def step_of(text: str) -> int:
    """The step that a form names; 0 for what is none."""
    number = text.partition(" ")[0]
    return int(number) if number in map(str, range(1, len(STEPS) + 1)) else 0


def _view(row: Plan) -> PlanLine:
    return PlanLine(
        id=row.pk,
        injector=row.injector,
        step=row.step,
        says=_says(row),
        open=row.state == plans.PLANNED,
        attack=row.attack_id,
        verdict=row.attack.verdict if row.attack else "",
    )


def _says(row: Plan) -> str:
    name = STEPS[row.step - 1]
    if row.state == plans.MISSED:
        return f"Planned for step {row.step}, {name}, but not fired. {row.why}"
    if row.state != plans.FIRED:
        return SAYS[row.state].format(step=row.step, name=name)
    late = row.at_step is not None and row.at_step != row.step
    gone = f" when the run was at step {row.at_step}" if late else ""
    return f"Planned for step {row.step}, {name}, and fired automatically{gone}."
