"""Processor time and weight of the pages, in a workspace of ten thousand runs.

``python -m bench.page [RUNS EVENTS ROUNDS]`` fills a database on SQLite in a folder of its own,
pays an invoice through the real pipeline, pauses another run until it has so many events, and
prints how long the pages take; 3 where a bar is not reached.
"""

import gzip
import re
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.kit import report
from bench.kit.migrated import migrated

RUNS, EVENTS, ROUNDS = 10_000, 2_000, 21
MS_MAX, KB_MAX = 40, 150
WARM_UP = 3
QUOTA_FACTOR = 10  # by default a workspace may store 200 MB, which is some thousand runs
LINKED = re.compile(r'(?:src|href)="(/static/[^"#]+)')
FLOOR, START = "a page of text, /docs/", "the start page"


def pages(visitor: Any, workspace: Any, runs: int, events: int) -> Mapping[str, str]:
    """The addresses that are timed, by what they show; the runs on them are made here."""
    from bench import seven
    from bench.kit import fill
    from engine.models import Run
    from engine.runtime import api
    from engine.worker import drive
    from nanovm_core.core.events import PauseRequested, ResumeRequested

    sent = {"sample": "plain", "model": "faithful", "payment_method": "pm_card_visa"}
    made = visitor.post("/runs/", {**sent, "pace": "real", "proposal": ""})
    paid = Run.objects.get(code=made["Location"].split("/")[2])
    drive.drive_patiently(str(paid.pk))
    paid.refresh_from_db()
    if paid.state != "terminated.completed":
        raise RuntimeError(f"The invoice was not paid: the run is {paid.state}.")
    long = fill.made(workspace).run
    resume = ResumeRequested(program=long.program_hash)
    while long.length < events:
        api.submit(str(long.pk), [PauseRequested(), resume], actor="bench")
        long.refresh_from_db()
    if Run.objects.filter(workspace=workspace).count() < runs:
        raise RuntimeError(f"The workspace has fewer than {runs} runs of {seven.ENVELOPES} events.")
    return {
        "the page of a paid run": f"/runs/{paid.code}/",
        f"the page of a run of {events:,} events": f"/runs/{long.code}/",
        START: "/",
        "the list of runs": "/runs/",
        "its last page": f"/runs/?page={runs}",
        "the runs by amount": "/runs/?sort=amount",
        "the runs by supplier": "/runs/?sort=supplier",
        "the audit list": "/audit/",
        "the policy": "/policy/",
        **{
            f"a search for {q}": f"/runs/?q={q}"
            for q in ("gmbh", "nordl papier", "N77", "7.00", "K7")
        },
        FLOOR: "/docs/",
    }


def findable(workspace: Any) -> None:
    """Give each run a supplier of the register, an amount, and the words that find it."""
    from django.db import transaction

    from engine.store import records
    from pipeline.models import Found, Listed
    from pipeline.register import found, suppliers

    entries = [*suppliers.readable(workspace)]
    with transaction.atomic():
        key = found.key_made(records.lock_log(workspace.pk))
        words = [found.words_of(key, {"payee": each.details.name}) for each in entries]
        rows = [*Listed.objects.filter(workspace=workspace)]
        made = []
        for at, row in enumerate(rows):
            row.supplier, row.currency = entries[at % len(entries)].row.id, "EUR"
            row.amount_minor, row.paid = 100 * at, True
            own = {*words[at % len(words)], found.mark(key, "number", f"N{at}")}
            made += [Found(workspace=workspace, word=each, run_id=row.run_id) for each in own]
        Listed.objects.filter(workspace=workspace).delete()
        Listed.objects.bulk_create(rows, 1_000)
        Found.objects.bulk_create(made, 5_000)


def timed(visitor: Any, addresses: Mapping[str, str], rounds: int) -> Mapping[str, list[float]]:
    """Milliseconds of processor time of each page, in rounds: all pages once in each."""
    found: dict[str, list[float]] = {name: [] for name in addresses}
    for turn in range(WARM_UP + rounds):
        for name, address in addresses.items():
            began = time.process_time()
            status = visitor.get(address).status_code
            took = (time.process_time() - began) * 1_000
            if status != 200:
                raise RuntimeError(f"{address} answered {status}.")
            if turn >= WARM_UP:
                found[name].append(took)
    return found


def weight(visitor: Any, address: str) -> float:
    """Kilobytes of a page and of all that it links, each compressed by gzip."""
    from django.contrib.staticfiles import finders

    page = visitor.get(address).content
    size = len(gzip.compress(page))
    for link in sorted({*LINKED.findall(page.decode())}):
        path = finders.find(link.removeprefix("/static/"))
        if not isinstance(path, str):
            raise RuntimeError(f"The page links {link}, and there is no such file.")
        size += len(gzip.compress(Path(path).read_bytes()))
    return size / 1_000


def measure(say: Callable[[str], object], runs: int, events: int, rounds: int) -> int:
    """Fill, measure and print; 3 where a bar is not reached."""
    from django.core import signing
    from django.test import Client

    from bench import seven
    from bench.kit import fill
    from dashboard.web.workspace import COOKIE, SALT
    from pipeline.register import sample_register

    workspace = fill.filled(runs * seven.ENVELOPES, sample_register.new_workspace)
    visitor = Client(SERVER_NAME="localhost")
    visitor.cookies[COOKIE] = signing.dumps(str(workspace.pk), salt=SALT)
    findable(workspace)
    addresses = pages(visitor, workspace, runs, events)
    times = timed(visitor, addresses, rounds)
    floor, reached = statistics.median(times[FLOOR]), list[bool]()
    start = statistics.median(times[START])
    say(f"{runs:,} runs in the workspace, on SQLite; bars: {MS_MAX} ms, {KB_MAX} kB\n")
    for name, taken in times.items():
        median = statistics.median(taken)
        kilobytes = weight(visitor, addresses[name])
        reached.append(median <= MS_MAX and kilobytes <= KB_MAX)
        say(
            f"- {name}: {median:.1f} ms ({min(taken):.1f} to {max(taken):.1f}), "
            f"{median / floor:.1f} x {FLOOR}, {median / start:.1f} x {START}; {kilobytes:.0f} kB: "
            f"{'PASS' if reached[-1] else 'short of it'}"
        )
    return report.status(reached)


def main(arguments: Sequence[str]) -> int:
    """Measure in a folder of its own, beside a Stripe counterpart of its own."""
    runs, events, rounds = map(int, arguments) if arguments else (RUNS, EVENTS, ROUNDS)
    with tempfile.TemporaryDirectory(prefix="nanovm-bench-") as folder:
        migrated(folder, DEBUG="", NANOVM_QUOTA_FACTOR=str(QUOTA_FACTOR))
        from django.conf import settings

        from pipeline.ops.stripe_counterpart import stripe_counterpart

        with stripe_counterpart(Path(folder)) as url:
            settings.STRIPE["api_base"] = url
            return measure(print, runs, events, rounds)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
