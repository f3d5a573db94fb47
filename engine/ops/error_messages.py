"""What is wrong with a database or a file, in one sentence: what, why, and what to do."""

import errno
import sqlite3
from collections.abc import Mapping

from django import db
from django.conf import settings

# The key store's own database is reached without Django.
DATABASE_ERRORS = (db.DatabaseError, db.InterfaceError, sqlite3.OperationalError)
# A fault of the code.
PROGRAMMING_ERRORS = (db.DataError, db.IntegrityError, db.NotSupportedError, db.ProgrammingError)

LOCKED = "Another process holds it and did not let go: wait until that is done, or end it"
FULL = "Its disk is full: make room on the disk of {where}"
READ_ONLY = "It may only be read: let this user write in {where}"
UNOPENED = "See that {where} is there, and that this user may read and write in it"
UNSOUND = "See that the disk of {where} has room and is sound"
DAMAGED = "It is damaged: put it back from a backup and run manage.py restore"
HELD = "See that nothing else holds the files in {where}"
SERVER = "See that the server that DATABASE_URL names runs and lets this user make tables"
_SQLITE: Mapping[int, str] = {
    sqlite3.SQLITE_BUSY: LOCKED,
    sqlite3.SQLITE_LOCKED: LOCKED,
    sqlite3.SQLITE_FULL: FULL,
    sqlite3.SQLITE_READONLY: READ_ONLY,
    sqlite3.SQLITE_CANTOPEN: UNOPENED,
    sqlite3.SQLITE_PERM: UNOPENED,
    sqlite3.SQLITE_IOERR: UNSOUND,
    sqlite3.SQLITE_CORRUPT: DAMAGED,
    sqlite3.SQLITE_NOTADB: DAMAGED,
}
_POSTGRES: Mapping[str, str] = {
    "55P03": LOCKED,  # lock_not_available
    "53100": FULL,  # disk_full
    "25006": READ_ONLY,  # read_only_sql_transaction
}
_FILES: Mapping[int, str] = {
    errno.ENOENT: "Give the path of one that is there",
    errno.ENOTDIR: "Give the path of one that is there",
    errno.EISDIR: "Give the path of a file in it",
    errno.EACCES: "Give this user the right to it, or another path",
    errno.EPERM: "Give this user the right to it, or another path",
    errno.EROFS: "Give a path on a disk that can be written",
    errno.ENOSPC: "Make room on the disk",
    errno.EDQUOT: "Make room on the disk",
    errno.ELOOP: "Give the path of the file itself",
}


def of_database(error: BaseException, then: str) -> str:
    """What is wrong with the database; ``then`` is what to do once it is mended."""
    said = (str(error).strip() or type(error).__name__).splitlines()[0].rstrip(".")
    return f"The database cannot be used: {said}. {_advice(error)}. {then}"


def of_file(error: OSError) -> str:
    """What is wrong with a file; a sentence of our own stays as it is."""
    if error.errno is None or error.strerror is None:
        return str(error)
    what = error.strerror if error.filename is None else f"{error.filename}: {error.strerror}"
    advice = _FILES.get(error.errno)
    return f"{what}. {advice}, and give the command again." if advice else f"{what}."


def _advice(error: BaseException) -> str:
    """What to do, told by the driver's own code, wherever Django wraps its error."""
    found: BaseException | None = error
    while found is not None and not _code(found):
        found = found.__cause__ or found.__context__
    if db.connection.vendor == "postgresql" and not isinstance(error, sqlite3.Error):
        text, where = _POSTGRES.get(str(_code(found)), SERVER), "the server"
    else:
        text = _SQLITE.get(int(_code(found) or 0) & 0xFF, HELD)
        where = str(settings.NANOVM_DATA)
    return text.format(where=where)


def _code(error: BaseException | None) -> int | str | None:
    """SQLite's code (its lowest byte is the kind) or PostgreSQL's state."""
    code: int | str | None = getattr(error, "sqlite_errorcode", None)
    return code or getattr(error, "sqlstate", None)
