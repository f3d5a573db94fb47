"""The port for a foreign policy engine: it is asked beside our own rules and can only take away."""

from collections.abc import Mapping
from typing import Protocol

from nanovm_core.core.canonical import digest
from nanovm_core.core.policy import Outcome
from nanovm_core.errors import RefusedError


class Decider(Protocol):
    """A foreign policy engine, asked where the program's and the policy's own rules allow.

    Its answer follows from ``hash``, stage and context alone: no clock, no network, no order
    that changes from call to call.
    """

    @property
    def hash(self) -> str:
        """The hash of the exact policy text, 64 hex digits; a run's genesis covers it."""

    @property
    def approvable(self) -> frozenset[str]:
        """The ids of its holds that a person may lift."""

    def judge(self, at: str, context: Mapping[str, object], approved: tuple[str, ...]) -> Outcome:
        """What the engine says of a stage where it does not deny.

        Raises:
            RefusedError: POL-001 nothing allows, POL-002 anything at all could not be
                evaluated, POL-003 denied.
        """


def ask(
    decider: Decider, at: str, context: Mapping[str, object], approved: tuple[str, ...]
) -> Outcome:
    """The engine's answer; whatever goes wrong in it denies.

    Raises:
        RefusedError: its own refusal, or POL-002.
    """
    try:
        outcome = decider.judge(at, context, approved)
    except RefusedError:
        raise
    except Exception as error:
        text = f"The policy engine broke ({type(error).__name__}); an error denies."
        raise RefusedError("POL-002", text) from error
    if not isinstance(outcome, Outcome):
        raise RefusedError("POL-002", "The policy engine gave no outcome; that denies.")
    return outcome


def joined_hash(policy: str, decider: Decider) -> str:
    """The hash of a policy together with the engine that is asked beside it."""
    return digest(b"nanovm/decider/v1\0", f"{policy}\0{decider.hash}".encode())
