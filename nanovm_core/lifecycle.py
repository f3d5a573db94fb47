"""The lifecycle of a run: one table, from which code, documentation and picture are drawn."""

from collections.abc import Mapping
from types import MappingProxyType

NEGOTIATION = "initializing.capability_negotiation"
READY = "initializing.resource_allocation"
ACTIVE = "running.active"
IDLE = "running.idle"
WAITING = "running.waiting"
PAUSED = "suspended.user_paused"
EXHAUSTED = "suspended.budget_exhausted"
APPROVAL = "suspended.awaiting_approval"
COMPLETED = "terminated.completed"
FAILED = "terminated.failed"
KILLED = "terminated.killed"

STATES = (
    NEGOTIATION,
    READY,
    ACTIVE,
    IDLE,
    WAITING,
    PAUSED,
    EXHAUSTED,
    APPROVAL,
    COMPLETED,
    FAILED,
    KILLED,
)
TERMINAL = frozenset({COMPLETED, FAILED, KILLED})
SUSPENDED = frozenset({PAUSED, EXHAUSTED, APPROVAL})

_RESULT = (ACTIVE, PAUSED, APPROVAL, COMPLETED, FAILED)
_ANSWER = (ACTIVE, PAUSED, APPROVAL, EXHAUSTED, FAILED)
_GO_ON = (ACTIVE, APPROVAL, EXHAUSTED, FAILED)

# (state, event) → the states it may lead to; a pair that is not here is refused (FSM-002).
TABLE: Mapping[tuple[str, str], tuple[str, ...]] = MappingProxyType(
    {
        (NEGOTIATION, "RunCreated"): (READY,),
        (READY, "RunStarted"): (ACTIVE,),
        (READY, "KillRequested"): (KILLED,),
        (ACTIVE, "EffectDone"): _RESULT,
        (ACTIVE, "EffectFailed"): (ACTIVE, PAUSED, FAILED),
        (ACTIVE, "EffectUnknown"): (APPROVAL,),
        (ACTIVE, "ProposalReceived"): _ANSWER,
        (ACTIVE, "PauseRequested"): (PAUSED,),
        (ACTIVE, "KillRequested"): (KILLED,),
        (PAUSED, "EffectDone"): (PAUSED, COMPLETED),
        (PAUSED, "EffectFailed"): (PAUSED, FAILED),
        (PAUSED, "EffectUnknown"): (APPROVAL,),
        (PAUSED, "ProposalReceived"): (PAUSED, FAILED),
        (PAUSED, "ResumeRequested"): _GO_ON,
        (PAUSED, "StepRequested"): (PAUSED, *_GO_ON),
        (PAUSED, "KillRequested"): (KILLED,),
        (APPROVAL, "Approved"): (PAUSED, *_GO_ON),
        (APPROVAL, "Declined"): (FAILED,),
        (APPROVAL, "KillRequested"): (KILLED,),
        (EXHAUSTED, "ResumeRequested"): _GO_ON,
        (EXHAUSTED, "KillRequested"): (KILLED,),
    }
)
