"""The controller: what differs is found within two turns, and nothing else is."""

import re
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.core.management import call_command
from django.db import connection

import pipeline.reconcile
from engine.clock import now_ms
from engine.evidence.fsck.audit import audit
from engine.models import Envelope, Run, Workspace
from engine.privacy import erasure
from engine.runtime import agents, chains
from engine.store import ledgers
from nanovm_core.agents import RUNNING
from pipeline.reconcile import differences
from pipeline.reconcile.differences import Difference
from pipeline.reconcile.turns import Compared, Turns
from tests.kit.clock import Leap
from tests.kit.house import House, bodies, crash, invoice, sql
from tests.pipeline.after_payment.events import delivered, driven, happened, listening
from tests.pipeline.after_payment.pages import DOLLARS, far, sdk
from tests.pipeline.reconcile.world import GONE, edited, paid, refunded, two

PAYER = "agent/payer"


def state(run: Run) -> str:
    """What the ledger says of the payer of a run's log."""
    return agents.read(run.workspace_id).agents["payer"].state


def found(run: Run) -> tuple[Difference, ...]:
    return differences.of_log(Workspace.objects.get(id=run.workspace_id))


def houses() -> tuple[Difference, ...]:
    house = ledgers.house()
    return differences.of_log(house) if house else ()


def to(**fields: Any) -> Callable[[House, Run], None]:
    return lambda house, run: edited(house, run, lambda body: body.update(fields))


def again(_: House, run: Run) -> None:
    """A copy of a payment, with all that it names."""
    paid(run, key=far(run).metadata.to_dict()["key"], amount=12_000)


DRIFTS: dict[str, tuple[str, Callable[[House, Run], object]]] = {
    "a payment that names the run": ("REC-001", lambda _, run: paid(run, key="0" * 64)),
    "a copy of its payment": ("REC-001", again),
    "gone": ("REC-002", lambda house, run: edited(house, run, lambda _: GONE)),
    "an unannounced refund": ("REC-003", lambda _, run: refunded(run)),
    "amount": ("REC-003", to(amount_received=11_999)),
    "currency": ("REC-003", to(currency="eur")),
    "status": ("REC-003", to(status="canceled", amount_received=0)),
    "account": ("REC-003", to(transfer_data={"destination": "acct_of_somebody"})),
    "names another run": ("REC-003", to(metadata={"run": "01a222ee-1ce7-78e6-a875-771ce641bed0"})),
    "names nobody": ("REC-003", to(metadata={})),
}


def drifted(house: House, rounds: int) -> int:
    """Let every drift happen to a run of its own, and hold what two turns find to it."""
    turns = Turns()
    for place in (each % 90 + 1 for each in range(rounds)):  # below the policy's limits
        runs = [house.run(invoice(f"Total  USD {place}{n}.00")) for n, _ in enumerate(DRIFTS, 10)]
        assert two(turns).found == 0
        for run, (_, happens) in zip(runs, DRIFTS.values(), strict=True):
            happens(house, run)
        at_ms = now_ms()
        assert [turns.turn(at_ms + n).found for n in range(3)] == [0, len(DRIFTS), 0]
        for run, (code, _) in zip(runs, DRIFTS.values(), strict=True):
            (one,) = found(run)
            assert (one.code, one.run, one.run_code, one.closed) == (code, run.name, run.code, "")
            assert one.log_says != one.stripe_says
            ledger = agents.read(run.workspace_id)
            assert (state(run), ledger.alerts[PAYER].rule) == ("suspended.by_rule", code)
    return rounds * len(DRIFTS)


@pytest.mark.parametrize("rounds", [1, pytest.param(100, marks=pytest.mark.soak)])
def test_drift_is_found_within_two_turns_stops_the_payer_and_is_sealed_once(
    house: House, rounds: int
) -> None:
    count = drifted(house, rounds)
    sealed = [each for each in bodies("log") if each["kind"] == "observation" and "rule" in each]
    assert len(sealed) == count
    assert not re.search(r"(pi|ch|re|acct|pm)_\w", str(sealed))
    last = two(Turns())
    assert (audit().damage, last.found, sum(last.open.values())) == ((), 0, count)


