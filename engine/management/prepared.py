"""What the commands share: a prepared data folder, and errors in one sentence."""

import argparse
import json
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Any, TypeVar

from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError
from django.db.models import Model

from engine.management import schema
from engine.models import Run, Workspace
from engine.ops import error_messages
from engine.ops.processes import ProcessError
from engine.store.ledgers import is_house
from nanovm_core.errors import NanovmError

AGAIN = "Then give the command again."  # where no note on the error says what to do instead
Row = TypeVar("Row", bound=Model)
NAMED_MAX = 20  # workspaces that one sentence lists
WORKSPACE = "its UUID or its log's name; needed where several exist"


class PlainCommand(BaseCommand):
    """A command that needs no data folder; known errors end it in one sentence."""

    requires_system_checks = ()  # they load every page; ``manage.py check`` runs them

    def handle(self, *_args: Any, **options: Any) -> None:
        """Prepare, then ``perform``."""
        with one_sentence(), no_interrupt_lost():
            self.prepare()
            self.perform(argparse.Namespace(**options))

    def prepare(self) -> None:
        """Done before the work: nothing, unless a command says otherwise."""

    def perform(self, options: argparse.Namespace) -> None:
        """The command's own work."""
        raise NotImplementedError(f"{type(self).__name__} does nothing")

    def say_json(self, value: object) -> None:
        """Print one value as one line of JSON."""
        self.stdout.write(json.dumps(value, ensure_ascii=False))
        self.stdout.flush()


class PreparedCommand(PlainCommand):
    """A command that makes and migrates the data folder before it does its work."""

    def prepare(self) -> None:
        """Make and migrate it."""
        schema.migrate()


def named(text: str) -> str:
    """An argument that is not blank, as an unset variable of a shell would be."""
    if not text.strip():
        raise argparse.ArgumentTypeError("it is empty and names nothing; leave it out or name one")
    if readable(text) != text:
        raise argparse.ArgumentTypeError("it is no UTF-8 text, so it names nothing; type it again")
    return text


def named_file(text: str) -> Path:
    """An argument that names a file or a folder, of whatever bytes."""
    named(readable(text))
    return Path(text)


def readable(text: str) -> str:
    """The text, with a replacement for each byte of an argument that is no UTF-8."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def stops() -> list[int]:
    """The signals that ask this process to end, from now on: they come here and end nothing."""
    came: list[int] = []
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda number, _: came.append(number))
    return came


@contextmanager
def one_sentence() -> Iterator[None]:
    """End a command in one sentence where something known is wrong.

    The status is 2: what a command has to say of the data is 1 or another. Where the database
    gives up in the middle, the notes on its error say what was done and what to do.
    """
    try:
        yield
    except error_messages.DATABASE_ERRORS as error:
        if isinstance(error, error_messages.PROGRAMMING_ERRORS):
            raise
        notes = " ".join(getattr(error, "__notes__", [])) or AGAIN
        raise CommandError(error_messages.of_database(error, notes), returncode=2) from error
    except OSError as error:
        raise CommandError(error_messages.of_file(error), returncode=2) from error
    except (ProcessError, NanovmError) as error:
        raise CommandError(str(error), returncode=2) from error


@contextmanager
def noted(text: str) -> Iterator[None]:
    """Add to a database error what was done, and what to do."""
    try:
        yield
    except error_messages.DATABASE_ERRORS as error:
        error.add_note(text)
        raise


@contextmanager
def no_interrupt_lost() -> Iterator[None]:
    """End as interrupted wherever Ctrl-C was pressed.

    Python prints and drops an exception that meets a destructor or a callback, and Ctrl-C is
    one: a command would go on, and say that all is well.
    """
    before = signal.getsignal(signal.SIGINT)
    is_main = threading.current_thread() is threading.main_thread()
    if before is not signal.default_int_handler or not is_main:
        yield  # another handler is installed
        return
    came: list[int] = []

    def interrupt(number: int, frame: FrameType | None) -> None:
        came.append(number)
        signal.default_int_handler(number, frame)

    signal.signal(signal.SIGINT, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if came:
        raise KeyboardInterrupt


def named_run(name: str) -> Run:
    """The run of a UUID or a short code.

    Raises:
        CommandError: in one sentence, where there is none.
    """
    return named_row(Run, name, "run", "short code")


def named_row(model: type[Row], name: str, what: str, code: str) -> Row:
    """The row of a UUID or a code; CommandError in one sentence: there is none, or several."""
    found = [*model._default_manager.filter(code=name.upper())[:2]]
    if not found:
        with suppress(ValueError, ValidationError):
            found = [*model._default_manager.filter(id=name)]
    if len(found) == 1:
        return found[0]
    none = f"There is no {what} {name!r}; give its UUID or its {code}."
    several = f"Several {what}s have that {code}; give the UUID."
    raise CommandError(several if found else none, returncode=2)


def named_workspace(name: str | None) -> Workspace:
    """The workspace of a UUID, of its log's name, or of the end of that; else the only one.

    Raises:
        CommandError: in one sentence, where there is none, or none is named among several.
    """
    if name is not None:
        found = [each for each in Workspace.objects.order_by("id") if name in _names(each)]
        wrong = f"There is no workspace {name!r}"
    else:
        found = [*Workspace.objects.exclude(is_house()).order_by("id")[: NAMED_MAX + 1]]
        wrong = "There are several workspaces" if found else "There is no workspace yet"
    if len(found) == 1:
        return found[0]
    there = [each.origin for each in Workspace.objects.order_by("id")[: NAMED_MAX + 1]]
    more = [*there[:NAMED_MAX], *(["…"] if len(there) > NAMED_MAX else [])]
    say = f"; name one with --workspace: {', '.join(more)}." if there else "; begin a run first."
    raise CommandError(wrong + say, returncode=2)


def _names(workspace: Workspace) -> tuple[str, str, str]:
    return str(workspace.id), workspace.origin, workspace.origin.rpartition("/")[2]
