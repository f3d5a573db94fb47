"""What is done while the application crashes: each story can be told again from any place."""

import sqlite3
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

from engine.evidence import signer
from engine.evidence.signer import Rounds, keys
from engine.models import Checkpoint, Envelope, Run, Workspace
from engine.privacy import erasure
from engine.runtime import api, chains
from engine.runtime.group_commit import commit_together
from engine.vault import secret_store
from engine.vault.secret_store import TOMBSTONE
from engine.worker import effects
from nanovm_core.core import lifecycle as life
from nanovm_core.core.canonical import decode
from nanovm_core.errors import VerificationError
from nanovm_core.proof import notes
from samples import path
from tests.crash import verdict
from tests.crash.sim import CARD_DECLINED, Sim
from tests.engine.privacy.test_erasure import CANARIES, canary_invoice, found
from tests.kit.house import OF_RUNS, accepted_run, invoice, known_workspace

OVER_LIMIT = path("over_limit").read_bytes()
KEY_BYTES = 32
APPROVALS = 3  # a payment that can never be sent again is held again after each

Told = Callable[[Sim], None]


def _known() -> None:
    """The supplier register is there before anything crashes."""
    known_workspace()


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """What lies there before, what is done, and how it ends when nothing crashes.

    ``tell`` looks at what is done already and goes on from there, as a person would who comes
    back to the page.
    """

    name: str
    tell: Told
    ends: tuple[str, ...]
    points_min: int  # fewer than these: a hook was lost
    every: int = 8  # of so many states one is tried; the soak tries all
    before: Told = lambda _: _known()
    faults: Callable[[Sim], Iterable[str]] = lambda _: ()  # besides what must hold of all
    of_all: Callable[[Sim], Iterable[str]] = verdict.faults


def _invoice(document: bytes, **options: str) -> Told:
    def tell(sim: Sim) -> None:
        workspace = Workspace.objects.first() or known_workspace()
        run = Run.objects.first()
        if run is None:
            name = CANARIES["file"]
            run = accepted_run(workspace, document, name, **options)
        if run.state == life.READY:
            api.start(str(run.id), "visitor")
        sim.work()
        _approve(sim)

    return tell


def _approve(sim: Sim) -> None:
    """Approve what is held, and what is held again then, for a while."""
    for _ in range(APPROVALS):
        for run in Run.objects.filter(state=life.APPROVAL):
            api.approve(str(run.id), "operator")
        sim.work()


def _paid_for(sim: Sim) -> None:
    """A paid invoice full of canaries, and the keys that its values are wrapped in."""
    _invoice(canary_invoice())(sim)
    _keep_keys(sim)


def _two_started(_: Sim) -> None:
    """Two runs of one log that owe their first effects."""
    log = known_workspace()
    for _name in range(2):
        run = accepted_run(log, invoice(), CANARIES["file"])
        api.start(str(run.id), "visitor")


def _together(sim: Sim) -> None:
    """Drive all runs on one thread: their answers, and what they owe next, in shared commits."""
    taken = [api.take(str(each))[1] for each in Run.objects.values_list("id", flat=True)]
    begun = [each for each in taken if each is not None]
    while begun:
        done = [effects.perform(effects.work_of(each)) for each in begun]
        jobs = [
            api.answer_job(each, it.event, it.secrets) for each, it in zip(begun, done, strict=True)
        ]
        commit_together(jobs)
        begun = [work for job in jobs if (work := job.outcome().work) is not None]
    sim.work()
    _approve(sim)


def _keep_keys(sim: Sim) -> None:
    with closing(sqlite3.connect(sim.folder / "keys.sqlite3")) as store:
        rows = store.execute(OF_RUNS).fetchall()
    sim.world.kept["keys"] = dict(rows)


def _erase(sim: Sim) -> None:
    """Erase it; whatever crashed, what a sealed request names is not read again."""
    run = Run.objects.get()
    if Envelope.objects.filter(kind="erasure_requested").exists():
        assert {*secret_store.read_all([*sim.world.kept["keys"]]).values()} == {TOMBSTONE}
    done = erasure.erase_run(str(run.id), "art17-1-b", "visitor")
    assert done.state == "done", done


