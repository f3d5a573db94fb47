"""Fifty redeliveries at once, and fifty after the end: one payment."""

from typing import Any

import pytest

from nanovm_core.core import lifecycle as life
from tests.kit.house import payments, succeeded
from tests.sabotage.runs import at, let_go, now, shoot

pytestmark = pytest.mark.usefixtures("runtime_here")


def accounted(evidence: dict[str, Any]) -> int:
    names = ("absorbed_by_lease", "absorbed_after_the_end", "nothing_was_owed", "drove_the_run")
    return sum(evidence[name] for name in names)


def test_fifty_at_once_and_fifty_late_are_one_payment() -> None:
    run = at("running")
    first = shoot(run, "double_exec")
    assert (first.verdict, first.rule, first.integrity) == ("IGNORED", "FSM-008", "HELD")
    assert first.evidence["redeliveries"] == accounted(first.evidence) == 50
    assert first.evidence["unaccounted"] == 0
    assert first.evidence["drove_the_run"] == 1
    assert first.evidence["at_stake"] == {}
    assert let_go(run).state == life.COMPLETED
    late = shoot(run, "double_exec")
    assert (late.verdict, late.rule, late.integrity) == ("IGNORED", "FSM-003", "HELD")
    assert late.evidence["absorbed_after_the_end"] == accounted(late.evidence) == 50
    assert late.evidence["effects_done_twice"] == 0
    assert late.evidence["at_stake"] == {"currency": "EUR", "amount_minor": 128_450}
    assert (succeeded(run), len(payments(run))) == ([(128_450, "eur")], 1)


def test_a_paused_run_is_not_resumed_by_the_attack() -> None:
    assert shoot(at("charge"), "double_exec", redeliveries="2").evidence["at_stake"]
    run = at("propose")
    attack = shoot(run, "double_exec", redeliveries="3")
    assert attack.evidence["at_stake"] == {}
    assert now(run).state == life.PAUSED
    assert attack.evidence["commands_again"] == 1
    assert attack.evidence["commands_refused_by"] == ["FSM-002"]
