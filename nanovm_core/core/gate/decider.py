"""The port for a foreign policy engine, which can only deny or hold what our rules allow."""

from collections.abc import Mapping
from typing import Protocol

from nanovm_core.core.authority.policy import Outcome
from nanovm_core.core.canonical import digest
from nanovm_core.errors import RefusedError


class Decider(Protocol):
    """A foreign policy engine; its answer follows from ``hash``, stage and context."""

    @property
    def hash(self) -> str:
        """The hash of the exact policy text, 64 hex digits."""

    @property
    def approvable(self) -> frozenset[str]:
        """The ids of its holds that a person may lift."""

    def judge(self, at: str, context: Mapping[str, object], approved: tuple[str, ...]) -> Outcome:
        """Allow or hold at a stage.

        Raises:
            RefusedError: POL-001 nothing allows, POL-002 it cannot evaluate, POL-003 denied.
        """


def ask(
    decider: Decider, at: str, context: Mapping[str, object], approved: tuple[str, ...]
) -> Outcome:
    """The engine's answer or its own refusal; any error in it denies (POL-002)."""
    try:
        outcome = decider.judge(at, context, approved)
    except RefusedError:
        raise
    except Exception as error:
        text = f"The policy engine failed ({type(error).__name__}), so the call is denied."
        raise RefusedError("POL-002", text) from error
    if not isinstance(outcome, Outcome):
        raise RefusedError("POL-002", "The policy engine gave no outcome, so the call is denied.")
    return outcome


def joined_hash(policy: str, decider: Decider) -> str:
    """The hash of a policy and its engine; a run's genesis covers it."""
    return digest(b"nanovm/decider/v1\0", f"{policy}\0{decider.hash}".encode())
