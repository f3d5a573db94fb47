"""Rotates the files under ``logs/`` while others go on writing them, and keeps secrets out."""

import fcntl
import logging
import os
import re
import shutil
from pathlib import Path

BYTES_MAX = 10_000_000  # of one file; what is written within a sweep comes on top
KEPT = 5  # older files of each name: 60 MB with the one that is written
RENAMED = "app.log"
# The secret in the address of a link, and the tokens of agents; mistyped ones too.
SECRET = re.compile(r"(/l/+|nvm1\.)[^/\s\"'?]{20,}", re.IGNORECASE)


def rotate(folder: Path) -> None:
    """Put what a file that is too long holds into ``<name>.1``, that into ``<name>.2``, and so on.

    One process at a time does it; another one finds it done. Every process writes ``app.log``
    itself and looks for it before each line (``WatchedFileHandler``): it is renamed, and no line
    is lost. Each other file is the open output of one process: it is copied and emptied, and a
    line that is written between the two is lost.
    """
    with (folder / "rotate.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return
        for path in sorted(folder.glob("*.log")):
            if path.stat().st_size > BYTES_MAX:
                _rotate(path)


def _rotate(path: Path) -> None:
    names = [path.with_name(f"{path.name}.{number}") for number in range(1, KEPT + 1)]
    for older, newer in zip(reversed(names[1:]), reversed(names[:-1]), strict=True):
        if newer.exists():
            newer.replace(older)
    if path.name == RENAMED:
        path.replace(names[0])
    else:
        shutil.copyfile(path, names[0])
        os.truncate(path, 0)  # its writer appends: it goes on at the new end


class WithoutSecrets(logging.Filter):
    """Writes dots for these secrets, in a line and in the traceback below it."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Keep every line; of one that has one, the text without the secret."""
        said = record.getMessage()
        if SECRET.search(said):
            record.msg, record.args = SECRET.sub(r"\1…", said), ()
        if record.exc_info:  # what is formatted already, no formatter writes again
            text = logging.Formatter().formatException(record.exc_info)
            record.exc_text = SECRET.sub(r"\1…", text)
        return True
