"""The programs of a crash loop: ``python -m sabotage.crashes``.

Without arguments it reads one line of JSON (``step``, ``times``, ``strategy``, ``through``), makes
all that ``house`` makes in the folder that NANOVM_DATA names, and writes one. With TOOL and FILE
it is Celery's worker with the arguments after them, and halts between the use of TOOL and the
commit of the answer while FILE exists: it prints a line of JSON and waits to be killed.
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
    django.setup()  # the product's tables need it
    if sys.argv[1:]:
        from pipeline.steps import adapters

        tool, file = sys.argv.pop(1), Path(sys.argv.pop(1))
        adapters.ADAPTERS = {**adapters.ADAPTERS, tool: halting(adapters.ADAPTERS[tool], file)}
        sys.exit(main())
    from sabotage.crashes.house import crash

    print(json.dumps(crash(json.loads(sys.stdin.readline()))), flush=True)
