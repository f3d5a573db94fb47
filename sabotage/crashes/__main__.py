"""The programs of a crash loop: ``python -m sabotage.crashes``.

Without arguments it reads one line of JSON (``step``, ``times``, ``strategy``, ``moment``,
``through``), makes all that ``house`` makes in the folder that NANOVM_DATA names, and writes one.
With TOOL, MOMENT and FILE it is Celery's worker with the arguments after them, and halts while FILE
exists: ``before`` the use of TOOL, or ``after`` it and before the commit of the answer. It prints
a line of JSON then and waits to be killed.
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
BEFORE, AFTER = "before", "after"


def halting(act: "Callable[[Work], Answer]", moment: str, file: Path) -> "Callable[[Work], Answer]":
    """An adapter that acts as this one does, and waits at the moment while ``file`` is there."""

    def halt(work: "Work", at: str) -> None:
        if at == moment and file.exists():
            print(json.dumps({"halted": work.effect.step, "pid": os.getpid()}), flush=True)
        while at == moment and file.exists():
            time.sleep(LOOK_S)

    def acted(work: "Work") -> "Answer":
        halt(work, BEFORE)
        answer = act(work)
        halt(work, AFTER)
        return answer

    return acted


if __name__ == "__main__":
    django.setup()  # the product's tables need it
    if sys.argv[1:]:
        from pipeline.steps import adapters

        tool, moment, file = (sys.argv.pop(1) for _ in range(3))
        halts = halting(adapters.ADAPTERS[tool], moment, Path(file))
        adapters.ADAPTERS = {**adapters.ADAPTERS, tool: halts}
        sys.exit(main())
    from sabotage.crashes.house import crash

    print(json.dumps(crash(json.loads(sys.stdin.readline()))), flush=True)
