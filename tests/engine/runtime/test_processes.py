"""What happens to agents' processes is sealed in the house log, in its order and only once."""

from collections.abc import Iterator

import pytest
from django.db import OperationalError

from engine.evidence import restore
from engine.models import Envelope, Run
from engine.ops.members import ENDED, GAVE_UP, STARTED, STOPPED, Happened
from engine.runtime import agents, processes
from engine.runtime.group_commit import Job, committed
from engine.runtime.processes import Sealing
from engine.store import leases, ledgers
from nanovm_core.errors import RefusedError
from nanovm_core.ledger.value import Ledger
from sabotage.kit.waiting import wait_until
from tests.kit.house import House, invoice


@pytest.fixture
def sealing(house: House, monkeypatch: pytest.MonkeyPatch) -> Iterator[Sealing]:
    """On a database of its own; what was refused is tried again soon."""
    monkeypatch.setattr(processes, "RETRY_SECONDS", 0.01)
    found = Sealing(lambda: None)
    yield found
    found.close(10)


def happened(what: str, name: str = "payer", pid: int = 7, tag: str = "0123abcd") -> Happened:
    return Happened(what, name, name, tag, pid, "it ended with signal SIGKILL")


def told(sealing: Sealing, *each: Happened) -> Ledger:
    """The house log's ledger once all this was taken in."""
    for one in each:
        sealing.told(one)
    sealing.close(20)
    assert not sealing._thread.is_alive()
    house = ledgers.house()
    assert house is not None
    found = ledgers.stored(house)
    assert found is not None
    return found


def test_an_incarnation_is_the_ledgers_over_ends_and_starts(sealing: Sealing) -> None:
    twice = [happened(STARTED), happened(ENDED), happened(STARTED, pid=8)]
    ledger = told(sealing, *twice, happened(STOPPED, pid=8), happened(STARTED, pid=9))
    payer = ledger.agents["payer"]
    assert (payer.state, payer.incarnation) == ("running", 3)
    assert payer.text.endswith("(pid 9)")
    assert sealing.incarnations == {"payer": 3}


def test_giving_up_suspends_those_that_run_and_alerts_of_all_until_the_next_start(
    sealing: Sealing,
) -> None:
    gave_up = Happened(GAVE_UP, "agents", text="It gave up.", below=("reader", "payer"))
    both = [happened(STARTED, "reader"), happened(STARTED)]
    ledger = told(sealing, *both, happened(ENDED), gave_up, happened(STOPPED, "reader"))
    states = {name: (each.state, each.code) for name, each in ledger.agents.items()}
    assert states["payer"] == ("terminated.failed", "")
    assert states["reader"] == ("suspended.by_rule", "AGT-004")
    moves = Envelope.objects.filter(run="agent:reader")
    assert moves.count() == 3  # granted, started, suspended: its stop after that is none
    assert {name: each.rule for name, each in ledger.alerts.items()} == {
        "agent/payer": "AGT-004",
        "agent/reader": "AGT-004",
    }
    again = told(Sealing(lambda: None), *both)
    assert not again.alerts
    assert {each.state for each in again.agents.values()} == {"running"}
    assert {each.incarnation for each in again.agents.values()} == {2}
    killed = told(Sealing(lambda: None), *both)  # the supervisor itself was killed meanwhile
    assert {each.incarnation for each in killed.agents.values()} == {3}


def test_alert_of_a_process_that_is_no_agent_ends_with_its_next_start(sealing: Sealing) -> None:
    gave_up = Happened(GAVE_UP, "watchers", text="It gave up.", below=("controller",))
    assert [*told(sealing, gave_up).alerts] == ["agent/controller"]
    again = told(Sealing(lambda: None), Happened(STARTED, "web"), Happened(STARTED, "controller"))
    assert not again.alerts
    assert not again.agents


def test_alerts_are_told_once_a_supervisor_gave_up_and_not_before(house: House) -> None:
    calls: list[int] = []
    sealing = Sealing(lambda: calls.append(1))
    sealing.told(happened(STARTED))
    assert wait_until(lambda: sealing.incarnations == {"payer": 1}, 20_000)
    assert calls == []
    told(sealing, Happened(GAVE_UP, "agents", text="It gave up.", below=("payer",)))
    assert calls == [1]


def test_what_the_database_refuses_is_sealed_later_and_leases_are_freed(
    sealing: Sealing, house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A locked database, and a full disk, are OperationalErrors."""
    tries: list[int] = []

    def refusing(job: Job[object]) -> object:
        tries.append(1)
        if len(tries) < 4:
            raise OperationalError("database or disk is full")
        return committed(job)

    run = house.new(invoice()).id
    holder = "0123abcd-0000-4000-8000-000000000000"
    other = "0123abce-0000-4000-8000-000000000000"
    Run.objects.filter(id=run).update(holder=holder, until_ms=2**50)
    monkeypatch.setattr(processes, "committed", refusing)
    sealing.told(happened(STARTED))
    sealing.told(happened(ENDED))
    assert not sealing.sealed("payer")
    assert wait_until(lambda: sealing.sealed("payer"), 20_000)
    assert len(tries) == 5
    assert wait_until(lambda: Run.objects.get(id=run).holder == "", 20_000)
    Run.objects.filter(id=run).update(holder=other, until_ms=2**50)
    assert leases.free_of("0123abcd") == []
    assert told(sealing).agents["payer"].state == "terminated.failed"


def test_a_person_commands_no_process_and_closes_the_alert_of_one_that_does_not_run(
    sealing: Sealing,
) -> None:
    gave_up = Happened(GAVE_UP, "agents", text="It gave up.", below=("reader",))
    told(sealing, happened(STARTED, "reader"), happened(STARTED), gave_up)
    for _ in range(2):
        house = ledgers.house()
        assert house is not None
        for command in (agents.suspend, agents.resume, agents.kill, agents.declare):
            with pytest.raises(RefusedError, match=r"AGT-001.*follow the processes"):
                command(house.id, "payer", by="operator")
        restore.restore("operator")
    after = ledgers.house()
    assert after is not None
    assert after.id != ledgers.HOUSE
    assert [*agents.read(after.id).alerts] == ["agent/reader"]
    agents.acknowledge(after.id, "agent/reader", by="operator")
    assert not agents.read(after.id).alerts
