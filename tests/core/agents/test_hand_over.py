"""A run that comes to a step of another agent says so in one envelope of kind message."""

from collections.abc import Callable

import pytest

from nanovm_core import verify
from nanovm_core.core.messages import Decision
from tests.core.kit.builders import FACTS, PERSONAL, Play, code, proposal
from tests.core.kit.chain import sealed

LARGE = 2_000_000
VAULT, PROPOSE, AUTHORIZE = (
    *("message reader payer vault", "message payer reader propose"),
    "message reader payer authorize",
)


def told(decision: Decision) -> list[str]:
    """The kinds that are sealed, a message with what it says."""
    return [
        " ".join((draft.kind, *(str(draft.body[name]) for name in ("from", "to", "of"))))
        if draft.kind == "message"
        else draft.kind
        for draft in decision.drafts
    ]


def extracting(*, stepping: bool = False) -> Play:
    """A run whose document is being read, by the reader."""
    play = Play(stepping=stepping)
    play.start()
    if stepping:
        play.step()
    play.done({"size_bytes": 1000})
    if stepping:
        play.step()
    return play


def read(play: Play) -> Decision:
    return play.done({"pages": 1, "source": "text"}, "staging")


def read_in_a_pause(play: Play) -> Decision:
    play.pause()
    return read(play)


def read_for_a_halted_payer(play: Play) -> Decision:
    play.halted = {"payer": "suspended.by_rule"}
    return read(play)


def propose(play: Play) -> Decision:
    return play.propose(proposal(amount_minor=LARGE))


def held_before_the_model() -> Play:
    play = extracting()
    read(play)
    play.done({**FACTS, "has_number": False}, *PERSONAL, "staging")
    assert (play.now.step, play.now.held_by) == ("propose", "no-number")
    return play


WAYS: dict[str, tuple[Callable[[], Play], Callable[[Play], Decision], list[str]]] = {
    "at work": (extracting, read, ["result", VAULT, "intent"]),
    "step by step": (lambda: extracting(stepping=True), read, ["result", VAULT, "suspended"]),
    "in a pause, at the end": (extracting, read_in_a_pause, ["result", VAULT]),
    "to a suspended agent": (extracting, read_for_a_halted_payer, ["result", VAULT, "suspended"]),
    "a call that is allowed": (
        Play().to_propose,
        Play.propose,
        ["result", AUTHORIZE, "result", "intent"],
    ),
    "a call that is held": (
        lambda: Play().to_propose(amount_minor=LARGE),
        propose,
        ["result", AUTHORIZE, "suspended"],
    ),
    "back to an earlier step": (held_before_the_model, Play.approve, ["resumed", VAULT, "intent"]),
}


@pytest.mark.parametrize("way", WAYS)
def test_the_message_stands_before_what_the_other_agent_does(way: str) -> None:
    make, bring, expected = WAYS[way]
    assert told(bring(make())) == expected


def test_a_paid_invoice_is_handed_over_three_times_and_its_chain_is_valid() -> None:
    play = Play().to_end()
    seen = [kind for _, _, decision in play.heard for kind in told(decision)]
    assert [each for each in seen if each.startswith("message")] == [VAULT, PROPOSE, AUTHORIZE]
    bodies = [verify.read_envelope(each.data) for each in sealed(play)]
    for message, before in zip(bodies[1:], bodies, strict=False):
        if message["kind"] == "message":
            assert (message["snapshot"], message["decided_by"]) == (before["snapshot"], "table")


def test_what_stays_with_its_agent_or_is_refused_hands_nothing_over() -> None:
    play = Play().to_charge(amount_minor=LARGE)
    for decision in (play.pause(), play.resume(), play.approve(), play.pay()):
        assert "message" not in " ".join(told(decision))
    other = extracting()
    other.now = other.now._replace(program="0" * 64, step="a step that this program lacks")
    assert (code(read(other)), told(other.heard[-1][2])) == ("PRG-011", ["refused"])
