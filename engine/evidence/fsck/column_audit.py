"""The audit of columns: SQLite stores a value of any type in any column.

What is of another kind than its column's is found in the database itself, and named. For the
time of an audit a view replaces its table, in which every value is of its kind: so one bad value
hides no other damage.
"""

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from functools import cache, partial
from typing import Any, TypeAlias

from django.db import connection, transaction
from django.db.models import Field, ForeignKey, Model

from engine.application import installed
from engine.damage import Damage
from engine.models import Checkpoint, Envelope, Link, Node, Run, Secret, Served, Terms, Workspace
from engine.store import sql

Column: TypeAlias = "Field[Any, Any]"

CODE = "LOG-010"
BEGIN = "BEGIN" if sql.SQLITE else "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
PLACES_MAX = 1_000  # of one table: where all of it is bad, the first of them say so
INTEGER_MAX = 2**53 - 1  # what is sealed goes no further (canonical integers)
LEVEL_MAX = 62  # a tree has no more levels
# The greatest number of each kind of column; all others are INTEGER_MAX's.
NUMBERS_MAX = {
    "BooleanField": 1,
    "SmallIntegerField": LEVEL_MAX,
    "PositiveSmallIntegerField": 2**15 - 1,
    "IntegerField": 2**31 - 1,
}
SHOWN_MAX = 48  # characters of a key that is named

# The columns that a row is found by. A row in which one of them is bad is read as if it were not
# there; any other bad value is read as one that says nothing.
_KEYS: dict[type[Model], tuple[str, ...]] = {
    Workspace: ("id",),
    Run: ("id", "workspace_id"),
    Terms: ("digest",),
    Envelope: ("workspace_id", "seq", "run", "n"),
    Node: ("workspace_id", "position", "level", "index"),
    Checkpoint: ("id", "workspace_id", "size"),
    Secret: ("ref", "run_id"),
    Served: ("workspace_id", "agent"),
    Link: ("id", "workspace_id", "secret"),
}
# Compared with what the bytes hash to, so any other value is found: bytes, and the hash beside.
HASHED = (Envelope._meta.get_field("hash"),)

_ID = "typeof({0}) = 'text' AND length(CAST({0} AS BLOB)) = 32 AND {0} NOT GLOB '*[^0-9a-f]*'"
_TEXT = "typeof({0}) = 'text' AND length({0}) <= "  # SQLite counts to the first NUL
_KINDS = {"UUIDField": "an id", "BooleanField": "0 or 1"}
_LOG_OF = '(SELECT CAST(origin AS TEXT) FROM pipeline_workspace w WHERE w."id" = {})'
_RUN_LOG = '(SELECT r.workspace_id FROM pipeline_run r WHERE r."id" = t."run_id")'
_OF_TERMS = '(SELECT r."{}" FROM pipeline_run r WHERE r.terms_id = t."digest" LIMIT 1)'
_FOUND_BY = {
    Run: 't."id"',
    Terms: _OF_TERMS.format("id"),
    Envelope: 't."run"',
    Secret: 't."run_id"',
}


def tables() -> dict[type[Model], tuple[str, ...]]:
    """Every table that is audited, with the columns that its rows are found by."""
    own = {model: keys for each in installed() for model, keys in each.tables.items()}
    return {**_KEYS, **own}


def damage() -> dict[type[Model], list[Damage]]:
    """Every value of another kind than its column's, by table; no table without one."""
    found = {model: [*_bad_values(model, keys)] for model, keys in tables().items()}
    return {model: bad for model, bad in found.items() if bad}


@contextmanager
def one_moment(bad: Collection[type[Model]] = ()) -> Iterator[None]:
    """Read everything as it is now, while others go on writing; of these tables what is sound."""
    if connection.in_atomic_block:
        with transaction.atomic(), _read_as_sound(bad):
            yield
            transaction.set_rollback(True)
        return
    with connection.cursor() as cursor:
        cursor.execute(BEGIN)
        try:
            with _read_as_sound(bad):
                yield
        finally:
            cursor.execute("ROLLBACK")


@contextmanager
def _read_as_sound(tables: Collection[type[Model]]) -> Iterator[None]:
    """Let these tables be read without what is bad in them, in the transaction that is open.

    Its end takes the views away; a text that is not UTF-8 is read with marks in the bad places.
    """
    if not sql.SQLITE:
        yield  # whose columns keep their kinds themselves
        return
    raw: Any = connection.connection
    before = raw.text_factory
    raw.text_factory = partial(str, errors="replace")
    try:
        for model in tables:
            raw.execute(_view(model))
        yield
    finally:
        raw.text_factory = before


