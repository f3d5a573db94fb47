"""What every command shares: a ready data folder, and one sentence when something is wrong."""

import argparse
import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError, OutputWrapper

from nanovm_core.errors import NanovmError
from pipeline.models import Run
from pipeline.processes import ProcessError, stripe_counterpart


class PreparedCommand(BaseCommand):
    """A command that makes and migrates the data folder before it does its work."""

    def handle(self, *_args: Any, **options: Any) -> None:
        """Prepare, then ``perform``; known errors end it in one sentence."""
        call_command("migrate", verbosity=0, interactive=False)
        with one_sentence():
            self.perform(argparse.Namespace(**options))

    def perform(self, options: argparse.Namespace) -> None:
        """The command's own work."""
        raise NotImplementedError(f"{type(self).__name__} does nothing")

    def say_json(self, value: object) -> None:
        """Print one value as one line of JSON."""
        say_json(self.stdout, value)


def say_json(out: OutputWrapper, value: object) -> None:
    """Print one value as one line of JSON."""
    out.write(json.dumps(value, ensure_ascii=False, sort_keys=False))
    out.flush()


@contextmanager
def one_sentence() -> Iterator[None]:
    """End a command in one sentence where something known is wrong."""
    try:
        yield
    except (ProcessError, NanovmError, OSError) as error:
        raise CommandError(str(error)) from error


@contextmanager
def stripe_in_reach() -> Iterator[None]:
    """Start the local Stripe counterpart for the time of a command, where none is configured."""
    if not settings.STRIPE["local"] or settings.STRIPE["api_base"] is not None:
        yield
        return
    with stripe_counterpart(settings.NANOVM_DATA) as url:
        settings.STRIPE["api_base"] = url
        try:
            yield
        finally:
            settings.STRIPE["api_base"] = None


def named_run(name: str) -> Run:
    """The run of a UUID or a short code.

    Raises:
        CommandError: in one sentence, where there is none.
    """
    run = Run.objects.filter(code=name.upper()).first()
    if run is None:
        try:
            run = Run.objects.filter(id=name).first()
        except (ValueError, ValidationError):
            run = None
    if run is None:
        raise CommandError(
            f"There is no run {name!r}; give its UUID or its short code.", returncode=2
        )
    return run
