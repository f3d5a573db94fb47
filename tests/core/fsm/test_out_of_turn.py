"""A proposal out of turn: it is told its form's first fault, and nothing of what the run holds."""

from collections.abc import Mapping
from itertools import product
from types import MappingProxyType
from typing import Any

import pytest

from nanovm_core.core.events import ProposalReceived
from nanovm_core.core.fsm import transition
from nanovm_core.core.messages import Scalar
from tests.core.kit.builders import Play, proposal, ref, worker_context

ARGS = ("amount_minor", "currency", "payee", "memo")
SLOT = "pages"  # the model never sees it
HELD: tuple[Mapping[str, Scalar], ...] = tuple(
    MappingProxyType({SLOT: held, "payee": held, "amount_minor": held})
    for held in (0, 5, 2**60, True, "EUR", "x" * 9_999, "guess", ref(7))
)


def told(slots: Mapping[str, Scalar], raw: bytes) -> Any:
    """What a run that holds these slots says of a proposal that nobody asked for."""
    play = Play()
    play.start()
    event = ProposalReceived(raw=raw)
    return transition(play.program, play.now._replace(slots=slots), event, worker_context()).refusal


@pytest.mark.parametrize(
    ("name", "given"), [*product(ARGS, ("{{pages}}", "{{payee}}", "{{no_such_slot}}"))]
)
def test_placeholder_out_of_turn_tells_nothing_of_its_slot(name: str, given: str) -> None:
    said = {told(slots, proposal(**{name: given})) for slots in ({}, *HELD)}
    assert [refusal.code for refusal in said] == ["FSM-004"]


@pytest.mark.parametrize(("name", "given"), [*product(ARGS, (5, "guess", ref(7), "EUR"))])
def test_guess_out_of_turn_is_not_told_from_another(name: str, given: Any) -> None:
    """A ref may be what its slot holds; out of turn that would confirm the guess."""
    assert len({told(slots, proposal(**{name: given})) for slots in ({}, *HELD)}) == 1


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"amount_minor": "5"}, "CAP-005"),
        ({"payee": "acme"}, "CAP-005"),
        ({"amount_minor": 0}, "CAP-006"),
        ({"payee": " {{payee}}"}, "CAP-005"),
        ({"payee": None}, "CAP-004"),
    ],
)
def test_fault_of_form_is_told_out_of_turn_too(change: dict[str, Any], code: str) -> None:
    assert told({}, proposal(**change)).code == code
