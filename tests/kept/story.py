"""What a kept folder contains: two logs, with runs in the states that outlive an upgrade."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from django.conf import settings
from django.db import connections

from engine.clock import now_ms
from engine.evidence import signer
from engine.management import schema
from engine.models import Run, Workspace
from engine.ops.processes import ROOT
from engine.privacy import erasure
from engine.runtime import api
from engine.store import log_chain
from nanovm_core.core import lifecycle as life
from pipeline.ops.stripe_counterpart import stripe_counterpart
from samples import path
from tests.engine.privacy.test_erasure import CANARIES, canary_invoice
from tests.kept.folder import Kept, packed_files
from tests.kit.databases import Database
from tests.kit.house import Counterpart, House, invoice, known_workspace, snapshot

REVOKED = "stripe.create_payment_intent"


@contextmanager
def at_work(folder: Path) -> Iterator[House]:
    """The pipeline on a folder, with the Stripe counterpart whose records are in it."""
    with stripe_counterpart(folder) as url:
        settings.STRIPE["api_base"] = url
        own = Database(name=str(folder / "app.sqlite3"))
        yield House(folder=folder, counterpart=Counterpart(url, folder, iter(())), database=own)
    connections.close_all()


def told(folder: Path) -> Kept:
    """Fill an empty folder; what is in it."""
    schema.migrate()
    with at_work(folder) as house:
        main, other = known_workspace(), known_workspace()
        runs = {
            "completed": house.run(invoice(), workspace=main),
            "suspended": house.run(path("over_limit").read_bytes(), workspace=main),
            "running": _running(house, main),
            "erased": house.run(canary_invoice(), file_name=CANARIES["file"], workspace=other),
        }
        assert erasure.erase_run(str(runs["erased"].id), "art17-1-a", "visitor").state == "done"
        revoked = house.command("revoke", REVOKED, "--workspace", other.origin)
        assert revoked.returncode == 0, revoked.stderr
        for each in (main, other):
            signer.checkpoint(each.id)
        states = {name: Run.objects.get(id=run.id).state for name, run in runs.items()}
    assert states == {
        "completed": life.COMPLETED,
        "suspended": life.APPROVAL,
        "running": life.ACTIVE,
        "erased": life.COMPLETED,
    }
    return _kept(runs, {"main": main, "other": other})


def _running(house: House, log: Workspace) -> Run:
    """A run in the middle of its steps, which owes an effect and has no lease."""
    run = house.paused("propose", invoice("Total  EUR 77.00"), workspace=log)
    api.resume(str(run.id), "visitor")
    assert snapshot(run).step == "propose"
    return run


def _kept(runs: dict[str, Run], logs: dict[str, Workspace]) -> Kept:
    assert [*log_chain.revocations(logs["other"].id)] != []
    origins = {name: log.origin for name, log in logs.items()}
    return Kept(
        schema=schema.SCHEMA,
        release=schema.RELEASE,
        made_ms=now_ms(),
        runs={name: str(run.id) for name, run in runs.items()},
        logs=origins,
        vkeys={each: signer.verifiers(each)[0].vkey for each in origins.values()},
        revoked=REVOKED,
    )


def check_portable(folder: Path) -> None:
    """Nothing in it names a place of the machine that made it."""
    names = [str(each).encode() for each in (folder, ROOT, Path.home()) if len(each.parts) > 1]
    for file in packed_files(folder):
        data = file.read_bytes()
        assert not any(each in data for each in names), file
