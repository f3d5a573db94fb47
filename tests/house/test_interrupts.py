"""Ctrl-C ends a command as interrupted, wherever it is met."""

import signal
import subprocess
import sys
from pathlib import Path

from tests.house.demo import ROOT, environment

IN_A_DESTRUCTOR = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)  # whatever started the tests
from django.core.management import execute_from_command_line

class Met:
    def __del__(self):
        signal.raise_signal(signal.SIGINT)

import django
django.setup()
from pipeline.management.commands import fsck

def perform(self, options):
    met = Met()
    del met
    print("went on", flush=True)

fsck.Command.perform = perform
execute_from_command_line(["manage.py", "fsck"])
"""


def test_an_interrupt_that_a_destructor_met_is_not_forgotten(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", IN_A_DESTRUCTOR],
        cwd=ROOT,
        env=environment(tmp_path, DJANGO_SETTINGS_MODULE="config.settings"),
        capture_output=True,
        text=True,
        check=False,
    )
    assert "went on" in done.stdout, done.stderr  # Python dropped it there
    assert done.returncode in (-signal.SIGINT, 128 + signal.SIGINT)