def test_checked_difference_is_closed_until_stripes_side_changes_again(house: House) -> None:
    run, turns = house.run(DOLLARS), Turns()
    refunded(run)
    two(turns)
    (one,) = found(run)
    assert differences.check(run.workspace_id, one.id, "visitor")
    assert not differences.check(run.workspace_id, one.id, "visitor")
    assert not differences.check(run.workspace_id, "0" * 32, "visitor")
    assert (two(turns).found, two(Turns()).open, found(run)[0].closed) == (0, {}, "visitor")
    assert state(run) == "suspended.by_rule"  # which a person resumes
    agents.resume(run.workspace_id, "payer", by="visitor")
    assert agents.read(run.workspace_id).alerts == {}
    refunded(run)
    two(turns)
    (other,) = found(run)
    assert (other.id != one.id, other.closed) == (True, "")


@pytest.mark.parametrize("is_checked", [True, False])
def test_difference_that_ended_is_reported_when_both_differ_again(
    house: House, is_checked: bool
) -> None:
    run, turns = house.run(DOLLARS), Turns()
    for names in ("first", "again"):
        edited(house, run, lambda body: body.update(currency="eur"))
        assert two(turns).open == {"REC-003": 1}, names
        (one,) = found(run)
        if is_checked:
            assert differences.check(run.workspace_id, one.id, "visitor")
        edited(house, run, lambda body: body.update(currency="usd"))
        assert two(turns).open == two(Turns()).open == {}
        assert found(run)[0].closed == ("visitor" if is_checked else "agrees")
    sealed = [each for each in bodies("log") if "difference" in each.get("in", {})]
    ends = ["checked", "agrees"] if is_checked else ["agrees"]
    assert [each.get("outcome", each.get("rule")) for each in sealed] == ["REC-003", *ends] * 2


