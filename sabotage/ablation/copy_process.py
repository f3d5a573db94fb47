"""Runs an attack on a temporary copy of the product that lacks a guard, in a process of its own.

Nothing of this process is changed, and no switch is turned: another process compiles its own
modules without the guard before it starts (``python -m mutations``), on a data folder, a
database and a Stripe counterpart of its own.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from django.conf import settings

from engine.ops.processes import ROOT
from sabotage.ablation.guards import Claim
from sabotage.kit import throwaway
from sabotage.kit.injector import Value

COMPARING_SECONDS_MAX = 20.0  # a quarter of a second on an idle machine
SECONDS_MAX = 180.0  # the slowest starts ten processes, on a machine that may be busy
FOLDER = "copies"
CopyError, BusyError = throwaway.NoOutcomeError, throwaway.BusyError


def run_copy(
    claim: Claim,
    params: Mapping[str, Value],
    *,
    without: Sequence[str] | None = None,
    seconds_max: float = SECONDS_MAX,
    home: Path | None = None,
    begun: Callable[[], None] = lambda: None,
) -> dict[str, Any]:
    """Attack a copy without the claim's guards, or without others in their place.

    It is made in ``home``, which is the data folder's own where none is named; ``begun`` is
    called once no other copy is made there.

    Raises:
        BusyError: one copy at a time is made in each home.
        CopyError: it did not come to an end in time, or broke.
    """
    lacks = claim.without if without is None else without
    asked = {
        "injector": claim.injector,
        "params": dict(params),
        "moment": claim.moment,
        "far_side_ms": claim.far_side_ms,
        "without": lacks,
    }
    through = ("mutations", *lacks, "--") if lacks else ()
    program = (sys.executable, "-m", *through, "mutations.copy")
    with throwaway.folder_in(home or settings.NANOVM_DATA / FOLDER, "copy") as folder:
        begun()
        return throwaway.outcome_of(program, folder, asked, seconds_max, "copy")


@lru_cache(maxsize=64)
def changes_of(without: tuple[str, ...]) -> Mapping[str, Any]:
    """The changed lines that a copy without these guards is compiled from, and what it adds.

    Another process computes them, for nothing that runs imports the lists of guards.

    Raises:
        CopyError: it could not; the text says why.
    """
    kept = {name: text for name, text in os.environ.items() if not name.startswith(throwaway.OWN)}
    try:
        ran = subprocess.run(  # noqa: S603 - our own program, and no shell
            [sys.executable, "-m", "mutations.changes", *without],
            cwd=ROOT,
            env=kept,
            capture_output=True,
            text=True,
            timeout=COMPARING_SECONDS_MAX,
        )
    except subprocess.TimeoutExpired:
        raise CopyError(
            f"They were not computed in {COMPARING_SECONDS_MAX:g} s. Reload the page."
        ) from None
    if ran.returncode != 0:
        last = ran.stderr.strip().splitlines()[-1:] or [f"status {ran.returncode}"]
        raise CopyError(last[0])
    found: Mapping[str, Any] = json.loads(ran.stdout)
    return found
