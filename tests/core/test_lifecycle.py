"""The lifecycle: one table, and no transition that is not in it."""

import pytest

from nanovm_core import lifecycle as life
from tests.core.builders import Play, proposal
from tests.core.chain import body, sealed

EVENTS = {event for _, event in life.TABLE}


def test_table_names_known_states_only() -> None:
    for (state, _), targets in life.TABLE.items():
        assert {state, *targets} <= set(life.STATES)


@pytest.mark.parametrize("state", sorted(life.TERMINAL))
def test_no_move_leads_out_of_a_terminal_state(state: str) -> None:
    assert not [event for event in EVENTS if (state, event) in life.TABLE]


def test_every_state_but_the_reserved_ones_can_be_reached_and_left_for_an_end() -> None:
    reserved = {life.IDLE, life.WAITING}
    reached, size = {life.NEGOTIATION}, 0
    while len(reached) != size:
        size = len(reached)
        reached |= {to for (at, _), tos in life.TABLE.items() if at in reached for to in tos}
    assert reached == set(life.STATES) - reserved
    for state in reached - life.TERMINAL - {life.NEGOTIATION}:
        assert life.KILLED in life.TABLE[(state, "KillRequested")]


@pytest.mark.parametrize("amount", [128_450, 2_000_000])
def test_envelopes_of_a_run_name_moves_of_the_table(amount: int) -> None:
    play = Play(stepping=True).to_propose(amount_minor=amount)
    play.propose(proposal(amount_minor=amount))
    for each in sealed(play):
        state = body(each)["state"]
        assert isinstance(state, dict)
        assert state["to"] in life.TABLE[(state["from"], state["event"])]
