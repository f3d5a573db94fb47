"""Chains that are no run's: the log's own and those of agents; and grants that stay narrow."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from django.db import transaction

from engine.evidence import bundles, signer
from engine.evidence.fsck.audit import audit
from engine.models import Envelope, Run, Terms
from engine.runtime import chains, warrants
from engine.runtime.create_run import make_run
from engine.store import programs, records
from engine.worker.drive import drive_patiently
from nanovm_core import verify
from nanovm_core.core import lifecycle as life
from nanovm_core.core.authority.capabilities import Constraint
from pipeline.application import current
from pipeline.create_run import create_run
from tests.kit.house import House, bodies, invoice, known_workspace, reason, sql, succeeded

PAYS, MAILS = "stripe.create_payment_intent", "notify.send_email"
PAYER = "agent:payer"


@pytest.mark.postgres
def test_each_owner_has_a_chain_of_its_own_in_one_log(house: House, tmp_path: Path) -> None:
    log = known_workspace()
    before = Envelope.objects.filter(run="log").count()
    with transaction.atomic():
        kinds = ("genesis", "agent")
        places = [chains.seal(log.id, each, {}, actor="operator", owner=PAYER) for each in kinds]
        places.append(chains.seal(log.id, "alert", {}, actor="operator"))
    places.append(chains.seal(log.id, "agent", {}, actor="operator", owner=PAYER))
    assert places == [0, 1, before, 2]
    run = house.run(workspace=log)
    assert (run.state, audit().damage) == (life.COMPLETED, ())
    file = tmp_path / "log.zip"
    bundles.write_bundle(log, None, file, signer.checkpoint(log.id))
    assert verify.main([str(file)]) == 3  # whole; whose key signed it, a reader says
    damaged = "UPDATE pipeline_envelope SET bytes = %s WHERE run = %s AND n = 1"
    sql((damaged, [b"{}", PAYER]))
    assert (PAYER, 1) in {(each.run, each.at) for each in audit().damage}


@pytest.fixture
def narrowed(house: House, monkeypatch: pytest.MonkeyPatch) -> Callable[[int], Run]:
    """Makes a run that may pay no more than this: under narrower grants than the program's."""

    def made(most_minor: int) -> Run:
        pays, mails = current().grants[PAYS], current().grants[MAILS]
        limit = Constraint(min=1, max=most_minor)
        grants = [replace(pays, where={**pays.where, "amount_minor": limit}), mails]
        monkeypatch.setattr(
            "pipeline.create_run.make_run",
            lambda new, run: make_run(replace(new, grants=grants), run),
        )
        return create_run(
            known_workspace(), invoice(), "a.pdf", started_by="operator", text_accepted=True
        )

    return made


def driven(run: Run) -> Run:
    records._KNOWN.clear()  # as another process reads it
    drive_patiently(str(run.id))
    return Run.objects.get(id=run.id)


@pytest.mark.postgres
def test_a_narrowed_program_stays_narrow_after_each_commit(narrowed: Callable[[int], Run]) -> None:
    assert driven(narrowed(11_999)).state != life.COMPLETED
    paid = driven(narrowed(12_000))
    assert (paid.state, len(succeeded(paid))) == (life.COMPLETED, 1)
    (grant,) = [each for each in programs.program_of(paid).grants.values() if each.tool == PAYS]
    assert grant.where["amount_minor"] == Constraint(min=1, max=12_000)
    assert grant.narrowed_from != ()


WIDENED: dict[str, bytes | None] = {
    "removed": None,
    "emptied": b"{}",
    "garbage": b"\xff",
    "widened": b'{"%s":{"from":[],"grant":{"expires_ms":0,"where":{}}}}' % PAYS.encode(),
}


@pytest.mark.parametrize("how", WIDENED)
def test_grants_that_the_genesis_does_not_seal_are_found(
    narrowed: Callable[[int], Run], how: str
) -> None:
    run = narrowed(11_999)
    Terms.objects.filter(run=run).update(grants=WIDENED[how])
    assert {(each.code, each.at) for each in audit().damage} == {("PRG-011", 0)}
    run = driven(run)
    assert (run.state, reason(run), succeeded(run)) == (life.FAILED, "PRG-011", [])


def test_a_revoked_origin_revokes_what_was_narrowed_from_it(narrowed: Callable[[int], Run]) -> None:
    run = narrowed(12_000)
    warrants.revoke(str(run.workspace_id), PAYS, "operator")
    run = driven(run)
    assert (succeeded(run), "CAP-008" in [each.get("rule") for each in bodies(run)]) == ([], True)
