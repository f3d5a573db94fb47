"""A run goes on under the program and the policy that it began under, or not at all."""

from dataclasses import replace

import pytest

from nanovm_core.core.events import (
    EffectDone,
    ErasureRequested,
    Event,
    KillRequested,
    PauseRequested,
    ProposalReceived,
    RunStarted,
    TimePassed,
)
from nanovm_core.core.fsm import transition
from nanovm_core.core.program import Program
from nanovm_core.loading import load_policy, load_program
from tests.core.kit.builders import POLICY, SOURCE, Play, code, proposal, worker_context

OTHERS: dict[str, Program] = {
    "another program": load_program(SOURCE + b"\n").under(load_policy(POLICY)),
    "another policy": load_program(SOURCE).under(load_policy(POLICY + b"\n")),
    "no policy": load_program(SOURCE),
    "fewer steps": replace(
        load_program(SOURCE + b"\n").under(load_policy(POLICY)),
        steps={},
    ),
}
KINDS = (RunStarted, PauseRequested, KillRequested, TimePassed)


@pytest.mark.parametrize("other", OTHERS)
def test_nothing_is_taken_under_another_program_or_policy(other: str) -> None:
    for play in (Play(), Play().to_propose(), Play().to_charge()):
        before, program = play.now, OTHERS[other]
        at_ms, key = play.tick(10**9), play.key
        events: list[Event] = [kind() for kind in KINDS]
        events.append(EffectDone(key=key, out={"size_bytes": 1}))
        events.append(ProposalReceived(key=key, raw=proposal()))
        for event in events:
            decision = transition(program, before, event, worker_context(at_ms=at_ms))
            assert (code(decision), decision.snapshot) == ("PRG-011", before)
            assert (decision.effects, decision.budgets) == ((), ())
            assert [draft.kind for draft in decision.drafts] == ["refused"]


def test_run_that_has_ended_erases_under_whatever_program() -> None:
    play = Play().to_end()
    event = ErasureRequested(refs=(), reason="art17-1-a")
    for program in OTHERS.values():
        assert transition(program, play.now, event, worker_context()).refusal is None
        late = transition(program, play.now, RunStarted(), worker_context())
        assert late.absorbed == "RunStarted"


def test_narrowed_program_is_still_the_same() -> None:
    play = Play()
    play.program = play.program.attenuated(play.program.grants.values())
    assert code(play.start()) == ""
