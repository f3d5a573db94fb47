"""Runs that do not go on by themselves: why, in words, and the safe way on, where there is one."""

from dataclasses import dataclass, replace
from uuid import UUID

from django.db.models import Exists, OuterRef, Q
from django.db.models.expressions import RawSQL
from django.db.models.functions import Coalesce

from engine.application import is_outside
from engine.clock import now_ms
from engine.models import AdapterCall, Run
from engine.queries import agents, why
from engine.queries.runs import RunHead, head_of
from engine.store import programs, sql
from nanovm_core.core import lifecycle as life
from nanovm_core.core.authority.policy import UNKNOWN_OUTCOME
from pipeline.models import Listed
from pipeline.steps.charge import afterwards
from reader.holds import explained

STUCK_MS = 30_000  # what nobody took up for so long: the sweep would have found it by then
LISTED_MAX = 50
LOOKED_AT_MAX = 1_000  # of the newest runs of a workspace, for damaged ones: nothing lists these


@dataclass(frozen=True, slots=True, kw_only=True)
class StuckReason:
    """Why a run is stuck. ``command`` lets it continue; empty where none does.

    ``says`` is empty where the run's own reason says it all. ``at_ms`` is when something happens
    by itself; 0 where nothing will.
    """

    says: str = ""
    command: str = ""
    label: str = ""
    at_ms: int = 0
    final: bool = False  # a hold that nobody can approve
    page: str = ""  # of the run, where a person does what is awaited

    @property
    def waits(self) -> bool:
        """Whether a person has to decide: nothing goes on by itself, and something can be done."""
        return not self.at_ms and self != DAMAGED


DAMAGED = StuckReason(
    says="The run's stored record was damaged. The damage is recorded, and the run is stopped."
)
UNKNOWN = StuckReason(
    says="It is not known whether the payment was made. Asking again first checks Stripe and then"
    " sends the same request with the same idempotency key: it cannot pay twice.",
    command="approve",
    label="Ask again, same key",
)
UNEXPECTED = StuckReason(
    says="The run has no payment on record, but Stripe has one or could not rule it out. Compare"
    " the run with Stripe's dashboard, then refund the payment there or accept it.",
    command="checked",
    label="Mark as checked",
)
UNSEEN = replace(
    UNKNOWN,
    says="It is not known whether this step was done. Asking again repeats it with the same key.",
)
HELD = StuckReason(command="approve", label="Approve payment")
HELD_CALL = replace(HELD, label="Approve the call")
LOOK = "It is not known whether the call was made. Look at the tool first."
UNKNOWN_CALL = replace(UNKNOWN, says=LOOK, label="Send it again with the same key")
UNKNOWN_OUTSIDE = replace(
    UNKNOWN,
    says=f"{LOOK} If you let the agent make it again, it gets a second warrant.",
    label="Let the agent make it again",
)
ENDED = "Its agent was killed, or connected anew, after it asked: the call can only be declined."
TO_TAKE = StuckReason(says="The agent gets its warrant when it asks again, at the latest at")
REPORTED = StuckReason(
    says="The agent has its warrant, and reports what came of it, at the latest at"
)
EXHAUSTED = StuckReason(command="resume", label="Try again")
ELSEWHERE = StuckReason(says="The run waits for an external answer, at the latest until")
STUCK = StuckReason(
    says="The next step is pending, but no worker has taken it. Nothing is lost.",
    command="wake",
    label="Try again",
)
OVERDUE = replace(
    STUCK, says="The run's time limit has passed, but no worker has handled it. Nothing is lost."
)
ASK = "Ask Stripe now"
WAITS = {  # by what the adapter last noted: Stripe's own status of the payment
    "requires_action": StuckReason(
        says="The bank asks the card's owner to authenticate the payment; nothing is paid before"
        " that. Without it the payment is canceled at",
        command="wake",
        label=ASK,
        page="authenticate",
    ),
    "processing": StuckReason(
        says="The bank is processing the payment. Stripe is asked again until it is paid or has"
        " failed. If it is still open then, it is canceled or a person decides at",
        command="wake",
        label=ASK,
    ),
}
CHARGE = "charge"
STANDS = (life.APPROVAL, life.EXHAUSTED)
GOES = (life.ACTIVE, life.IDLE, life.WAITING)
_OWN = "COALESCE(workspace_id, workspace_id) = %s"  # see ``of_workspace``
_WAITING = (
    f"SELECT COUNT(*) FROM (SELECT id FROM pipeline_run WHERE ended_ms IS NULL AND {_OWN}"  # noqa: S608
    f" AND (state IN {STANDS} OR (holder = '' OR until_ms <= %s)"
    f" AND (deadline_ms > 0 AND deadline_ms <= %s AND state IN {GOES}"
    f" OR state = '{life.ACTIVE}' AND (due_ms IS NULL OR due_ms <= %s AND owed_ms <= %s)))"
    f" UNION SELECT id FROM pipeline_run WHERE id IN ({afterwards.UNCHECKED}) AND {_OWN}"
    f" AND state IN {(*sorted(life.TERMINAL),)} AND NOT quarantined) AS waits"
)