def _columns(model: type[Model]) -> list[Column]:
    """The columns whose values have to be of a kind, in order."""
    fields: list[Column] = [*model._meta.concrete_fields]
    return [each for each in fields if _kind(each) != "BinaryField" and each not in HASHED]


def _kind(field: Column) -> str:
    """The kind of a column, by Django's name for it; a reference is of what it refers to."""
    return _referred(field).get_internal_type()


def _referred(field: Column) -> Column:
    while isinstance(field, ForeignKey):
        field = field.target_field
    return field


def _max(field: Column) -> int:
    """The greatest number, or the most characters of a text; a reference has what it refers to."""
    return int(_referred(field).max_length or NUMBERS_MAX.get(_kind(field), INTEGER_MAX))


def _due(field: Column) -> str:
    """What a value of a column has to be, in words."""
    if _kind(field) == "CharField":
        return f"a text of at most {_max(field)} characters"
    return _KINDS.get(_kind(field), f"a number from 0 to {_max(field)}")


def _holds(field: Column, of: str = "") -> str:
    """The condition under which a value is one of its column's."""
    column, kind = f'{of}"{field.column}"', _kind(field)
    sound = f"{column} BETWEEN 0 AND {_max(field)}"
    if sql.SQLITE:
        texts = {"UUIDField": _ID, "CharField": f"{_TEXT}{_max(field)}"}
        sound = texts.get(kind, f"typeof({{0}}) = 'integer' AND {sound}").format(column)
    elif kind in ("UUIDField", "CharField", "BooleanField"):
        sound = "TRUE"
    return f"({column} IS NULL OR {sound})" if field.null else f"({sound})"


@cache
def _search(model: type[Model], keys: tuple[str, ...]) -> str:
    """What finds the bad values of one table."""
    fields, found_by = _columns(model), _FOUND_BY.get(model, "'log'")
    logs = {Workspace: 't."id"', Terms: _OF_TERMS.format("workspace_id"), Secret: _RUN_LOG}
    log_of = logs.get(model, "t.workspace_id")
    at = f"CASE WHEN {_holds(_field(model, 'n'), 't.')} THEN t.n END" if model is Envelope else "0"
    flags = [f"CASE WHEN {_holds(each, 't.')} THEN 0 ELSE 1 END" for each in fields]
    shown = [f't."{each}"' for each in keys]
    selected = ", ".join((_LOG_OF.format(log_of), found_by, at, *shown, *flags))
    wrong = " OR ".join(f"NOT {_holds(each, 't.')}" for each in fields)
    return f"SELECT {selected} FROM {model._meta.db_table} t WHERE {wrong} LIMIT "  # noqa: S608


def _bad_values(model: type[Model], keys: tuple[str, ...]) -> Iterator[Damage]:
    """The bad values of one table, the first rows of them."""
    fields, table = _columns(model), model._meta.db_table
    for log, run, n, *rest in sql.execute(f"{_search(model, keys)}{PLACES_MAX}"):
        named = zip(keys, rest[: len(keys)], strict=True)
        place = ", ".join(f"{name} {_shown(value)}" for name, value in named)
        for field, bad in zip(fields, rest[len(keys) :], strict=True):
            if bad:
                due = _due(field)
                text = f"{table} ({place}): there is no value of {field.column} that is {due}."
                whose = _run_name(run)
                yield Damage(log=str(log or ""), run=whose, at=n or 0, code=CODE, text=text)


def _field(model: type[Model], name: str) -> Column:
    return next(each for each in _columns(model) if each.column == name)


def _shown(value: object) -> str:
    said = value.hex() if isinstance(value, bytes) else str(value)
    return said if len(said) <= SHOWN_MAX else f"{said[:SHOWN_MAX]}…"


def _run_name(value: object) -> str:
    """A run's name as envelopes bear it, of what a column holds of it."""
    said = _shown(value)
    is_hex = len(said) == 32 and "-" not in said
    return "-".join((said[:8], said[8:12], said[12:16], said[16:20], said[20:])) if is_hex else said


def _view(model: type[Model]) -> str:
    """The view that replaces a table."""
    fields, columns, keys = _columns(model), [], tables()[model]
    for each in model._meta.concrete_fields:
        name = f'"{each.column}"'
        if each not in fields or each.column in keys:
            columns.append(name)
            continue
        nothing = "NULL" if each.null else "0"
        if _kind(each) == "CharField":
            nothing = f"substr(CAST({name} AS TEXT), 1, {_max(each)})"
        columns.append(f"CASE WHEN {_holds(each)} THEN {name} ELSE {nothing} END AS {name}")
    table = model._meta.db_table
    where = " AND ".join(_holds(_field(model, each)) for each in keys)
    select = f"SELECT {', '.join(columns)} FROM main.{table} WHERE {where}"  # noqa: S608
    return f"CREATE TEMP VIEW {table} AS {select}"
