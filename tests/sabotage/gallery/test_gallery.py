"""The gallery, fired for real: the verdict of every form of every attack, written down first."""

import json
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, nullcontext
from functools import cache
from pathlib import Path

import pytest
from _pytest.mark import ParameterSet
from django.conf import settings
from django.db import connection

from engine.clock import now_ms
from engine.models import AdapterCall, Envelope, Run, Secret, Workspace
from engine.ops import said
from engine.store import ledgers
from engine.vault.key_store import keystore
from nanovm_core.core.envelope import body_of
from pipeline.reconcile import differences
from pipeline.register import sample_register
from pipeline.steps.charge import gateway
from sabotage.baseline import comparison
from sabotage.baseline.account import NAMED, NAMELESS
from sabotage.baseline.checks import CAREFUL
from sabotage.doors.tamper_db import change_ledger
from sabotage.fire_scenario import fire_scenario
from sabotage.gallery import (
    SCENARIOS,
    edited_ledger,
    moonlight_payment,
    restored_snapshot,
    rogue_mcp_client,
    same_invoice_again,
    split_limit,
)
from sabotage.gallery.kit import outcomes
from sabotage.kit import evidence
from sabotage.kit.injector import Fired, InjectionError
from sabotage.models import Attack
from tests.sabotage.baseline.test_baseline import listed, reported
from tests.sabotage.gallery.expected import BILL, CONTROLS, EXPECTED, PAID
from tests.sabotage.runs import at, names_its_guard, rows_hash

pytestmark = pytest.mark.usefixtures("compared", "runtime_here")

SOAKED = ("restored_snapshot", "crash_loop")  # each starts a house of processes


def held(name: str, value: str = "") -> Attack:
    """The attack in its usual form or another, fired once for all that is asked of it."""
    asked = {"times": "1"} if name == "crash_loop" else {}  # each kill starts a worker anew
    usual = {each: str(known) for each, known in SCENARIOS[name].injector.read(asked).items()}
    of = [(param, forms) for (each, param), forms in EXPECTED.items() if each == name]
    param = next(param for param, forms in of if not value or value in forms)
    return _fired(name, tuple({**usual, **({param: value} if value else {})}.items()))


@cache
def _fired(name: str, params: tuple[tuple[str, str], ...]) -> Attack:
    return fire_scenario(sample_register.new_workspace(), name, dict(params), "")


def bounded() -> Iterator[ParameterSet]:
    """The forms; make soak fires all of them, make test the first one of each other attack."""
    seen = {*SOAKED}
    for (name, param), forms in EXPECTED.items():
        for value, decided in forms.items():
            mark = pytest.mark.soak if name in seen else ()
            seen.add(name)
            yield pytest.param(name, param, value, *decided, marks=mark, id=f"{name}-{value}")


@pytest.mark.whole
@pytest.mark.parametrize(("name", "param", "value", "verdict", "decider"), [*bounded()])
def test_every_form_is_held_as_it_was_written_down(
    name: str, param: str, value: str, verdict: str, decider: str
) -> None:
    shot = held(name, value)
    place, _, function = shot.where.partition(":")
    assert f"{shot.verdict} {shot.rule}" == verdict
    assert f"{place} {function.partition(' ')[2]}" == decider
    names_its_guard(shot)
    evidence = shot.evidence
    assert (shot.integrity, evidence["breaches"], evidence["calls"]) == ("HELD", [], 0)
    paid = [(each["amount_minor"], each["currency"]) for each in evidence["far_side"]["payments"]]
    assert paid in ([], PAID.get(name, []))
    assert str(shot.params[param]) == value


def test_every_form_of_every_attack_is_written_down() -> None:
    for name, scenario in SCENARIOS.items():
        for param in scenario.injector.params:
            assert {*param.choices} <= {*EXPECTED.get((name, param.name), ())}
    assert {name for name, _ in EXPECTED} == {name for name, *_ in CONTROLS} == set(SCENARIOS)
    assert set(SCENARIOS) <= set(comparison.ANSWERS)


