"""Bundles, receipts and exports of a log, which are verified without a server."""

import os
import stat
import tempfile
import zipfile
from base64 import b64encode
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from itertools import chain
from pathlib import Path
from typing import IO
from uuid import UUID

from django.db.models import QuerySet

from engine.application import installed
from engine.models import Checkpoint, Envelope, Run, Secret, Workspace
from engine.store import logs, sql, tree
from engine.vault import secret_store
from nanovm_core.core.canonical import Json, encode
from nanovm_core.core.envelope import canonical_hash
from nanovm_core.errors import VerificationError
from nanovm_core.proof import notes
from nanovm_core.proof.notes import Head

BUNDLE = "nanovm-bundle/1"
EXPORT = "nanovm-export/1"
CHUNK_ROWS = 200  # envelopes in memory at a time, for each reader of an export
_NEWEST = "WHERE workspace_id = %s ORDER BY size DESC, id DESC"
BORN = (1980, 1, 1, 0, 0, 0)  # the same content is the same archive, whenever it is made


def write_bundle(
    workspace: Workspace,
    run: Run | None,
    file: Path,
    checkpoint: Checkpoint,
    *,
    disclosures: bool = False,
) -> int:
    """Write the bundle of a log, or of one run of it, up to a checkpoint; says how many leaves.

    The bundle holds exactly what is stored, damaged or not, so that its reader finds the damage.
    The file is written whole or not at all. ``disclosures`` adds the values of secrets.

    Raises:
        VerificationError: LOG-008, where no stored node proves an envelope of the run.
        OSError: in a sentence, where the file cannot be written.
    """
    head = _head(workspace, checkpoint)
    with _whole(file) as opened, zipfile.ZipFile(opened, "w") as archive:
        rows = _run_rows(workspace, run).filter(seq__lt=head.size) if run else None
        stored = _of_log(workspace, 0, head.size) if rows is None else _of_run(rows)
        leaves = _add(archive, "envelopes.ndjson", (data + b"\n" for data in stored))
        if rows is not None:
            seqs = rows.values_list("seq", flat=True)
            proofs: dict[str, Json] = {str(seq): _proof(workspace.id, seq, head) for seq in seqs}
            _add(archive, "proofs.json", [encode(proofs)])
        scope: dict[str, Json] = {"kind": "run", "run": str(run.id)} if run else {"kind": "log"}
        said = {"scope": scope, "size": head.size, "leaves": leaves}
        manifest = {"v": BUNDLE, "log": workspace.origin, **said}
        _add(archive, "manifest.json", [encode(manifest)])
        _add(archive, "checkpoint", [bytes(checkpoint.note)])
        if disclosures:
            _add(archive, "disclosures.ndjson", _disclosures(workspace, run))
    return leaves


def write_export(workspace: Workspace, file: Path, first: int) -> None:
    """Write the export of a log, whole or not at all."""
    with _whole(file) as opened:
        opened.writelines(export_lines(workspace, None, first))


def place(file: Path) -> Path:
    """The file to write: the named one, or the target of a link.

    Raises:
        OSError: the folder does not exist, or the name is a folder, a device, a pipe or a
            socket, which the file would replace.
    """
    target = Path(os.path.realpath(file))
    folder = target.parent if file.is_symlink() else file.absolute().parent
    if not folder.is_dir():
        text = f"There is no folder {folder}; make it, or give -o a path in a folder there is."
        raise NotADirectoryError(text)
    try:
        mode = file.stat().st_mode  # of the name as it was given: /dev/stdout leads to a pipe
    except FileNotFoundError:
        return target
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(f"{file} is a folder; give -o the path of a file in it.")
    if not stat.S_ISREG(mode):
        text = f"{file} is a device, a pipe or a socket, which a whole file would take the place of"
        raise FileExistsError(f"{text}; give -o the path of a file.")
    return target


@contextmanager
def _whole(file: Path) -> Iterator[IO[bytes]]:
    """A draft beside the file, which replaces it once all is written."""
    target, draft = place(file), ""
    try:
        handle, draft = tempfile.mkstemp(dir=target.parent, prefix=".bundle-")
        with os.fdopen(handle, "wb") as opened:
            yield opened
        Path(draft).replace(target)
    except OSError as error:
        if error.errno is None or (draft and error.filename not in (None, draft)):
            raise  # of what was read
        text = f"{file} cannot be written ({error.strerror}); give -o a path in a folder that takes"
        raise OSError(f"{text} new files, on a disk with room.") from error
    finally:
        if draft:
            Path(draft).unlink(missing_ok=True)