def of_run(row: Run, run: RunHead) -> StuckReason | None:
    """Why this run is stuck; None where it continues, has ended well, or was paused."""
    if run.quarantined:
        return DAMAGED
    if run.ended and afterwards.is_unchecked(row.id):
        return UNEXPECTED
    if run.state == life.APPROVAL:
        return _held(row, run)
    if run.state == life.EXHAUSTED:
        return EXHAUSTED
    at_ms, deadline_ms = now_ms(), row.deadline_ms or 0
    if run.state not in GOES or (row.holder and row.until_ms > at_ms):  # a worker drives it
        return None
    if deadline_ms and deadline_ms + STUCK_MS <= at_ms:
        return OVERDUE
    if run.state != life.IDLE and is_outside(programs.shape_of(row), row.owed_tool):
        return replace(TO_TAKE if run.state == life.ACTIVE else REPORTED, at_ms=deadline_ms)
    if run.state == life.ACTIVE:
        return _owing(row, at_ms)
    if run.state == life.IDLE:
        return StuckReason(
            says="The last attempt failed. The next one starts automatically", at_ms=deadline_ms
        )
    noted = AdapterCall.objects.filter(run_id=run.id).order_by("number").last()
    waits = WAITS.get(noted.outcome if noted else "", ELSEWHERE)
    return replace(waits, at_ms=deadline_ms)


def of_workspace(workspace: UUID | str | None) -> list[tuple[RunHead, StuckReason]]:
    """A workspace's stuck runs, newest first, with what each waits for: some of each kind.

    A foreign agent's calls crowd out no invoice, and those that it is making are not listed.
    """
    if workspace is None:
        return []
    silent = Q(state=life.ACTIVE) & ~Q(until_ms__gt=now_ms())
    stands = Q(state__in=(*STANDS, life.IDLE, life.WAITING)) | silent
    # By the index of these: that of the workspace has all that it ever had.
    own = Run.objects.alias(own=Coalesce("workspace_id", "workspace_id")).filter(own=workspace)
    open_ = own.filter(stands, ended_ms=None)
    invoices = Exists(Listed.objects.filter(workspace_id=workspace, run=OuterRef("id")))
    held = open_.exclude(invoices).exclude(state=life.WAITING)
    newest = Run.objects.filter(workspace_id=workspace).order_by("-created_ms").values("id")
    damaged = Run.objects.filter(id__in=newest[:LOOKED_AT_MAX], quarantined=True)
    unchecked = RawSQL(afterwards.UNCHECKED, ())  # noqa: S611 - a constant
    ended = own.filter(id__in=unchecked, state__in=life.TERMINAL)
    lists = (open_.filter(invoices), held, damaged, ended)
    rows = {row.id: row for each in lists for row in each.order_by("-created_ms")[:LISTED_MAX]}
    ordered = sorted(rows.values(), key=lambda row: (-row.created_ms, -row.id.int))
    found = [(row, head_of(row)) for row in ordered]
    return [(head, stall) for row, head in found if (stall := of_run(row, head)) is not None]


def waiting(workspace: UUID) -> int:
    """How many of a workspace's runs wait for a person (``StuckReason.waits``), in one query."""
    at_ms, own = now_ms(), sql.key(workspace)
    late = at_ms - STUCK_MS
    [(count,)] = sql.execute(_WAITING, (own, at_ms, late, late, late, own))
    return int(count)


def _held(row: Run, run: RunHead) -> StuckReason:
    """What a person decides about."""
    if run.is_call and agents.has_ended(row, run.agent):
        first = f"{LOOK} " if run.held_by == UNKNOWN_OUTCOME else ""
        return StuckReason(says=first + ENDED, final=True)
    if run.held_by == UNKNOWN_OUTCOME:
        known = UNKNOWN if run.step == CHARGE else UNSEEN
        outside = is_outside(programs.shape_of(row), row.owed_tool)
        return (UNKNOWN_OUTSIDE if outside else UNKNOWN_CALL) if run.is_call else known
    if not why.may_be_approved(row):
        return StuckReason(says=_reason(run), final=True)
    return HELD_CALL if run.is_call else HELD


def _reason(run: RunHead) -> str:
    """Why the document is not payable, and what to do; else the rule's own words."""
    own = explained(run.slots.get("hold"))
    return own or (run.reason[1] if run.reason else "It is on hold.")


def _owing(row: Run, at_ms: int) -> StuckReason | None:
    """An effect that is owed and not taken up, or put off because the outside is silent."""
    if row.due_ms is None:
        return STUCK
    if row.due_ms > at_ms:
        says = f"No answer from the provider after {row.tries} tries. The next try is at"
        return StuckReason(says=says, at_ms=row.due_ms) if row.tries else None
    return STUCK if max(row.due_ms, row.owed_ms) + STUCK_MS <= at_ms else None
