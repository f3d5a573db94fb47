"""Which database holds everything: SQLite in the data folder, or the PostgreSQL of DATABASE_URL."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from django.core.exceptions import ImproperlyConfigured

LOCK_SECONDS_MAX = 20  # a wait for a lock that takes longer fails, and writes nothing
CONNECT_SECONDS_MAX = 10
SCHEMES = ("postgresql", "postgres")
# The libpq options that an address may set; the application sets the others.
ADMITTED = ("application_name", "connect_timeout", "sslcert", "sslkey", "sslmode", "sslrootcert")
# The log is copied into the database every 4,000 pages (16 MB), not every 1,000: the pages that
# each commit changes are copied once for four times as many of them.
PRAGMAS = (
    "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;"
    " PRAGMA wal_autocheckpoint=4000; PRAGMA cache_size=-16000;"
)
# Whatever the server's own defaults are: durable at every commit, and the isolation that the
# commit path was written for (it locks before it reads).
SESSION = (
    "-c synchronous_commit=on"
    r" -c default_transaction_isolation=read\ committed"
    f" -c lock_timeout={LOCK_SECONDS_MAX}s"
)


def database(environ: Mapping[str, str], folder: Path) -> dict[str, Any]:
    """Django's settings of the one database.

    Raises:
        ImproperlyConfigured: where DATABASE_URL is no address of a PostgreSQL database. The
            address is never repeated: it may hold a password.
    """
    address = environ.get("DATABASE_URL", "")
    return _postgres(address) if address else _sqlite(folder)


def _sqlite(folder: Path) -> dict[str, Any]:
    """SQLite, durable at every commit.

    IMMEDIATE takes the write lock at BEGIN: a deferred read-then-write transaction would be
    refused with "database is locked" instead of waiting its turn.
    """
    return {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": folder / "app.sqlite3",
        "OPTIONS": {
            "transaction_mode": "IMMEDIATE",
            "timeout": LOCK_SECONDS_MAX,
            "init_command": PRAGMAS,
            "detect_types": 0,  # the ORM's own converters do what the driver's would do once more
        },
        # A file, as in the application: a database in memory locks by other rules.
        "TEST": {"NAME": folder / "test.sqlite3"},
    }


def _postgres(address: str) -> dict[str, Any]:
    try:
        parts = urlsplit(address)
        user, password, host, name = map(_plain, _named(parts))
        port = parts.port
        told = dict(_told(parts.query))
    except ValueError:
        raise _refused("cannot be read") from None  # the error would quote the address
    if parts.scheme not in SCHEMES:
        raise _refused("names no PostgreSQL database")
    if not name or "/" in name:
        raise _refused("does not name one database after the server")
    if parts.fragment or not address.isprintable() or " " in address:
        raise _refused("holds signs that an address has not")
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": name,
        "USER": user,
        "PASSWORD": password,
        "HOST": host,
        "PORT": str(port or ""),
        "OPTIONS": {
            "connect_timeout": str(CONNECT_SECONDS_MAX),
            **told,
            "options": SESSION,
            "prepare_threshold": 1,  # of the commit path's cursors alone: the ORM's never prepare
        },
    }


def _named(parts: SplitResult) -> tuple[str, str, str, str]:
    """User, password, host and database as they are written; the case of the host is kept.

    A host may be the percent-encoded folder of a socket.
    """
    host = parts.netloc.rpartition("@")[2]
    plain = parts.hostname or "" if host.startswith("[") else host.partition(":")[0]
    return parts.username or "", parts.password or "", plain, parts.path.removeprefix("/")


def _plain(text: str) -> str:
    return unquote(text, errors="strict")


def _told(query: str) -> list[tuple[str, str]]:
    """What is said to libpq, each once."""
    pairs = parse_qsl(query, keep_blank_values=True, strict_parsing=True, errors="strict")
    names = [name for name, _ in (pairs if query else [])]
    if not {*names} <= {*ADMITTED}:  # unnamed: a slip may have put a password's end there
        raise _refused(f"sets more than it may, which is {', '.join(ADMITTED)}")
    if len({*names}) != len(names):
        raise _refused("sets something twice")
    return pairs


def _refused(why: str) -> ImproperlyConfigured:
    return ImproperlyConfigured(
        f"DATABASE_URL {why}; write postgresql://user:password@host:5432/name "
        "(signs like @ and / in a part percent-encoded), or unset it to use SQLite."
    )
