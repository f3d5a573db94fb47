"""Which database the settings name, and what they refuse."""

from pathlib import Path
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured

from config.database import SESSION, database
from tests.house.demo import refusal

FOLDER = Path("data")
SECRET = "hunter2"


def named(address: str) -> dict[str, Any]:
    """The settings of an address."""
    return database({"DATABASE_URL": address}, FOLDER)


@pytest.mark.parametrize("environ", [{}, {"DATABASE_URL": ""}])
def test_without_an_address_it_is_sqlite_in_the_data_folder(environ: dict[str, str]) -> None:
    chosen = database(environ, FOLDER)
    assert chosen["ENGINE"] == "django.db.backends.sqlite3"
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
    usual = {"connect_timeout": "10", "options": SESSION, "prepare_threshold": 1}
    assert chosen["OPTIONS"] == {**usual, **options}


@pytest.mark.parametrize(
    ("address", "why"),
    [
        (f"mysql://u:{SECRET}@h/n", "names no PostgreSQL database"),
        (f"u:{SECRET}@h/n", "names no PostgreSQL database"),
        (f"postgresql://u:{SECRET}@h", "does not name one database"),
        (f"postgresql://u:{SECRET}@h/", "does not name one database"),
        (f"postgresql://u:{SECRET}@h/n/m", "does not name one database"),
        (f"postgresql://u:{SECRET}@h:port/n", "cannot be read"),
        (f"postgresql://u:{SECRET}@h:65536/n", "cannot be read"),
        (f"postgresql://u:{SECRET}@[::1/n", "cannot be read"),
        (f"postgresql://u:{SECRET}%ff@h/n", "cannot be read"),
        (f"postgresql://u:{SECRET}@h/n?sslmode", "cannot be read"),
        (f"postgresql://u:pa?{SECRET}@h/n", "cannot be read"),
        (f"postgresql://u:5?{SECRET}=@h/n", "sets more than it may"),
        (f"postgresql://u:{SECRET}@h/n?options=-c%20fsync=off", "sets more than it may"),
        (f"postgresql://u:{SECRET}@h/n?sslmode=require&sslmode=disable", "sets something twice"),
        (f"postgresql://u:{SECRET}@h/n#m", "holds signs that an address has not"),
        (f"postgresql://u:{SECRET}@h/n m", "holds signs that an address has not"),
        (f"postgresql://u:{SECRET}@h/n\n", "holds signs that an address has not"),
    ],
)
def test_what_is_no_address_is_refused_and_not_repeated(address: str, why: str) -> None:
    with pytest.raises(ImproperlyConfigured, match=why) as refusal:
        named(address)
    assert "unset it to use SQLite" in str(refusal.value)
    errors = (refusal.value, refusal.value.__cause__)  # both come into a log
    assert not any(SECRET in str(each) for each in errors)


@pytest.mark.parametrize("word", ["fsck", "demo"])
def test_a_server_that_does_not_answer_is_one_sentence(tmp_path: Path, word: str) -> None:
    address = f"postgresql://u:{SECRET}@%2Fnowhere/n"
    said = refusal(tmp_path, "manage.py", word, DATABASE_URL=address)
    assert "The database cannot be used: " in said
    assert "See that the server that DATABASE_URL names runs" in said
    assert SECRET not in said


def test_what_the_settings_refuse_is_one_sentence(tmp_path: Path) -> None:
    said = refusal(tmp_path, "manage.py", "check", DATABASE_URL=f"redis://:{SECRET}@h/0")
    assert "DATABASE_URL names no" in said
