"""A worker that halts at its hardest moment: a tool was used, and its answer is not stored yet.

``python -m sabotage.crashes.worker TOOL FILE …`` is Celery's worker with these
arguments. As long as FILE exists, it prints a line of JSON once the adapter of TOOL has acted,
and waits to be killed.
"""

import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import django
from celery.__main__ import main

if TYPE_CHECKING:
    from engine.work import Answer, Work

HALTED = '{"halted": '
LOOK_S = 0.05


def halting(act: "Callable[[Work], Answer]", file: Path) -> "Callable[[Work], Answer]":
    """An adapter that acts as this one does, and keeps its answer to itself while ``file`` is."""

    def acted(work: "Work") -> "Answer":
        answer = act(work)
        if file.exists():
            print(json.dumps({"halted": work.effect.step, "pid": os.getpid()}), flush=True)
        while file.exists():
            time.sleep(LOOK_S)
        return answer

    return acted


if __name__ == "__main__":
    django.setup()
    from pipeline.steps import adapters  # the product's tables need Django to be ready

    tool, file = sys.argv.pop(1), Path(sys.argv.pop(1))
    adapters.ADAPTERS = {**adapters.ADAPTERS, tool: halting(adapters.ADAPTERS[tool], file)}
    sys.exit(main())
