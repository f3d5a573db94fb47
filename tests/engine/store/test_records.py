"""What is stored: envelopes by the format page, append-only, gapless, whoever writes at once."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from django.db import IntegrityError, connection, connections, transaction

from engine.evidence import bundles
from engine.evidence.fsck.audit import audit
from engine.models import Envelope, Run, Secret
from engine.runtime import api, chains
from engine.signals import run_changed
from engine.vault import secret_store
from engine.vault.secret_store import openings
from nanovm_core import verify
from nanovm_core.core.vault import commit
from samples import path
from tests.kit.databases import on_postgres_alone
from tests.kit.house import House, bodies, kinds

FIELDS = {
    *("v", "log", "seq", "run", "n", "kind", "at_ms", "step", "state", "program", "policy"),
    *("actor", "tool", "snapshot", "idempotency_key", "decision", "warrant", "budget", "rule"),
    *("outcome", "in", "out", "secrets", "prev", "length", "capabilities", "origin", "given"),
    *("decided_by", "limits", "from", "to", "of"),
}
STATE = {"from", "event", "to"}
UNPINNED = 3  # every envelope and every chain holds
OVER_LIMIT = path("over_limit").read_bytes()
ALWAYS = {"v", "log", "seq", "run", "n", "kind", "at_ms", "program", "policy", "actor", "prev"}


@pytest.mark.parametrize("options", [{}, {"model": "compromised"}, {"document": OVER_LIMIT}])
def test_every_envelope_has_the_fields_of_the_format(
    house: House, tmp_path: Path, options: dict[str, Any]
) -> None:
    run = house.run(**options)
    api.start(str(run.id), "visitor")
    for body in (*bodies(run), *bodies("log")):
        terms = {"program", "policy"} if body["kind"] == "supplier" else set()
        assert ALWAYS - terms <= set(body) <= FIELDS
        assert None not in body.values()
        assert set(body.get("state", STATE)) == STATE
    file = tmp_path / "log.ndjson"
    file.write_bytes(b"".join(bundles.export_lines(run.workspace, None)))
    assert verify.main([str(file)]) == UNPINNED


def test_commitments_open_to_what_is_stored_and_the_staging_copy_is_destroyed(house: House) -> None:
    run = house.once(House.run)
    staging = Secret.objects.get(run=run, slot="staging")
    assert (staging.erased_ms is not None, staging.ciphertext) == (True, None)
    assert staging.ref not in house.wrapped_keys()
    committed = {each["ref"]: each["c"] for body in bodies(run) for each in body.get("secrets", ())}
    living = Secret.objects.filter(run=run, erased_ms=None)
    opened = openings([secret.ref for secret in living])
    assert len(opened) == living.count() > 10
    for ref, (r, value) in opened.items():
        assert commit(r, ref, value) == committed[ref]


@pytest.mark.postgres
@pytest.mark.parametrize("statement", ["UPDATE {} SET hash = 'x'", "DELETE FROM {}"])
def test_triggers_refuse_to_change_or_delete_an_envelope(house: House, statement: str) -> None:
    house.new()
    with connection.cursor() as cursor, pytest.raises(IntegrityError, match="append-only"):
        cursor.execute(statement.format("pipeline_envelope"))


@pytest.mark.postgres
def test_run_that_is_not_there_is_none_and_not_an_error_of_the_database(house: House) -> None:
    with pytest.raises(Run.DoesNotExist):
        api.submit(str(uuid4()), [])


@pytest.mark.postgres
@on_postgres_alone
@pytest.mark.parametrize("table", ["envelope", "node", "checkpoint"])
def test_triggers_refuse_to_empty_a_table_of_the_log(house: House, table: str) -> None:
    house.new()
    with connection.cursor() as cursor, pytest.raises(IntegrityError, match="append-only"):
        cursor.execute(f"TRUNCATE pipeline_{table}")


@pytest.mark.postgres
def test_a_place_in_log_and_run_is_taken_once(house: House) -> None:
    run = house.started()
    first = Envelope.objects.get(run=str(run.id), n=0)
    for name, free in (("seq", 99), ("n", 98)):  # the other of the two places is taken
        taken, first.__dict__[name] = getattr(first, name), free
        with pytest.raises(IntegrityError), transaction.atomic():
            first.save(force_insert=True)
        first.__dict__[name] = taken
    first.seq, first.run = 99, "other"
    first.save(force_insert=True)


def test_secret_of_one_workspace_does_not_open_in_another(house: House) -> None:
    run, other = house.run(), house.new()
    secret = Secret.objects.get(run=run, slot="seller")
    Secret.objects.filter(ref=secret.ref).update(run=other)
    with pytest.raises(Exception, match="PII-002"):
        secret_store.text(secret.ref)


def on_threads(count: int, *calls: Any) -> None:
    """Make the calls at once, each in a thread with a connection of its own."""

    def closed(call: Any) -> None:
        try:
            call()
        finally:
            connections.close_all()

    with ThreadPoolExecutor(count) as pool:
        for done in [pool.submit(closed, call) for call in calls]:
            done.result()


@pytest.mark.postgres
def test_eight_threads_on_one_run_lose_no_update(house: House) -> None:
    run = house.started()
    raw = b'{"tool": "wire_transfer", "args": {}}'
    on_threads(8, *[lambda: api.propose(str(run.id), raw) for _ in range(24)])
    assert kinds(run).count("refused") == 24
    run.refresh_from_db()
    assert run.length == 2 + 24
    assert audit().damage == ()


@pytest.mark.postgres
def test_eight_threads_on_runs_of_one_workspace_keep_the_log_gapless(house: House) -> None:
    workspace = chains.create()
    runs = [house.new(workspace=workspace) for _ in range(8)]

    def work(run: Run) -> None:
        api.start(str(run.id), "visitor")
        api.pause(str(run.id), "visitor")
        api.resume(str(run.id), "visitor")
        api.kill(str(run.id), "visitor")

    on_threads(8, *[lambda run=run: work(run) for run in runs])
    assert {len(kinds(run)) for run in runs} == {6 - 1}
    assert audit().damage == ()


@pytest.mark.postgres
def test_eight_workers_on_one_run_pay_once(house: House) -> None:
    run = house.started()
    on_threads(8, *[lambda: house.drive(Run.objects.get(id=run.id)) for _ in range(8)])
    house.drive(run)
    assert kinds(run).count("terminal") == 1
    assert api.take(str(run.id)) == (True, None)
    assert audit().damage == ()


@pytest.mark.postgres
def test_listener_that_fails_does_not_undo_a_commit(
    house: House, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(**_said: object) -> None:
        raise RuntimeError("a value that must not be logged")

    run_changed.connect(broken)
    try:
        run = house.run()
    finally:
        run_changed.disconnect(broken)
    assert kinds(run)[-1] == "terminal"
    assert "RuntimeError" in caplog.text
    assert "must not be logged" not in caplog.text