class TestEvidence:
    def test_all_agents_together_keep_to_the_one_limit(self) -> None:
        evidence = held("split_limit").evidence
        agents = evidence["agents_ended"]
        assert sorted(each["rule"] for each in agents) == ["", "BUD-001", "BUD-001"]
        assert evidence["paid_minor_together"] == split_limit.CAP_MINOR
        assert evidence["calls_since"]["stripe.create_payment_intent"] == 1
        for each in agents:  # who was stopped names the envelope that says so
            row = Envelope.objects.filter(run=str(Run.objects.get(code=each["run"]).id))
            assert "model.propose" in {body_of(bytes(one.bytes)).get("tool") for one in row}
            if each["rule"]:
                told = row.get(n=each["event"] - 1)
                assert (told.hash, body_of(told.bytes)["rule"]) == (each["hash"], "BUD-001")
            else:
                assert each["hash"] == ""

    @pytest.mark.parametrize("how", [pytest.param(rogue_mcp_client.COPIED, marks=pytest.mark.soak),
                                     rogue_mcp_client.UNLISTED])  # fmt: skip
    def test_what_a_rogue_client_sends_is_counted_at_the_bank(self, how: str) -> None:
        told = held("rogue_mcp_client", how).evidence
        copies = rogue_mcp_client.COPIES if how == rogue_mcp_client.COPIED else 1
        assert sum(told["sent"].values()) == sum(told["answers"].values()) == copies
        made = told["executed"], told["may_execute"], len(told["paid"])
        assert made == (int(copies > 1),) * 3

    @pytest.mark.whole
    @pytest.mark.parametrize(("other", "said"), [
        ({"executed": 1}, "ACCEPTED "), ({"believed": True}, "ACCEPTED "),
        ({"how": rogue_mcp_client.SPLIT, "may_execute": 2, "answers": {"CAP-041": 3}}, "ACCEPTED "),
        ({"how": rogue_mcp_client.WIDER, "answers": {"GAT-003": 1}}, "BLOCKED GAT-003"),
        ({"answers": {"done": 1}}, ""),
        ({"how": rogue_mcp_client.COPIED, "answers": {"unknown": 1}}, ""),
    ])  # fmt: skip
    def test_each_rogue_form_has_its_own_rule(self, other: dict[str, object], said: str) -> None:
        shot = held("rogue_mcp_client")
        found = evidence.gather(str(shot.run_id), evidence.observe(str(shot.run_id)))
        with nullcontext() if said else pytest.raises(InjectionError, match="did not decide"):
            judged = rogue_mcp_client.assess(found, Fired(facts={**shot.evidence, **other}))
            told = f"{judged.verdict} {judged.rule}", judged.where, len(judged.breaches)
            assert told == (said, "", int(said == "ACCEPTED "))

    def test_a_drained_account_is_not_refilled_by_resuming(self) -> None:
        shot = held("drained_budget")
        assert shot.evidence["account"] == {"limit": 4, "booked": 4, "used": 4}
        assert shot.evidence["resumed"] == 4

    def test_the_sixth_declined_payment_suspends_the_payer_in_its_own_commit(self) -> None:
        told = held("error_storm").evidence
        [stopped] = told["suspended"]
        assert (told["payment_calls"], told["paid"], stopped["rule"]) == (6, [], "POL-004")
        ends = [each["rule"] for each in told["runs_ended"]]
        assert ends == ["CAP-040"] * 5 + ["STR-001"] * 6
        row = Envelope.objects.get(run="agent:payer", hash=stopped["hash"])
        sixth = str(Run.objects.get(code=told["runs_ended"][-1]["run"]).id)
        rows = Envelope.objects.filter(workspace=row.workspace, seq__lte=row.seq).order_by("-seq")
        assert [each.run for each in rows[:3]] == ["agent:payer", sixth, sixth]  # failed, ended

    @pytest.mark.soak
    def test_a_killed_payer_is_back_as_its_next_incarnation_and_pays_no_more(self) -> None:
        told = held("crash_loop").evidence
        [kill] = told["kills"]
        seen = [kill["before"], kill["after"]]
        assert [each["payer"]["incarnation"] for each in seen] == [1, 2]
        assert len({each["payer"]["pid"] for each in seen}) == 2
        assert len({(*each["reader"].values(),) for each in seen}) == 1  # nobody killed it
        assert (len(kill["node"]["ends_ms"]), kill["payments"]) == (1, 1)
        assert told["calls_since"]["stripe.create_payment_intent"] == 2
        assert (told["run_ended"], told["alerts"], told["recomputed"]["damage"]) == ("paid", [], [])

    def test_an_edited_ledger_is_named_and_put_back_and_what_is_left_is_paid(self) -> None:
        told = held("edited_ledger").evidence
        ends = [(each["rule"], each["payments"]) for each in told["runs_ended"]]
        assert ends == [
            ("BUD-001", "0 succeeded"),
            ("", "1 succeeded (200000 minor USD)"),
            ("", "1 succeeded (50000 minor USD)"),
        ]
        assert told["sealed_ledger"] == told["alert"]["expected"] != told["alert"]["found"]
        row = Envelope.objects.get(run="log", hash=told["alert"]["hash"])
        assert (row.n + 1, body_of(row.bytes)["rule"]) == (told["alert"]["event"], "LOG-011")

    def test_an_edited_ledger_is_judged_by_what_the_log_and_the_row_say(self) -> None:
        shot = held("edited_ledger")
        found = evidence.gather(str(shot.run_id), evidence.observe(str(shot.run_id)))
        told = shot.evidence

        def verdict(**other: object) -> str:
            return edited_ledger.assess(found, Fired(facts={**told, **other})).verdict

        assert verdict() == "DETECTED"
        assert verdict(edited_ledger=told["sealed_ledger"]) == "ACCEPTED"  # no alert names it
        assert verdict(envelopes_before=found.run.workspace.size) == "ACCEPTED"  # nor one since
        true = bytes(found.run.workspace.ledger)
        change_ledger(found.run.workspace, b"{}")
        assert verdict() == "ACCEPTED"  # nobody put it back
        change_ledger(found.run.workspace, true)

    @pytest.mark.parametrize(
        ("form", "known_by"),
        [*zip(same_invoice_again.FORMS, ("document", "similar", "total"), strict=True)],
    )
    def test_the_same_invoice_names_the_run_that_paid_it(self, form: str, known_by: str) -> None:
        told = held("same_invoice_again", form).evidence
        paid, again = told["runs_ended"]
        assert (told["duplicate_of"], told["known_by"]) == (paid["run"], known_by)
        assert (paid["end"], again["end"], again["payments"]) == ("paid", "held", "0 succeeded")
        assert [each["run"] for each in told["paid"]] == [paid["run"]]

    def test_the_preparer_is_paid_its_own_and_the_charger_its_own(self) -> None:
        both = held("colluding_agents").evidence
        told = [each["payments"] for each in both["agents_ended"]]
        assert told == ["1 succeeded (10000 minor USD)", "1 succeeded (900000 minor USD)"]
        agents = [each["run"] for each in both["agents_ended"]]
        calls = AdapterCall.objects.filter(run__code__in=agents)
        assert sum(both["calls_since"].values()) == calls.count()
        assert sorted(each["amount_minor"] for each in both["paid"]) == [10_000, 900_000]

    def test_a_call_of_any_of_its_runs_that_nobody_sealed_is_counted(self) -> None:
        def calls() -> object:
            return outcomes.combined([outcomes.outcome_of(run) for run in runs])["calls"]

        runs = [at("succeeded"), at("succeeded")]
        assert calls() == 0
        call = AdapterCall.objects.filter(run=runs[1]).latest("number")
        call.number, call.key = call.number + 1, "f" * 64
        call.save(force_insert=True)
        assert calls() == 1

    @pytest.mark.soak
    def test_the_house_that_is_restored_tells_its_calls_and_fsck_finds_it(self) -> None:
        told = held("restored_snapshot").evidence
        paid = [(each["amount_minor"], each["currency"]) for each in told["paid"]]
        assert (paid, told["calls"]) == ([(BILL, "EUR")], 0)
        assert told["calls_since"]["stripe.create_payment_intent"] == 1
        assert (told["fsck_exit_status"], told["fsck_found"]) == (1, ["LOG-006"])
        assert (told["signed_before"], told["signed_size_after"]) == (27, 0)
        own = gateway.configured().v1.payment_intents.list({"limit": 100}).auto_paging_iter()
        named = {gateway.metadata(each.to_dict()).get("run") for each in own} - {None, ""}
        assert named <= {str(run) for run in Run.objects.values_list("id", flat=True)}

    def test_the_house_that_is_restored_pays_from_an_account_of_its_own(
        self, tmp_path: Path
    ) -> None:
        ask = "from django.conf import settings; print(settings.STRIPE['key'])"
        own = restored_snapshot.DataFolder(tmp_path).done("shell", "--no-imports", "-c", ask).said
        assert own.strip() == restored_snapshot.ACCOUNT != settings.STRIPE["key"]

    def test_a_call_in_the_house_that_nobody_sealed_is_counted(self, tmp_path: Path) -> None:
        at("succeeded")
        house = restored_snapshot.DataFolder(tmp_path)
        connection.close()
        shutil.copy(connection.settings_dict["NAME"], tmp_path / restored_snapshot.DATABASE)
        before = int(str(house.calls()["calls"]))
        with closing(sqlite3.connect(tmp_path / restored_snapshot.DATABASE)) as opened:
            opened.execute("UPDATE pipeline_adaptercall SET key = 'f' WHERE number = 1 AND run_id ="
                           " (SELECT max(run_id) FROM pipeline_adaptercall)")  # fmt: skip
            opened.commit()
        assert house.calls()["calls"] == before + 1

    def test_a_payment_past_the_runtime_stops_the_payer_of_its_log_alone(self) -> None:
        shot = held("moonlight_payment")
        told, log = shot.evidence, shot.run.workspace
        assert told["compared_by"] == moonlight_payment.OWN_TURNS
        assert told["both_sides"]["stripe"]["amount_minor"] == 93_000
        assert sorted(each["amount_minor"] for each in told["paid"]) == [41_200, 93_000]
        for name, owner in (("difference", "log"), ("alert", "log"), ("suspended", "agent:payer")):
            row = Envelope.objects.get(workspace=log, run=owner, hash=told[name]["hash"])
            assert (row.n + 1, "REC-001" in str(body_of(row.bytes))) == (told[name]["event"], True)
        stopped = Envelope.objects.filter(run="agent:payer", seq__gte=told["log_size"])
        mine = ledgers.stored(Workspace.objects.get(id=shot.workspace_id))
        assert stopped.filter(workspace=log).count() == 1
        assert mine is not None
        assert not mine.alerts
        assert "pi_" not in json.dumps(told)

    @pytest.mark.parametrize("how", [NAMED, NAMELESS])
    def test_an_attack_with_the_key_leaves_no_difference_open(self, how: str) -> None:
        shot = held("moonlight_payment", how)
        told, alone = shot.evidence, how == NAMELESS
        log = Workspace.objects.get(id=told["log"])
        event = told["difference"]["event"]
        [found] = [each for each in differences.of_log(log) if each.n + 1 == event]
        assert (found.code, found.closed, found.run == "") == ("REC-001", "operator", alone)
        assert (ledgers.is_of_house(log.id), "suspended" in told) == (alone, not alone)
        assert told["next_invoice"] == ("paid" if alone else "held")

    def test_what_no_comparison_found_is_a_breach(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(moonlight_payment, "FOUND_MS_MAX", 100)
        monkeypatch.setattr(said, "heard", lambda _: said.Said(now_ms()))  # but finds nothing
        shot = fire_scenario(sample_register.new_workspace(), "moonlight_payment", {}, "")
        assert (shot.verdict, shot.rule, shot.integrity) == ("ACCEPTED", "", "BREACHED")
        assert shot.evidence["seen_by_the_attack"] == [
            f"Stripe has {NAMED}, and no log says so.",
            moonlight_payment.WENT_ON,
        ]

    def test_an_attack_with_the_key_is_judged_by_what_was_sealed(self) -> None:
        shot = held("moonlight_payment")
        found = evidence.gather(str(shot.run_id), evidence.observe(str(shot.run_id)))
        other = at("succeeded")
        for changed in ({"payment": "0" * 64, "paid_run": str(other.id)},
                        {"log": str(other.workspace_id)}, {"log_size": 10**6}):  # fmt: skip
            judged = moonlight_payment.assess(found, Fired(facts={**shot.evidence, **changed}))
            assert (judged.verdict, judged.rule) == ("ACCEPTED", "")

    def test_the_vault_is_left_as_the_erasure_left_it(self) -> None:
        shot = held("resurrected_pii")
        secrets = Secret.objects.filter(run=shot.run)
        assert not secrets.filter(erased_ms=None).exists()
        assert not secrets.exclude(ciphertext=None).exists()
        assert str(shot.run_id) not in keystore().subjects()
        files = [name for name in secrets.values_list("file", flat=True) if name]
        assert files
        assert not any((Path(settings.NANOVM_DATA) / "media" / name).exists() for name in files)

    def test_an_exhibit_that_must_be_alone_touches_nothing_of_its_owner(self) -> None:
        owner = at("succeeded").workspace
        before = Run.objects.filter(workspace=owner).count()
        shot = fire_scenario(owner, "split_limit", {"agents": "2"}, "")
        assert Run.objects.filter(workspace=owner).count() == before
        assert (shot.workspace_id, shot.run.workspace_id == owner.id) == (owner.id, False)

    def test_other_workspaces_stay_as_they_are(self) -> None:
        other = at("succeeded").workspace
        untouched = rows_hash(other)
        fire_scenario(sample_register.new_workspace(), "widened_grant", {}, "")
        fire_scenario(sample_register.new_workspace(), "confused_deputy", {}, "")
        assert rows_hash(other) == untouched


@pytest.mark.parametrize(
    ("name", "value", "moved", "cost", "says"),
    [
        pytest.param(*row, marks=pytest.mark.soak if row[0] in SOAKED or row[1] else ())
        for row in CONTROLS
    ],
)
def test_the_loop_does_what_it_is_told_and_it_costs(
    name: str, value: str, moved: list[int], cost: int, says: str
) -> None:
    shot = held(name, value)
    told = reported(shot)
    assert sorted(amount for _, amount, _ in listed(str(shot.id))) == sorted(moved)
    assert (told["ended"], told["cost"]["amount_minor"]) == ("done", cost)
    assert says in told["happened"]
    assert "no payment. Its" not in reported(shot, CAREFUL)["happened"]


class TestShowing:
    @pytest.mark.parametrize(("name", "params", "says"), [
        ("nonsense", {}, "The gallery has no 'nonsense'; it has split_limit"),
        ("split_limit", {"agents": "1"}, "a number from 2 to 8"),
        ("split_limit", {"agents": "9"}, "a number from 2 to 8"),
        ("split_limit", {"amount_minor": "1"}, "Together they must ask for more than"),
        ("confused_deputy", {"slot": "seller"}, "is one of: payee, memo"),
        ("moonlight_payment", {"how": "a payout"}, "is one of: a payment in the name of a run"),
    ])  # fmt: skip
    def test_what_is_refused_says_why(self, name: str, params: dict[str, str], says: str) -> None:
        with pytest.raises(InjectionError, match=says):
            fire_scenario(sample_register.new_workspace(), name, params, "")
