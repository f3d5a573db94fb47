"""A process of its own that resumes and drives runs, several at once, in an order of its own.

``python -m tests.pipeline.submitter SEED RUN…``: it waits for the end of its standard input, so
that several of them begin together.
"""

import os
import random
import sys
from concurrent.futures import ThreadPoolExecutor

import django

THREADS = 6


def go_on(run_id: str) -> None:
    """Resume a run and do what it owes, for as long as nobody else does."""
    from django.db import connection

    from pipeline.runtime import api
    from pipeline.worker.drive import drive_patiently

    try:
        api.resume(run_id, "visitor")
        drive_patiently(run_id)
    finally:
        connection.close()


def main(seed: str, *runs: str) -> None:
    """Every run goes on; the first error ends this process with it."""
    order = sorted(runs)
    random.Random(seed).shuffle(order)  # noqa: S311 - an order, and no secret
    with ThreadPoolExecutor(THREADS) as threads:
        sys.stdin.read()
        for done in [threads.submit(go_on, run) for run in order]:
            done.result()


if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    django.setup()
    main(*sys.argv[1:])
