"""The application on a PostgreSQL server: its session, its first start, its whole demo."""

import json
import signal
import subprocess
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psycopg
import pytest

from tests import postgres
from tests.house.demo import processes_of, ran, refusal, start
from tests.kit.databases import on_postgres_alone

pytestmark = on_postgres_alone
ASKED = ("synchronous_commit", "default_transaction_isolation", "lock_timeout")


@pytest.fixture
def address(database_server: None) -> Iterator[str]:
    """A database with nothing in it."""
    postgres.execute("CREATE DATABASE empty")
    yield postgres.url("empty")
    postgres.execute("DROP DATABASE empty")  # nobody is connected any more, or this fails


def test_a_session_is_durable_and_isolated_whatever_the_servers_defaults(
    address: str, tmp_path: Path
) -> None:
    postgres.execute("ALTER DATABASE empty SET synchronous_commit = off")
    postgres.execute("ALTER DATABASE empty SET default_transaction_isolation = serializable")
    ask = "SELECT " + ", ".join(f"current_setting('{name}')" for name in ASKED)
    script = (
        "import django; django.setup(); from django.db import connection; "
        f"cursor = connection.cursor(); cursor.execute({ask!r}); print(cursor.fetchone())"
    )
    known = {"DATABASE_URL": address, "DJANGO_SETTINGS_MODULE": "config.settings"}
    asked = ran(tmp_path, "-c", script, **known)
    assert asked.stdout.strip() == str(("on", "read committed", "20s"))


def test_commands_that_start_at_once_make_the_tables_once(address: str, tmp_path: Path) -> None:
    def checked(_: int) -> subprocess.CompletedProcess[str]:
        return ran(tmp_path, "manage.py", "fsck", "--json", DATABASE_URL=address)

    with ThreadPoolExecutor(2) as pool:
        ended = [*pool.map(checked, range(2))]
    assert [each.returncode for each in ended] == [0, 0], ended
    assert not [*tmp_path.glob("app.sqlite3*")]


def test_a_user_who_may_make_no_tables_is_one_sentence(address: str, tmp_path: Path) -> None:
    postgres.execute("CREATE ROLE stranger LOGIN")
    strange = address.replace("nanovm@", "stranger@")
    assert "permission denied" in refusal(tmp_path, "manage.py", "fsck", DATABASE_URL=strange)


def test_the_demo_runs_on_it_and_leaves_neither_process_nor_connection(
    address: str, tmp_path: Path
) -> None:
    demo = start(tmp_path / "data", DATABASE_URL=address)
    try:
        with urllib.request.urlopen(f"{demo.url}/healthz") as answer:
            assert json.load(answer)["database"] == "ok"
        with urllib.request.urlopen(f"{demo.url}/") as answer:
            assert answer.status == 200
        assert demo.signal(signal.SIGINT) == 0
    finally:
        demo.close()
    assert processes_of(demo.data) == []
    with psycopg.connect(postgres.url("postgres")) as connection:
        counted = "SELECT count(*) FROM pg_stat_activity WHERE datname = 'empty'"
        assert connection.execute(counted).fetchone() == (0,)
