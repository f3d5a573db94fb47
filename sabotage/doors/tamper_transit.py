"""Alters data in transit: an export or bundle, a queue message, a warrant; nothing stored."""

import re
import tempfile
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from engine.errors import OutcomeUnknownError
from engine.evidence import bundles, published
from engine.models import Checkpoint, Envelope, Run, Workspace
from engine.queries.evidence import covering
from engine.runtime import warrants
from engine.store import programs, records
from engine.work import Work
from engine.worker import effects
from nanovm_core import verify
from nanovm_core.core.canonical import decode, encode
from nanovm_core.core.envelope import canonical_hash
from nanovm_core.core.messages import Effect, Snapshot
from nanovm_core.errors import CanonicalError, VerificationError
from sabotage.kit.code_locations import decided_in, where
from sabotage.kit.injector import InjectionError

LINES = "envelopes.ndjson"
SEQ = re.compile(r"^seq \d+: | \(seq \d+\)$")  # the verifier names places around its sentence
HOLDS = ("PASS", "UNPROVEN", "UNPINNED")  # words by which nothing wrong was found
Alter = Callable[[bytes], bytes]


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """What the stranger's verifier said of a file, and the line of it that decided."""

    word: str
    text: str = ""
    where: str = ""

    @property
    def holds(self) -> bool:
        return self.word in HOLDS


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """A run's record as it was served, whole and altered, and what the verifier said of both."""

    carrier: str  # bundle, export
    honest: Read
    altered: Read
    expected: str
    found: str


def served(run: Run, hit: int, alter: Alter, *, rewritten: bool) -> Served:
    """Serve a run's record, alter one envelope on the way, and ask the verifier about it.

    It goes as a bundle where a checkpoint covers the envelope, else as an export, which has
    its chain alone. ``rewritten``: whatever follows is made to fit again.

    Raises:
        InjectionError: the envelope cannot be rewritten, for it would be no envelope.
    """
    workspace = Workspace.objects.get(id=run.workspace_id)
    row = Envelope.objects.get(workspace=workspace, run=str(run.id), n=hit)
    checkpoint = covering(workspace, row.seq)
    honest = bytes(row.bytes)
    altered = alter(honest)

    def changed(lines: Sequence[bytes]) -> list[bytes]:
        at = lines.index(honest)
        before, after = [*lines[:at], altered], lines[at + 1 :]
        return [*before, *(_chained(altered, after) if rewritten else after)]

    with tempfile.TemporaryDirectory(prefix="nanovm-flight-") as folder:
        file = Path(folder) / "served"
        whole = _bundle(workspace, run, file, checkpoint) if checkpoint else _export(run, file)
        said = _asked(workspace, file)
        whole(changed, rewritten)
        answered = _asked(workspace, file)
    return Served(
        carrier="bundle" if checkpoint else "export",
        honest=said,
        altered=answered,
        expected=canonical_hash(honest),
        found=canonical_hash(altered),
    )


def warranted(run: Run) -> tuple[Work, Effect]:
    """The granted call that a run owes now, with its signed warrant, as its adapter gets it.

    Raises:
        InjectionError: no warrant is on its way.
    """
    now = _whole(run)
    effect = now.owed
    if effect is None or effect.warrant is None:
        raise InjectionError(
            "No warrant is in transit now. A warrant is sent with the payment and with the email. "
            "Fire this while the run is at charge or at seal, and not paused."
        )
    program = programs.program_of(run)
    token = warrants.token(program, now, effect)
    work = Work(
        run=run,
        program=program,
        slots=now.slots,
        effect=effect,
        begun_before=False,
        agent=program.acting(effect.tool, now.agent),
        token=token,
    )
    return work, effect


def shown_to_the_adapter(work: Work, token: bytes) -> tuple[str, str]:
    """Have the adapter do the call under this warrant: rule and place of its refusal.

    Both are empty where it acted.
    """
    try:
        effects.perform(replace(work, token=token))
    except OutcomeUnknownError as error:
        return error.code, decided_in(error)
    return "", ""


def _whole(run: Run) -> Snapshot:
    try:
        return records.verified(run).snapshot
    except VerificationError as error:
        raise InjectionError("The run's record is damaged. Attack another run.") from error


def _asked(workspace: Workspace, file: Path) -> Read:
    """What the verifier says, with the log's published key where there is one."""
    own = published.verifier(workspace.origin)
    try:
        stop = verify.verify(str(file), verify.Judge([own.vkey] if own else [], [], None))
        return Read(word=stop.word, text=stop.lines[0])
    except verify.Stop as stop:
        said = stop.lines[0]
        return Read(word=stop.word, text=said, where=where("", text=SEQ.sub("", said)))


Change = Callable[[Sequence[bytes]], list[bytes]]
Altered = Callable[[Change, bool], None]


def _export(run: Run, file: Path) -> Altered:
    """Write the run's export; returns what writes it altered, its trailer made to fit or not."""
    workspace = Workspace.objects.get(id=run.workspace_id)
    *lines, trailer = (line[:-1] for line in bundles.export_lines(workspace, run))
    file.write_bytes(_joined([*lines, trailer]))

    def alter(changed: Change, fits: bool) -> None:
        sent = changed(lines)
        head: Any = {**_fields(trailer), "head": canonical_hash(sent[-1])}
        file.write_bytes(_joined([*sent, encode(head) if fits else trailer]))

    return alter


def _bundle(workspace: Workspace, run: Run, file: Path, checkpoint: Checkpoint) -> Altered:
    """Write the run's bundle; returns what writes it altered."""
    bundles.write_bundle(workspace, run, file, checkpoint)

    def alter(changed: Change, _fits: bool) -> None:
        with zipfile.ZipFile(file) as archive:
            members = [(info, archive.read(info)) for info in archive.infolist()]
        with zipfile.ZipFile(file, "w") as archive:
            for info, data in members:
                lines = data.split(b"\n")[:-1] if info.filename == LINES else []
                archive.writestr(info, _joined(changed(lines)) if lines else data)

    return alter


def _chained(before: bytes, rest: Sequence[bytes]) -> list[bytes]:
    """The envelopes that follow, each naming the one before it as it is now."""
    made: list[bytes] = []
    for line in rest:
        named: Any = {**_fields(line), "prev": canonical_hash(before)}
        before = encode(named)
        made.append(before)
    return made


def _fields(line: bytes) -> dict[str, Any]:
    try:
        value = decode(line)
    except CanonicalError as error:
        raise InjectionError("A stored event is damaged. Attack another run.") from error
    return dict(value) if isinstance(value, dict) else {}


def _joined(lines: Sequence[bytes]) -> bytes:
    return b"".join(line + b"\n" for line in lines)
