"""Each defence is taken away once: the attack must get through, or be seen to go further."""

from collections.abc import Callable
from dataclasses import replace
from itertools import count
from threading import Event
from types import MappingProxyType
from typing import Any
from uuid import uuid4

import pytest

from engine.models import AdapterCall
from engine.runtime import api, decide
from engine.store import leases, programs, records
from engine.worker import drive
from nanovm_core.core.authority.capabilities import Grant
from nanovm_core.core.envelope import decode_snapshot
from nanovm_core.core.fsm import moves, results
from nanovm_core.core.program import Program
from pipeline.steps.charge import gateway
from pipeline.steps.charge.gateway import Charge
from sabotage.fire import look_again
from sabotage.injectors import double_exec
from sabotage.kit import waiting
from sabotage.models import Attack
from tests.sabotage.runs import at, let_go, owing, shoot

pytestmark = pytest.mark.usefixtures("runtime_here", "impatient")

A_CENT_MORE = (
    '{"tool": "stripe.create_payment_intent", "args": {"amount_minor": 128451, '
    '"currency": "EUR", "payee": "{{payee}}", "memo": "{{memo}}"}}'
)
PAY = "stripe.create_payment_intent"
FORGED_CHARGE = "charge without authorize"
FORGED_ROW = "forged intent in the outbox"


def nothing(*_args: object, **_kwargs: object) -> None:
    """A guard that was taken away."""


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody will account for what the missing defence would have counted."""
    monkeypatch.setattr(waiting, "WAIT_MS_MAX", 100)


def judged(attack: Attack) -> str:
    return f"{attack.verdict} {attack.rule} {attack.integrity}"


@pytest.mark.parametrize(
    ("module", "guard", "instead", "moment", "attack", "params", "said", "seen"),
    [
        # the next wall stands
        (results, "resolve", lambda grants, tool: Grant(tool=tool), "propose",
         "tool_injection", {}, "BLOCKED CAP-002 HELD", {}),
        (records, "check_chain", nothing, "propose",
         "corrupt_hash", {"what": "bytes"}, "ACCEPTED  BREACHED", {"quarantined": False}),
        (records, "_sealed_snapshot", lambda run, last: decode_snapshot(bytes(run.snapshot)),
         "propose", "corrupt_hash", {"what": "snapshot"}, "ACCEPTED  BREACHED", {}),
        # without the outbox check a forged row leaves no trace
        (decide, "reconciled", lambda held, snapshot: [], "charge",
         "skip_step", {"skip": FORGED_ROW}, "ACCEPTED  HELD", {"sealed_since": []}),
        (moves, "expect_program", nothing, "charge", "reorder_steps",
         {"how": "resume under a permuted program"}, "ACCEPTED  BREACHED", {"after": "RUNNING"}),
        (programs, "found_hash", lambda run: run.program_hash, "charge", "reorder_steps",
         {"how": "swap the stored program"}, "ACCEPTED  HELD",
         {"goes_on_under_its_own": False}),
    ],
    ids=["grants", "chain", "sealed-snapshot", "outbox", "hash-in-message", "hash-of-program"],
)  # fmt: skip
def test_without_its_guard_the_attack_gets_further(
    module: object, guard: str, instead: object, moment: str, attack: str,
    params: dict[str, str], said: str, seen: dict[str, object], monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr(module, guard, instead)
    shot = shoot(at(moment), attack, **params)
    assert judged(shot) == said
    assert {name: shot.evidence[name] for name in seen} == seen


class TestToolInjection:
    def test_a_cent_more_is_blocked_and_without_provenance_paid_and_seen(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        held = shoot(owing("propose"), "tool_injection", proposal=A_CENT_MORE)
        assert judged(held) == "BLOCKED POL-010 HELD"
        program_of = programs.program_of

        def unproved(run: Any) -> Program:  # its payment's arguments need come from nowhere
            program = program_of(run)
            free = replace(program.tools[PAY], critical=MappingProxyType({}))
            return replace(program, tools=MappingProxyType({**program.tools, PAY: free}))

        monkeypatch.setattr(programs, "program_of", unproved)
        run = owing("propose")
        attack = shoot(run, "tool_injection", proposal=A_CENT_MORE)
        assert attack.verdict == "ACCEPTED"
        let_go(run)
        assert look_again(attack).integrity == "BREACHED"
        assert attack.evidence["breaches"] == [
            "A payment differs from the document in amount or currency."
        ]


class TestDoubleExec:
    @pytest.fixture
    def no_lease(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(gateway, "pay", meeting(gateway.pay))
        monkeypatch.setattr(leases, "is_held", lambda holder, until_ms: False)
        monkeypatch.setattr(leases, "is_holder", lambda holder, named: True)
        monkeypatch.setattr(double_exec, "SETTLED_MS_MAX", 3_000)  # it never settles so

    @pytest.mark.usefixtures("no_lease")
    @pytest.mark.parametrize("keys", [True, False])
    def test_without_leases_effects_are_done_twice_and_without_keys_paid_twice(
        self, keys: bool, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        pay = gateway.pay

        def anew(charge: Charge, **said: Any) -> str:
            return pay(replace(charge, key=uuid4().hex), **{**said, "begun_before": False})

        monkeypatch.setattr(gateway, "pay", pay if keys else anew)
        attack = shoot(owing("charge"), "double_exec", redeliveries="8")
        assert (attack.verdict, attack.integrity == "HELD") == ("ACCEPTED", keys)
        assert attack.evidence["effects_done_twice"] > 0
        assert (attack.evidence["far_side"]["succeeded"] == 1) == keys

    def test_a_step_that_began_with_its_intent_counts_where_a_copy_begins_it_again(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        run = at("running")
        _, receive = api.take(str(run.id))
        assert receive is not None
        extract = drive._next(receive)
        assert extract is not None
        assert (extract.effect.step, extract.recorded) == ("extract", False)
        monkeypatch.setattr(leases, "is_held", lambda holder, until_ms: False)
        monkeypatch.setattr(double_exec, "SETTLED_MS_MAX", 3_000)  # it never settles so
        attack = shoot(run, "double_exec", redeliveries="1")
        calls = AdapterCall.objects.filter(run=run, key=extract.effect.key).order_by("number")
        assert [each.at_ms for each in calls[:1]] == [extract.run.begun_ms]
        assert (attack.verdict, attack.evidence["effects_done_twice"]) == ("ACCEPTED", 1)


class TestSkipStep:
    @pytest.mark.parametrize("proof", [True, False], ids=["proof", "no-proof"])
    def test_a_forged_answer_to_the_payment_under_way_needs_the_holders_proof(
        self, proof: bool, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        if not proof:
            monkeypatch.setattr(leases, "is_holder", lambda holder, named: True)
        run = owing("charge")
        attack = shoot(run, "skip_step", skip=FORGED_CHARGE)
        assert f"{attack.verdict} {attack.rule}" == ("BLOCKED FSM-012" if proof else "ACCEPTED ")
        let_go(run)
        assert look_again(attack).integrity == ("HELD" if proof else "BREACHED")
        assert attack.evidence["far_side"]["succeeded"] == int(proof)


def meeting(pay: Callable[..., str]) -> Callable[..., str]:
    """The payment, made only when a second worker has come to make it too."""
    callers, both = count(1), Event()

    def paid(charge: Charge, **said: Any) -> str:
        if next(callers) > 1:
            both.set()
        assert both.wait(30), "nobody else came to pay"
        return pay(charge, **said)

    return paid
