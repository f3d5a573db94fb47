"""The port for a foreign policy engine: it takes away, it never gives, and its errors deny."""

from collections.abc import Mapping

import pytest

from nanovm_core.conditions import parse
from nanovm_core.core import lifecycle as life
from nanovm_core.core.authority.policy import ADMISSION, Outcome, PolicyRule
from nanovm_core.core.events import Approved
from nanovm_core.core.gate.decider import Decider
from nanovm_core.errors import RefusedError
from nanovm_core.loading import load_policy, load_program
from tests.core.kit.builders import POLICY, SOURCE, Play, code, proposal

SLOW = PolicyRule(
    id="slow",
    at="authorize",
    outcome="hold",
    when=parse("$proposal.amount_minor > 100"),
    why="The engine wants a person.",
    approvable=True,
)


class Engine:
    """An engine that answers as it is told, and remembers what it was asked."""

    def __init__(self, answer: object = None, *, admits: object = None, mark: str = "a") -> None:
        self._answers = {ADMISSION: admits or Outcome(("engine",))}
        self._answer = answer or Outcome(("engine",))
        self.hash = mark * 64
        self.approvable = frozenset({"slow"})
        self.asked: list[Mapping[str, object]] = []

    def judge(self, at: str, context: Mapping[str, object], approved: tuple[str, ...]) -> Outcome:
        self.asked.append(context)
        answer = self._answers.get(at, self._answer)
        if isinstance(answer, Exception):
            raise answer
        if isinstance(answer, Outcome) and answer.hold is not None and answer.hold.id in approved:
            return Outcome((answer.hold.id,))
        return answer  # type: ignore[return-value]


def play(engine: Decider) -> Play:
    return Play(load_program(SOURCE).under(load_policy(POLICY), engine))


def test_what_it_allows_goes_on_with_its_rules_named() -> None:
    engine = Engine()
    run = play(engine).to_charge()
    assert run.now.allowed_by == ("within-limit", "engine")
    assert engine.asked[-1]["proposal"]


@pytest.mark.parametrize(
    ("answer", "met"),
    [
        (RefusedError("POL-003", "no"), "POL-003"),
        (RefusedError("POL-001", "nothing"), "POL-001"),
        *((error, "POL-002") for error in (ZeroDivisionError(), "allow", True)),
    ],
)
def test_what_it_denies_or_cannot_answer_is_denied(answer: object, met: str) -> None:
    assert code(play(Engine(answer)).to_propose().propose()) == met


def test_it_cannot_allow_what_our_own_rules_hold_or_deny() -> None:
    run = play(Engine()).to_propose(amount_minor=1_000_001)
    run.propose(proposal(amount_minor=1_000_001))
    assert (run.now.state, run.now.held_by) == (life.APPROVAL, "over-limit")
    assert code(play(Engine()).to_propose(amount_minor=5).propose()) == "POL-010"


def test_its_hold_waits_for_a_person_who_may_lift_it() -> None:
    run = play(Engine(Outcome(("slow",), SLOW))).to_propose()
    run.propose()
    assert (run.now.state, run.now.held_by) == (life.APPROVAL, "slow")
    run.feed(Approved())
    assert (run.now.state, run.now.step) == (life.ACTIVE, "charge")


def test_it_is_asked_before_the_model_is() -> None:
    run = play(Engine(admits=RefusedError("POL-003", "no"))).to_propose()
    assert (run.now.state, run.now.reason and run.now.reason[0]) == (life.FAILED, "POL-003")


def test_its_hash_is_part_of_the_policy_that_a_run_begins_under() -> None:
    hashes = {play(Engine(mark=mark)).now.policy for mark in "ab"} | {Play().now.policy}
    assert len(hashes) == 3
