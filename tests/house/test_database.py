"""Which database the settings name, and what they refuse."""

import traceback
from pathlib import Path
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured

from config.database import ALIVE, SESSION, sqlite
from config.environment import value
from tests.house.demo import refusal

FOLDER = Path("data")
SECRET = "hunter2"


def named(address: str) -> dict[str, Any]:
    """The settings of an address."""
    found: dict[str, Any] = value("DATABASE_URL", {"DATABASE_URL": address})
    return found


def test_without_an_address_it_is_sqlite_in_the_data_folder() -> None:
    assert value("DATABASE_URL", {}) is value("DATABASE_URL", {"DATABASE_URL": ""}) is None
    chosen = sqlite(FOLDER)
    assert chosen["ENGINE"] == "engine.store.sqlite"
    assert chosen["NAME"] == FOLDER / "app.sqlite3"


@pytest.mark.parametrize(
    ("address", "parts", "options"),
    [
        ("postgresql://u:p%40%2Fw@db.example:5433/n", "u p@/w db.example 5433 n", {}),
        ("postgres://u@[::1]:5432/n", "u  ::1 5432 n", {}),
        ("postgresql://u@%2Frun%2FPostgres/n", "u  /run/Postgres  n", {}),
        ("postgresql:///n%20m", "    n m", {}),
        (
            "postgresql://u@h/n?sslmode=verify-full&sslrootcert=ca.pem&connect_timeout=3",
            "u  h  n",
            {"connect_timeout": "3", "sslmode": "verify-full", "sslrootcert": "ca.pem"},
        ),
    ],
)
def test_an_address_is_taken_apart(address: str, parts: str, options: dict[str, str]) -> None:
    chosen = named(address)
    assert chosen["ENGINE"] == "django.db.backends.postgresql"
    fields = ("USER", "PASSWORD", "HOST", "PORT", "NAME")
    assert " ".join(chosen[field] for field in fields) == parts
    usual = {**ALIVE, "connect_timeout": "10", "options": SESSION}
    assert chosen["OPTIONS"] == {**usual, **options}


@pytest.mark.parametrize(
    "address",
    [
        f"mysql://u:{SECRET}@h/n",
        f"u:{SECRET}@h/n",
        f"postgresql://u:{SECRET}@h",
        f"postgresql://u:{SECRET}@h/",
        f"postgresql://u:{SECRET}@h/n/m",
        f"postgresql://u:{SECRET}@h:port/n",
        f"postgresql://u:{SECRET}@h:65536/n",
        f"postgresql://u:{SECRET}@h1:1,h2:2/n",
        f"postgresql://u:{SECRET}@[::1/n",
        f"postgresql://u:{SECRET}%ff@h/n",
        f"postgresql://u:{SECRET}@h/n?sslmode",
        f"postgresql://u:pa?{SECRET}@h/n",
        f"postgresql://u:5?{SECRET}=@h/n",
        f"postgresql://u:{SECRET}@h/n?options=-c%20fsync=off",
        f"postgresql://u:{SECRET}@h/n?sslmode=require&sslmode=disable",
        f"postgresql://u:{SECRET}@h/n?%6Fptions=-c",
        f"postgresql://u:{SECRET}@h/n?host=other",
        f"postgresql://u:{SECRET}@h/n#m",
        f"postgresql://u:{SECRET}@h/n m",
        f"postgresql://u:{SECRET}@h/n\n",
    ],
)
def test_what_is_no_address_is_refused_and_not_repeated(address: str) -> None:
    with pytest.raises(ImproperlyConfigured, match="DATABASE_URL is not the address") as refusal:
        named(address)
    assert SECRET not in "".join(traceback.format_exception(refusal.value))  # as in a log


def test_a_server_that_does_not_answer_is_one_sentence(tmp_path: Path) -> None:
    address = f"postgresql://u:{SECRET}@%2Fnowhere/n"
    said = refusal(tmp_path, "manage.py", "demo", DATABASE_URL=address)
    assert "The database cannot be used: " in said
    assert "See that the server that DATABASE_URL names runs" in said
    assert SECRET not in said


def test_what_the_settings_refuse_is_one_sentence(tmp_path: Path) -> None:
    said = refusal(tmp_path, "manage.py", "check", DATABASE_URL=f"redis://:{SECRET}@h/0")
    assert "DATABASE_URL is not the address" in said