def receipt(workspace: Workspace, chain: str, n: int) -> dict[str, Json] | None:
    """The proof that an envelope is in the log, for its reader to keep.

    ``chain`` is its name in the log: a run's id, or ``log``. None until a checkpoint covers the
    envelope, a minute at most.

    Raises:
        VerificationError: LOG-002 where there is no such envelope, LOG-008 where no stored
            node proves it.
    """
    row = Envelope.objects.filter(workspace=workspace, run=chain, n=n).first()
    if row is None:
        raise VerificationError("LOG-002", f"The chain has no envelope n = {n}.", at=n)
    checkpoint = newest(workspace)
    if checkpoint is None or checkpoint.size <= row.seq:
        return None
    return {
        "run": chain,
        "n": n,
        "seq": row.seq,
        "canonical_hash": canonical_hash(bytes(row.bytes)),
        "checkpoint": bytes(checkpoint.note).decode(),
        "proof": _proof(workspace.id, row.seq, _head(workspace, checkpoint)),
    }


def export_lines(workspace: Workspace, run: Run | None, first: int = 0) -> Iterator[bytes]:
    """The lines of a log up to its newest checkpoint, or of all of one run; a trailer last.

    A log that was never signed goes out whole, without a checkpoint. ``first`` leaves out the
    envelopes before that seq, for a reader who has them. Of a shorter log the trailer is exported
    alone, which tells that reader so. The lines are streamed.
    """
    checkpoint = newest(workspace)
    size = logs.size(workspace.id) if checkpoint is None else checkpoint.size
    rows = _of_run(_run_rows(workspace, run)) if run else _of_log(workspace, first, size)
    count, head = 0, "0" * 64
    for data in rows:
        count, head = count + 1, canonical_hash(data)
        yield data + b"\n"
    note = None if checkpoint is None else bytes(checkpoint.note).decode()
    trailer: dict[str, Json] = {"v": EXPORT, "count": count, "head": head, "checkpoint": note}
    yield encode(trailer | ({"first": first} if first else {})) + b"\n"


def newest(workspace: Workspace) -> Checkpoint | None:
    """The newest stored checkpoint of a log that says what a checkpoint of it says.

    Whose signature it bears is for the reader to check, with a key from elsewhere.
    """
    for row in sql.rows_in_parts(Checkpoint, (sql.key(workspace.id),), _NEWEST, 1):
        with suppress(VerificationError):  # a planted row: the checkpoints before it are valid
            _head(workspace, row)
            return row
    return None


def _head(workspace: Workspace, checkpoint: Checkpoint) -> Head:
    head = notes.parse_head(notes.text_of(bytes(checkpoint.note)))
    if (head.origin, head.size) != (workspace.origin, checkpoint.size):
        raise VerificationError(notes.CODE, "The stored checkpoint belongs to another log.", at=-1)
    return head


def _run_rows(workspace: Workspace, run: Run) -> QuerySet[Envelope]:
    return Envelope.objects.filter(workspace=workspace, run=str(run.id)).order_by("n")


def _of_run(rows: QuerySet[Envelope]) -> Iterator[bytes]:
    return (bytes(each.bytes) for each in logs.in_parts(rows, "n", CHUNK_ROWS))


def _of_log(workspace: Workspace, first: int, size: int) -> Iterator[bytes]:
    rows = Envelope.objects.filter(workspace=workspace, seq__gte=first, seq__lt=size)
    return (bytes(each.bytes) for each in logs.in_parts(rows, "seq", CHUNK_ROWS))


def _proof(workspace: UUID, seq: int, head: Head) -> list[Json]:
    return [b64encode(each).decode() for each in tree.inclusion(workspace, seq, head)]


def _disclosures(workspace: Workspace, run: Run | None) -> Iterator[bytes]:
    """A line for each secret that still opens and is a text; documents are none.

    What applications disclose goes with the whole log, and with no single run.
    """
    found = Secret.objects.filter(run__workspace=workspace, erased_ms=None).order_by("ref")
    named = found.filter(run=run) if run else found
    refs = named.values_list("ref", flat=True).iterator(chunk_size=CHUNK_ROWS)
    own = ((ref, *each) for ref in refs for each in secret_store.openings([ref]).values())
    theirs = (each.disclosed(workspace) for each in (() if run else installed()))
    for ref, r, value in chain(own, *theirs):
        with suppress(UnicodeDecodeError):
            yield encode({"ref": ref, "value": value.decode(), "r": r.hex()}) + b"\n"


def _add(archive: zipfile.ZipFile, name: str, parts: Iterable[bytes]) -> int:
    """Write a member from its parts, and say how many they were."""
    info = zipfile.ZipInfo(name, BORN)
    info.compress_type, info.external_attr = zipfile.ZIP_DEFLATED, 0o644 << 16
    count = 0
    with archive.open(info, "w", force_zip64=name == "envelopes.ndjson") as member:
        for part in parts:
            member.write(part)
            count += 1
    return count
