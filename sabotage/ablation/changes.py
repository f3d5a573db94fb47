"""How a copy without guards differs from the product, known before the copy is made."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from pipeline.ops.processes import ROOT
from sabotage.ablation.copy_process import OWN, CopyError

SECONDS_MAX = 20.0  # a quarter of a second on an idle machine


@lru_cache(maxsize=64)
def changes_of(without: tuple[str, ...]) -> Mapping[str, Any]:
    """The changed lines that a copy without these guards is compiled from, and what it adds.

    Another process computes them, for nothing that runs imports the lists of guards.

    Raises:
        CopyError: it could not; the text says why.
    """
    kept = {name: text for name, text in os.environ.items() if not name.startswith(OWN)}
    try:
        ran = subprocess.run(  # noqa: S603 - our own program, and no shell
            [sys.executable, "-m", "mutations.changes", *without],
            cwd=ROOT,
            env=kept,
            capture_output=True,
            text=True,
            timeout=SECONDS_MAX,
        )
    except subprocess.TimeoutExpired:
        raise CopyError(f"They were not computed in {SECONDS_MAX:g} s. Reload the page.") from None
    if ran.returncode != 0:
        last = ran.stderr.strip().splitlines()[-1:] or [f"status {ran.returncode}"]
        raise CopyError(last[0])
    found: Mapping[str, Any] = json.loads(ran.stdout)
    return found
