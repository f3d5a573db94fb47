"""The kernel's public names: values in, values out; no clock, no dice, no disk.

``ExecutionVM`` runs a program in memory. A shell of its own calls ``begin`` and ``transition``,
and seals what they decide; ``nanovm_core.judge.judge`` gives dry verdicts. Each name is
imported from its module when it is first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nanovm_core.conditions import ASTEngine as ASTEngine
    from nanovm_core.core.canonical import decode as decode
    from nanovm_core.core.envelope import canonical_hash as canonical_hash
    from nanovm_core.core.envelope import check_chain as check_chain
    from nanovm_core.core.events import AnswerArrived as AnswerArrived
    from nanovm_core.core.events import Approved as Approved
    from nanovm_core.core.events import Declined as Declined
    from nanovm_core.core.events import KillRequested as KillRequested
    from nanovm_core.core.events import PauseRequested as PauseRequested
    from nanovm_core.core.events import ResumeRequested as ResumeRequested
    from nanovm_core.core.events import RunStarted as RunStarted
    from nanovm_core.core.events import StepRequested as StepRequested
    from nanovm_core.core.events import TimePassed as TimePassed
    from nanovm_core.core.fsm import begin as begin
    from nanovm_core.core.fsm import transition as transition
    from nanovm_core.core.messages import Decision as Decision
    from nanovm_core.core.messages import Scalar as Scalar
    from nanovm_core.core.messages import Snapshot as Snapshot
    from nanovm_core.core.program import Program as Program
    from nanovm_core.core.projection import DeterministicSanitizer as DeterministicSanitizer
    from nanovm_core.errors import ConditionError as ConditionError
    from nanovm_core.errors import NanovmError as NanovmError
    from nanovm_core.errors import ProgramError as ProgramError
    from nanovm_core.errors import RefusedError as RefusedError
    from nanovm_core.errors import VerificationError as VerificationError
    from nanovm_core.ledger import Books as Books
    from nanovm_core.loading import load_policy as load_policy
    from nanovm_core.loading import load_program as load_program
    from nanovm_core.policy_tests import rehearse as rehearse
    from nanovm_core.vm import Answer as Answer
    from nanovm_core.vm import Done as Done
    from nanovm_core.vm import ExecutionVM as ExecutionVM
    from nanovm_core.vm import Failed as Failed
    from nanovm_core.vm import Said as Said
    from nanovm_core.vm import Unknown as Unknown
    from nanovm_core.vm import Waiting as Waiting

_NAMES = {
    "conditions": "ASTEngine",
    "core.canonical": "decode",
    "core.envelope": "canonical_hash check_chain",
    "core.events": "AnswerArrived Approved Declined KillRequested PauseRequested ResumeRequested"
    " RunStarted StepRequested TimePassed",
    "core.fsm": "begin transition",
    "core.messages": "Decision Scalar Snapshot",
    "core.program": "Program",
    "core.projection": "DeterministicSanitizer",
    "errors": "ConditionError NanovmError ProgramError RefusedError VerificationError",
    "ledger": "Books",
    "loading": "load_policy load_program",
    "policy_tests": "rehearse",
    "vm": "Answer Done ExecutionVM Failed Said Unknown Waiting",
}
_HOMES = {name: module for module, names in _NAMES.items() for name in names.split()}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"nanovm_core has no public name {name!r}")
    return getattr(import_module(f"nanovm_core.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted(_HOMES)
