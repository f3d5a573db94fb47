"""The run that the red team attacks: chosen, brought to its model's question, proposed to."""

from uuid import UUID

import samples
from dashboard.arena.box import Typed
from dashboard.arena.judge import judged
from dashboard.start import sample_files
from engine.clock import now_ms
from engine.models import Run, Workspace
from engine.queries import dry_run, runs, step_detail
from engine.queries.runs import RunHead
from engine.runtime import api
from engine.store import programs, records
from nanovm_core.core import lifecycle as life
from nanovm_core.core.envelope import decode_snapshot
from nanovm_core.errors import VerificationError
from pipeline.application import STEPS
from pipeline.create_run import create_run
from pipeline.steps.propose import model_adapters
from sabotage.fire import fire
from sabotage.kit.injector import TEXT_BYTES_MAX, InjectionError
from sabotage.kit.waiting import wait_until
from sabotage.models import Attack

INJECTOR = "tool_injection"  # the same attack as the console's: the model's own door
SAMPLE = samples.SAMPLES[0]
VISITOR = "visitor"
MODEL_STEP = "propose"
FOOLED = "gullible"
STORY_WAITS = "The story of this run waits: press its button first, or start another run."
LED_MS_MAX = 20_000  # how long a page waits for the workers; pressing again goes on from there


def newest(workspace: UUID | None) -> RunHead | None:
    """The visitor's newest run that still takes proposals; else their newest; else None."""
    if workspace is None:
        return None
    mine = Run.objects.filter(workspace_id=workspace, call=None).order_by("-created_ms", "-id")
    found = mine.exclude(state__in=life.TERMINAL).first() or mine.first()
    return runs.head_of(found) if found is not None else None


def new_run(owner: Workspace) -> RunHead:
    """A stepped run of the plain sample, brought to the pause before its model."""
    document = sample_files.sample(SAMPLE.name)
    run = create_run(owner, document, SAMPLE.file, stepping=True, started_by=VISITOR)
    return led(str(run.id))


def led(run_id: str) -> RunHead:
    """Bring a stepped run to the pause before its model, never past it.

    It waits for the workers for a bounded time; calling it again goes on from there.
    """
    until_ms = now_ms() + LED_MS_MAX
    going = Run.objects.filter(id=run_id, state__startswith="running.")
    for _ in STEPS:
        wait_until(lambda: not going.exists(), until_ms - now_ms())
        run = Run.objects.get(id=run_id)
        if run.state != life.PAUSED or run.step not in STEPS[: STEPS.index(MODEL_STEP)]:
            break
        api.step(run_id, VISITOR)
    return runs.by_id(run_id)


def is_ready(run: RunHead) -> bool:
    """Whether a proposal made now would be an answer to the model's question."""
    row = Run.objects.get(id=run.id)
    try:
        now = decode_snapshot(bytes(row.snapshot))
    except VerificationError:
        return False
    open_ = now.owed is not None and now.owed.tool == "model.propose"
    return open_ or (row.state == life.PAUSED and row.step == MODEL_STEP and now.owed is None)


def in_story(run: RunHead) -> bool:
    """Whether the run waits for the story's button, and refuses all else that might end it."""
    if run.model != FOOLED or not run.paused or run.step != MODEL_STEP or not is_ready(run):
        return False
    order = model_adapters.orders(step_detail.shown_to_model(run))
    return 0 < len(order.encode()) <= TEXT_BYTES_MAX


def refusals_left(run: RunHead) -> int:
    """How many more refused answers the run takes before its step gives up."""
    row = Run.objects.get(id=run.id)
    try:
        now = decode_snapshot(bytes(row.snapshot))
        most = programs.program_of(row).limits.proposals_max
    except VerificationError:
        return 0
    return 0 if run.ended else most - (now.refused if now.step == MODEL_STEP else 0)


def proposed(run: RunHead, typed: Typed, key: str) -> Attack:
    """Propose these bytes as the injector does, and judge the outcome.

    Where the run is paused before its model, the question is opened first and held, so that
    these bytes are its answer. The same key proposes once.
    Raises InjectionError while the run waits in its story.
    """
    if in_story(run):
        raise InjectionError(STORY_WAITS)
    raw = typed.raw()
    mine = Attack.objects.filter(workspace_id=run.workspace, idempotency_key=key)
    known = mine.first() if key else None
    if known is not None:
        return known
    before = open_question(run.id)
    text = raw.decode("utf-8", "surrogateescape")
    attack = fire(run.id, INJECTOR, {"proposal": text}, key)
    return judged(attack, before)


def open_question(run_id: str) -> dry_run.Inputs | None:
    """Ask the model, where the run is paused before it; the inputs of the decision.

    None where the run's stored bytes are damaged: the attack will meet that.
    """
    row = Run.objects.get(id=run_id)
    try:
        now = records.verified(row).snapshot
        ended = now.state in life.TERMINAL
        events = () if ended else tuple(dry_run.questions(programs.program_of(row), now))
        if events:
            api.submit(run_id, events, actor="visitor")
        return dry_run.inputs_of(run_id)
    except VerificationError:
        return None
