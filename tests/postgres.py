"""A PostgreSQL server of the tests' own, where NANOVM_TEST_DATABASE=postgres asks for one."""

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

import psycopg

WANTED = os.environ.get("NANOVM_TEST_DATABASE", "sqlite") == "postgres"
USER = "nanovm"
START_SECONDS_MAX = 60
STOP_SECONDS_MAX = 10
# Named when the settings are read, made when the server starts: the path of a socket is short.
FOLDER = Path(tempfile.gettempdir()) / f"nanovm-pg-{os.getpid()}"
# A crash of the machine is not what these tests are about; that of a client is.
SETTINGS = ("fsync=off", "autovacuum=off", "listen_addresses=", "max_connections=200")


def url(name: str) -> str:
    """The address of one of its databases."""
    return f"postgresql://{USER}@{quote(str(FOLDER), safe='')}/{name}"


@contextmanager
def server() -> Iterator[None]:
    """It answers on a socket in FOLDER for the length of the block, and takes its data along."""
    folder, owner = FOLDER, _owner()
    folder.mkdir(mode=0o700)
    try:
        if owner is not None:
            os.chown(folder, owner.pw_uid, owner.pw_gid)
        data = str(folder / "data")
        made = ["initdb", "-D", data, "-U", USER, "-A", "trust", "--no-sync"]
        _run(owner, [*made, "--encoding=UTF8", "--no-locale"])
        given = [word for each in SETTINGS for word in ("-c", each)]
        with (folder / "log").open("wb") as log:
            popen = subprocess.Popen(
                _as(owner, ["postgres", "-D", data, "-k", str(folder), *given]),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=folder,
            )
        try:
            _await(popen, folder / "log")
            yield
        finally:
            _stop(popen)
    finally:
        shutil.rmtree(folder)


def execute(statement: str, name: str = "postgres") -> None:
    """Run a statement by itself, outside any transaction."""
    with psycopg.connect(url(name), autocommit=True) as connection:
        connection.execute(statement.encode())


def empty(name: str) -> None:
    """Delete every row of a database but those of its schema, and end its connections."""
    with psycopg.connect(url(name), autocommit=True) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
        connection.execute("SET session_replication_role = replica")
        tables = connection.execute(
            "SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace"
            " AND relkind = 'r' AND relname NOT IN ('django_migrations', 'pipeline_schema')"
        ).fetchall()
        connection.execute("; ".join(f'DELETE FROM "{table}"' for (table,) in tables).encode())


def folder_of(name: str) -> Path:
    """Where the server keeps a database, with everything that was written so far."""
    with psycopg.connect(url(name), autocommit=True) as connection:
        connection.execute("CHECKPOINT")
        row = connection.execute("SELECT pg_relation_filepath('pg_class')").fetchone()
    assert row is not None
    return (FOLDER / "data" / str(row[0])).parent


def _owner() -> pwd.struct_passwd | None:
    """Who runs it: PostgreSQL refuses root, who steps down to its package's own account."""
    if os.getuid() != 0:
        return None
    known = {each.pw_name: each for each in pwd.getpwall()}
    return known.get("postgres") or known["nobody"]


def _as(owner: pwd.struct_passwd | None, command: Sequence[str]) -> list[str]:
    """The command as that account, ended with us whatever happens to us."""
    words = [str(_program(command[0])), *command[1:]]
    if not shutil.which("setpriv"):
        return words
    tied = ["setpriv", "--pdeathsig", "INT"]  # PostgreSQL's "at once, in good order"
    if owner is not None:
        tied += ["--reuid", str(owner.pw_uid), "--regid", str(owner.pw_gid), "--clear-groups"]
    return [*tied, *words]


def _program(name: str) -> Path:
    """The server's program: in the path, or where Debian's package puts its newest version."""
    found = shutil.which(name)
    if found:
        return Path(found)
    there = Path("/usr/lib/postgresql").glob(f"*/bin/{name}")
    newest = max(there, key=lambda each: int(each.parts[-3]), default=None)
    if newest is None:
        raise FileNotFoundError(
            f"{name} was not found; install PostgreSQL (on Debian: apt-get install postgresql), "
            "or run the tests without NANOVM_TEST_DATABASE=postgres."
        )
    return newest


def _run(owner: pwd.struct_passwd | None, command: Sequence[str]) -> None:
    done = subprocess.run(
        _as(owner, command), cwd=FOLDER, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise RuntimeError(f"{command[0]} failed: {done.stderr.strip()}")


def _await(popen: subprocess.Popen[bytes], log: Path) -> None:
    """Wait until it takes connections; its end is seen at once."""
    deadline = time.monotonic() + START_SECONDS_MAX
    while True:
        try:
            execute("SELECT 1")
        except psycopg.OperationalError:
            if popen.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"PostgreSQL did not start: {log.read_text()}") from None
            time.sleep(0.02)
        else:
            return


def _stop(popen: subprocess.Popen[bytes]) -> None:
    popen.send_signal(signal.SIGINT)
    try:
        popen.wait(STOP_SECONDS_MAX)
    except subprocess.TimeoutExpired:
        popen.kill()
        popen.wait()