def _remains(sim: Sim) -> Iterator[str]:
    """What is left of the values, their names in the key store, and their keys, in any file."""
    kept = sim.world.kept["keys"]
    for file in filter(Path.is_file, sim.folder.rglob("*")):
        data = file.read_bytes()
        yield from found(file.name, data)
        yield from (f"{file.name}: a key" for wrapped in kept.values() if wrapped in data)
    names = b"".join(file.read_bytes() for file in sim.folder.glob("keys.sqlite3*"))
    yield from (f"key store: {ref}" for ref in kept if ref.encode() in names)
    if not Run.objects.filter(erased_ms__gt=0).exists():
        yield "the run does not say that it was erased"


def _signed_later(sim: Sim) -> None:
    """A checkpoint, a longer log, a checkpoint."""
    workspace = Workspace.objects.get()
    if workspace.size == sim.world.kept["size"]:
        signer.checkpoint(workspace.id)
        chains.seal(workspace.id, "budget", {"out": {"number": 1}}, actor="operator")
    signer.checkpoint(workspace.id)
    Rounds().round(sim.world.now_ms)


def _held(sim: Sim) -> None:
    """A run that waits for a person, and the keys of its values."""
    run = accepted_run(known_workspace(), OVER_LIMIT, CANARIES["file"])
    api.start(str(run.id), "visitor")
    sim.work()
    _keep_keys(sim)


def _rotated(sim: Sim) -> None:
    """Change the signer's key; every key that ever signed is remembered for the verdict."""
    workspace = Workspace.objects.get()
    known = sim.world.kept.setdefault("verifiers", [])
    known.extend(signer.verifiers(workspace.origin))
    assert signer.rotate("operator") == []


def _key_faults(sim: Sim) -> Iterator[str]:
    """The old key and every copy of it are gone, and the last note is signed by the new one."""
    if keys.old():
        yield "an old key is kept"
    for file in filter(Path.is_file, sim.folder.rglob("*")):
        secret = file.stat().st_size == KEY_BYTES and file.suffix != keys.HALF  # which is public
        if secret and file.name not in ("kek", "warrant_key", "key"):
            yield f"a copy of a key is left: {file.name}"
    newest = Checkpoint.objects.order_by("-size", "-id")[0]
    using = notes.verifier(newest.workspace.origin, keys.current())
    try:
        notes.open_checkpoint(bytes(newest.note), [using])
    except VerificationError as error:
        yield f"the new key did not sign: {error}"
    if using in sim.world.kept["verifiers"]:
        yield "the key was not changed"
    named = Envelope.objects.filter(kind="key").values_list("bytes", flat=True)
    vkeys = [decode(bytes(each))["out"]["vkey"] for each in named]  # type: ignore[call-overload,index]
    if len(vkeys) != len({*vkeys}):
        yield "a change was sealed twice"
    both = [bytes(each.note).count("\u2014 ".encode()) for each in Checkpoint.objects.all()]
    if 2 not in both:
        yield "no note leads from the old key to the new one"


def _paid_and_counted(sim: Sim) -> None:
    _invoice(invoice())(sim)
    sim.world.kept["size"] = Workspace.objects.get().size


PAID = Story(name="paid", tell=_invoice(invoice()), ends=(life.COMPLETED,), points_min=80)
APPROVED = replace(PAID, name="held and approved", tell=_invoice(OVER_LIMIT), points_min=95)
DECLINED = Story(
    name="declined card",
    tell=_invoice(invoice(), payment_method=CARD_DECLINED),
    ends=(life.FAILED,),
    points_min=70,
)
ERASED = Story(
    name="erased",
    before=_paid_for,
    tell=_erase,
    faults=_remains,
    ends=(life.COMPLETED,),
    points_min=20,
)
HELD_AND_ERASED = replace(
    ERASED, name="held, stopped and erased", before=_held, ends=(life.KILLED,)
)
SIGNED = Story(
    name="signed",
    before=_paid_and_counted,
    tell=_signed_later,
    ends=(life.COMPLETED,),
    points_min=30,
)
ROTATED = replace(
    SIGNED, name="key rotated", tell=_rotated, faults=_key_faults, points_min=40, every=5
)
TOGETHER = Story(
    name="two runs in shared commits",
    before=_two_started,
    tell=_together,
    ends=(life.COMPLETED,),
    points_min=90,
    every=14,
)
STORIES = (PAID, APPROVED, TOGETHER, DECLINED, ERASED, HELD_AND_ERASED, SIGNED, ROTATED)