def test_difference_that_ends_is_closed_and_its_alert_goes_where_nobody_is_suspended(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    listening(monkeypatch)
    run, turns = house.run(DOLLARS), Turns()
    refunded(run)
    two(turns)
    agents.suspend(run.workspace_id, "payer", by="visitor")
    for event in happened(run, "charge.refunded"):
        assert delivered(event) == 200
    assert turns.turn(now_ms()).open == {"REC-003": 1}  # the event is being looked at
    driven(run)
    assert turns.turn(now_ms()).open == {}
    assert found(run)[0].closed == "agrees"
    assert state(run) == "suspended.by_rule"
    payment = paid()
    two(turns)
    assert [each.code for each in houses()] == ["REC-001"]
    assert list(agents.read(ledgers.house().id).alerts) == ["comparison"]  # type: ignore[union-attr]
    edited_away = sdk().v1.payment_intents.retrieve(payment.id)
    assert edited_away.status == "succeeded"
    (one,) = houses()
    assert differences.check(ledgers.house().id, one.id, "operator")  # type: ignore[union-attr]
    assert agents.read(ledgers.house().id).alerts == {}  # type: ignore[union-attr]


@pytest.mark.parametrize("shared", [False, True])
def test_payment_that_names_no_run_of_ours_is_everyones_or_of_another_system(
    house: House, monkeypatch: pytest.MonkeyPatch, shared: bool
) -> None:
    run, turns = house.run(DOLLARS), Turns()
    monkeypatch.setattr(settings, "NANOVM_STRIPE_SHARED", shared)
    paid(key="0" * 64)
    paid(metadata={"run": "01a222ee-1ce7-78e6-a875-771ce641bed0"})
    paid(payment_method="pm_card_visa", confirm=False)  # nothing was paid
    last = two(turns)
    assert (len(houses()), last.others) == ((0, 2) if shared else (2, 0))
    assert (found(run), state(run)) == ((), RUNNING)


def test_announced_refund_that_no_worker_looked_at_yet_is_no_difference(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    listening(monkeypatch)
    run, turns = house.run(DOLLARS), Turns()
    refunded(run)
    assert [delivered(each) for each in happened(run, "charge.refunded")] == [200]
    assert two(turns).open == {}
    driven(run)
    assert two(turns).open == {}


def test_payment_of_a_call_that_failed_is_found(house: House) -> None:
    run, turns = house.run(DOLLARS, payment_method="pm_card_chargeDeclined"), Turns()
    assert two(turns).open == {}
    edited(house, run, lambda body: body.update(status="succeeded", amount_received=12_000))
    assert two(turns).open == {"REC-003": 1}


def test_payment_of_nobody_before_the_first_log_is_no_difference(house: House) -> None:
    chains.house()
    paid()
    for created_ms, found_ in ((now_ms() + 9_000, {}), (0, {"REC-001": 1})):
        Workspace.objects.update(created_ms=created_ms)
        assert two(Turns()).open == found_


def test_operator_lists_open_differences_and_closes_one(
    house: House, capsys: pytest.CaptureFixture[str]
) -> None:
    run = house.run(DOLLARS)
    paid(key="0" * 64)
    refunded(run)
    assert two(Turns()).open == {"REC-001": 1, "REC-003": 1}
    (ours,), (everyones,) = found(run), houses()
    asked = (("", 0, 2), (everyones.id, 0, 1), (everyones.id, 2, 0), ("", 0, 1), ("0" * 32, 2, 0))
    for name, status, lines in asked:
        with pytest.raises(SystemExit, match=str(status)):
            call_command("controller", *filter(None, ("--check", name)))
        said = capsys.readouterr()
        assert (said.out.count("\n"), "No open difference" in said.err) == (lines, status == 2)
        assert ours.id in said.out or name
    assert (houses()[0].closed, found(run)[0].closed) == ("operator", "")


def test_second_look_is_needed_and_what_settles_between_is_no_difference(house: House) -> None:
    run, turns = house.run(DOLLARS), Turns()
    before = far(run).to_dict()
    edited(house, run, lambda body: body.update(status="processing", amount_received=0))
    assert turns.turn(now_ms()).open == {}
    edited(house, run, lambda body: body.update(before, latest_charge=before["latest_charge"]))
    assert two(turns).open == {}


def test_crash_between_the_seal_and_the_cursor_and_two_controllers_seal_once(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, one = house.run(DOLLARS), Turns()
    refunded(run)
    turns = [Turns(), Turns()]
    for each in (one, *turns):
        each.turn(now_ms())
    with monkeypatch.context() as patch:
        patch.setattr(Turns, "_move_on", crash)
        with pytest.raises(KeyboardInterrupt):
            one.turn(now_ms() + 1)
    assert len(found(run)) == 1
    threads = [threading.Thread(target=each.turn, args=(now_ms() + 2,)) for each in turns]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert two(Turns()).open == {"REC-003": 1}
    sealed = [each for each in bodies("log") if each.get("rule") == "REC-003"]
    assert [each["kind"] for each in sealed] == ["observation"]


def test_two_processes_at_once_seal_one(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second asks for the lock while the first has sealed."""
    run, turns, other = house.run(DOLLARS), Turns(), Turns()
    refunded(run)
    turns.turn(now_ms())
    other.turn(now_ms())
    inner = differences.seal

    def second(log: Any, drift: Any) -> bool:
        monkeypatch.setattr(differences, "seal", inner)
        assert other.turn(now_ms() + 1).found == 1
        assert differences.check(log, drift.id, "visitor")  # a person, in the same moment
        return inner(log, drift)

    monkeypatch.setattr(differences, "seal", second)
    assert turns.turn(now_ms() + 1).found == 0
    assert [each.closed for each in found(run)] == ["visitor"]


def test_erased_restored_and_damaged_runs_raise_no_alarm(house: House) -> None:
    erased, closed, damaged = (house.run(invoice(f"Total  USD {n}7.00")) for n in (1, 2, 3))
    refunded(erased)
    edited(house, damaged, lambda body: body["metadata"].update(key="0" * 64))
    erasure.erase_run(str(erased.id), "art17-1-a", "visitor")
    goes_on = chains.create()
    Workspace.objects.filter(id=closed.workspace_id).update(successor=goes_on)
    changed_hash = "UPDATE pipeline_envelope SET hash = %s WHERE run = %s AND kind = 'intent'"
    sql((changed_hash, ("0" * 64, damaged.name)))
    last = two(Turns())
    assert (last.open, "1 payments are of runs whose log is damaged" in last.why) == ({}, True)
    refunded(closed)
    two(Turns())
    assert [each.code for each in differences.of_log(goes_on)] == ["REC-003"]


def test_log_that_went_back_is_read_anew(house: House) -> None:
    run, turns = house.run(DOLLARS), Turns()
    two(turns)
    rows = Envelope.objects.filter(workspace=run.workspace_id)
    intent = rows.filter(kind="intent").earliest("seq")
    own = intent.workspace_id if connection.vendor == "postgresql" else intent.workspace_id.hex
    sql(
        ("DELETE FROM pipeline_envelope WHERE workspace_id = %s AND seq >= %s", (own, intent.seq)),
        ("UPDATE pipeline_workspace SET size = %s WHERE id = %s", (intent.seq, own)),
    )
    turns.turn(now_ms())
    assert turns._logs.calls == {}, "what a backup no longer has is still remembered"


@pytest.mark.parametrize("minutes", [-20, -4, 4, 20])
def test_clocks_that_differ_raise_no_alarm_and_drift_is_found(
    house: House, leap: Leap, minutes: int
) -> None:
    leap(minutes * 60_000)
    run, turns = house.run(DOLLARS), Turns()
    assert two(turns) == Compared({}, 1)
    paid(run, key="0" * 64)
    assert two(turns).open == {"REC-001": 1}


def test_news_of_an_old_payment_is_looked_at_at_once_and_all_every_ten_minutes(
    house: House, leap: Leap
) -> None:
    run, turns = house.run(DOLLARS), Turns()
    two(turns)
    edited(house, run, lambda body: body.update(created=body["created"] - 3_000))
    leap(60_000)
    assert (turns.turn(now_ms()).full, turns.turn(now_ms()).open) == (False, {})
    refunded(run)
    assert two(turns).open == {"REC-003": 1}
    leap(600_000)
    assert turns.turn(now_ms()).full is True


def test_house_log_says_what_was_compared_and_a_restart_looks_at_all_again(
    house: House, leap: Leap
) -> None:
    run, turns = house.run(DOLLARS), Turns()
    assert [turns.turn(now_ms() + n).full for n in range(2)] == [True, False]
    assert Turns().turn(now_ms()).full is True
    leap(3_600_001)
    refunded(run)
    assert (turns.turn(now_ms()).full, turns.turn(now_ms()).open) == (True, {"REC-003": 1})
    said = [each for each in bodies("log") if each["kind"] == "observation" and "rule" not in each]
    assert [each["out"]["differ"] for each in said] == [0, 0, 1, 1]
    assert said[-1]["in"]["since_ms"] <= said[-1]["in"]["until_ms"]


def test_room_asks_stripe_for_lists_and_single_payments_alone() -> None:
    (folder,) = pipeline.reconcile.__path__
    source = "".join(each.read_text() for each in Path(folder).glob("*.py"))
    assert {*re.findall(r"v1\.\w+\.(\w+)\(", source)} == {"retrieve", "list"}
    assert not re.search(r"\.(create|cancel|confirm|capture|update|modify|delete)\(", source)
