"""The data folders that releases made, as they are checked in: packed, and what is in them."""

import io
import json
import lzma
import sqlite3
import tarfile
from collections.abc import Iterable, Mapping
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path

FOLDERS = Path(__file__).with_name("folders")
ENDING = ".tar.xz"
MANIFEST, DATA = "manifest.json", "data"
APART = ("-shm", "-wal", ".lock", ".log")  # what processes made for themselves


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """What a folder was made with: its schema and release, when, its runs and logs."""

    schema: int
    release: str
    made_ms: int
    runs: Mapping[str, str]  # completed, suspended, running, erased: their ids
    logs: Mapping[str, str]  # main (with the runs), other (with the erased one): their names
    vkeys: Mapping[str, str]  # of each log, by its name
    revoked: str  # the tool that the other log's agent may not call any more


def kept_folders() -> list[Path]:
    """The folders of all releases, oldest first."""
    return sorted(FOLDERS.glob(f"*{ENDING}"), key=lambda each: int(each.name[7 : -len(ENDING)]))


def pack(folder: Path, kept: Kept) -> Path:
    """Pack an unused folder, with its manifest, as the one of its schema."""
    for file in folder.glob("*.sqlite3"):
        with closing(sqlite3.connect(file)) as database:
            database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    to = FOLDERS / f"schema-{kept.schema}{ENDING}"
    said = json.dumps(asdict(kept), indent=1, sort_keys=True).encode()
    with lzma.open(to, "wb", preset=9) as packed, tarfile.open(fileobj=packed, mode="w|") as tar:
        _add(tar, MANIFEST, said)
        for file in packed_files(folder):
            _add(tar, f"{DATA}/{file.relative_to(folder)}", file.read_bytes())
    return to


def unpack(packed: Path, folder: Path) -> Kept:
    """Lay a folder out as its release left it; what is in it."""
    said = b""
    with tarfile.open(packed, "r:xz") as tar:
        for member in tar:
            file = tar.extractfile(member)
            assert file is not None, member.name
            if member.name == MANIFEST:
                said = file.read()
                continue
            place = folder / Path(member.name).relative_to(DATA)
            place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            place.write_bytes(file.read())
            place.chmod(0o600)
    return Kept(**json.loads(said))


def packed_files(folder: Path) -> Iterable[Path]:
    """The files of a folder that are kept."""
    for file in sorted(folder.rglob("*")):
        if file.is_file() and not file.name.endswith(APART):
            yield file


def _add(tar: tarfile.TarFile, name: str, data: bytes) -> None:
    member = tarfile.TarInfo(name)
    member.size, member.mode = len(data), 0o600
    tar.addfile(member, io.BytesIO(data))
