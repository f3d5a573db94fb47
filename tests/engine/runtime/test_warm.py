"""Damage of what this very process stored or verified before: it is compared, and not believed."""

import pytest

from engine.evidence.fsck.audit import audit
from engine.models import AdapterCall, Run
from engine.runtime import api, chains, decide
from engine.runtime.group_commit import Job, commit_together, committed
from engine.runtime.transaction import UnitOfWork
from engine.store import records
from engine.work import Answer, Work
from nanovm_core.core import lifecycle as life
from nanovm_core.core.events import RunStarted
from pipeline.application import INVOICES
from pipeline.steps import adapters
from tests.engine.evidence.test_damage import DAMAGE, Statement, row, terms, two_paused
from tests.kit.house import House, bodies, reason, sql, succeeded

FLIPPED = "UPDATE pipeline_envelope SET bytes = %s WHERE run = %s AND n = 1"


class BrokenOffError(Exception):
    """A commit that does not come to its end."""


def moved(commit: UnitOfWork, run: Run) -> None:
    """A transition that seals a refusal and leaves the run as it is."""
    decide.apply(commit, commit.runs[run.name], [RunStarted()])


def moving(run: Run) -> Job[None]:
    return Job(lambda commit: moved(commit, run), runs=(run.name,))


def warm(*runs: Run) -> None:
    """This process knows these runs, byte by byte: a second transition recomputes nothing."""
    records._KNOWN.clear()
    for run in runs:
        committed(moving(run))
        assert records._KNOWN[run.name].snapshot is not None
        run.refresh_from_db()


def one_byte(run: Run) -> Statement:
    """A stored envelope in which one byte is another."""
    data = bytearray(records.stored_envelopes(run.name)[1].data)
    data[len(data) // 2] ^= 1
    return FLIPPED, (bytes(data), run.name)


def moved_away(run: Run) -> Statement:
    return row(run, "workspace_id", chains.create().id.hex)


def renamed(run: Run) -> Statement:
    statement = "UPDATE pipeline_workspace SET origin = 'another/log' WHERE id = %s"
    return statement, (run.workspace_id.hex,)


OF_ONE = {**DAMAGE, "one byte": (one_byte, "LOG-001"), "another log": (moved_away, "LOG-003")}


@pytest.mark.parametrize(
    "name", [pytest.param("bytes", marks=pytest.mark.postgres), *sorted({*OF_ONE} - {"bytes"})]
)
def test_damage_of_a_known_run_is_found_in_a_commit_that_it_shares(house: House, name: str) -> None:
    run, other = house.once(two_paused)
    warm(run, other)
    damage, code = OF_ONE[name]
    sql(damage(run))
    commit_together([moving(run), moving(other)])
    for each in (run, other):
        each.refresh_from_db()
    assert (run.state, reason(run), run.quarantined) == (life.FAILED, code, True)
    assert (other.state, other.quarantined) == (life.PAUSED, False)
    assert run.name not in records._KNOWN


def test_another_name_of_a_known_runs_log_is_found(house: House) -> None:
    run, _ = house.once(two_paused)
    warm(run)
    sql(renamed(run))
    committed(moving(run))
    run.refresh_from_db()
    assert (run.state, reason(run)) == (life.FAILED, "LOG-003")


def test_an_exchanged_program_of_a_known_run_is_found(house: House) -> None:
    run, _ = house.once(two_paused)
    warm(run)
    sql(terms(run, "program", b"not a program"))
    committed(moving(run))
    assert "PRG-011" in [body.get("rule") for body in bodies(run)]


def test_an_exchanged_policy_of_a_known_run_is_found(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, _ = house.once(two_paused)
    warm(run)
    monkeypatch.setattr(INVOICES, "policy_files", {})  # no other copy has the hash of the genesis
    sql(terms(run, "policy", b"not a policy"))
    committed(moving(run))
    run.refresh_from_db()
    assert (run.state, reason(run)) == (life.FAILED, "PRG-011")


@pytest.mark.postgres
def test_what_was_rolled_back_is_not_believed(house: House) -> None:
    run, other = house.once(two_paused)
    warm(run, other)

    def broken_off(commit: UnitOfWork) -> None:
        moved(commit, run)
        moved(commit, run)
        commit.write()
        raise BrokenOffError

    for _ in range(2):
        with pytest.raises(BrokenOffError):
            committed(Job(broken_off, runs=(run.name,)))
    jobs = [moving(other), Job(broken_off, runs=(run.name,))]
    commit_together(jobs)
    assert isinstance(jobs[1].error, BrokenOffError)
    before = Run.objects.get(id=run.id)
    assert before.length == run.length
    assert house.resumed(run).state == life.COMPLETED
    assert len(succeeded(run)) == 1
    assert audit().damage == ()


@pytest.mark.postgres
def test_a_granted_call_is_recorded_with_its_intent_and_before_it_is_made(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    granted = ("stripe.create_payment_intent", "notify.send_email")
    seen: list[tuple[str, list[str]]] = []

    def looking(work: Work) -> Answer:
        calls = AdapterCall.objects.filter(run=work.run.id, key=work.effect.key)
        seen.append((work.effect.tool, [*calls.values_list("outcome", flat=True)]))
        return real[work.effect.tool](work)

    real = dict(adapters.ADAPTERS)
    monkeypatch.setattr(adapters, "ADAPTERS", dict.fromkeys(real, looking))
    run = house.run()
    assert run.state == life.COMPLETED
    assert [each for each in seen if each[0] in granted] == [(each, ["begun"]) for each in granted]
    assert [tool for tool, outcomes in seen[1:] if outcomes and tool not in granted] == []
    assert api.check(run.name) is None
