"""Which database holds everything: SQLite in the data folder, or the PostgreSQL of DATABASE_URL."""

from pathlib import Path
from typing import Any

LOCK_SECONDS_MAX = 20  # a wait for a lock that takes longer fails, and writes nothing
CONNECT_SECONDS_MAX = 10
# A server that is no longer there is noticed, whether it owes an answer or an acknowledgement.
ALIVE = {
    "keepalives_idle": "10",
    "keepalives_interval": "5",
    "keepalives_count": "2",
    "tcp_user_timeout": str(LOCK_SECONDS_MAX * 1_000),
}
SCHEMES = ("postgresql://", "postgres://")
# The libpq options that an address may set, each once; the application sets the others.
ADMITTED = ("application_name", "connect_timeout", "sslcert", "sslkey", "sslmode", "sslrootcert")
# The log is copied into the database every 4,000 pages (16 MB), not every 1,000: the pages that
# each commit changes are copied once for four times as many of them.
PRAGMAS = (
    "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;"
    " PRAGMA wal_autocheckpoint=4000; PRAGMA cache_size=-16000; PRAGMA temp_store=MEMORY;"
)
# Whatever the server's own defaults are: durable at every commit, and the isolation that the
# commit path was written for (it locks before it reads).
SESSION = (
    "-c synchronous_commit=on"
    r" -c default_transaction_isolation=read\ committed"
    f" -c lock_timeout={LOCK_SECONDS_MAX}s"
)


def sqlite(folder: Path) -> dict[str, Any]:
    """Django's settings of SQLite, durable at every commit.

    IMMEDIATE takes the write lock at BEGIN: a deferred read-then-write transaction would be
    refused with "database is locked" instead of waiting its turn.
    """
    return {
        "ENGINE": "engine.store.sqlite",
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


def postgres(address: str) -> dict[str, Any]:
    """Django's settings of a PostgreSQL address, which libpq itself takes apart.

    Raises:
        ValueError: it is no address of one database, or it sets an option that is not admitted.
    """
    from psycopg import ProgrammingError  # SQLite does not wait for its import
    from psycopg.conninfo import conninfo_to_dict

    options = [each.partition("=")[0] for each in address.partition("?")[2].split("&") if each]
    admitted = {*options} <= {*ADMITTED} and len({*options}) == len(options)
    plain = address.isprintable() and not {" ", "#"} & {*address}
    if not (address.startswith(SCHEMES) and plain and admitted):
        raise ValueError
    try:
        told = conninfo_to_dict(address)
    except ProgrammingError:
        raise ValueError from None  # libpq's text quotes the address
    name, port = (str(told.pop(part, "")) for part in ("dbname", "port"))
    if not name or "/" in name or (port and not 0 < int(port) < 65_536):
        raise ValueError
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": name,
        "PORT": port,
        **{part.upper(): told.pop(part, "") for part in ("user", "password", "host")},
        "OPTIONS": {
            "connect_timeout": str(CONNECT_SECONDS_MAX),
            **ALIVE,
            **told,
            "options": SESSION,
        },
    }
