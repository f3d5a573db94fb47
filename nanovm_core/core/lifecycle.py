"""The lifecycle of a run: one table, the source of code, documentation and picture."""

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
    *(NEGOTIATION, READY, ACTIVE, IDLE, WAITING),
    *(PAUSED, EXHAUSTED, APPROVAL, COMPLETED, FAILED, KILLED),
)
TERMINAL = frozenset({COMPLETED, FAILED, KILLED})
SUSPENDED = frozenset({PAUSED, EXHAUSTED, APPROVAL})
GROUP: Mapping[str, str] = MappingProxyType({state: state.partition(".")[0] for state in STATES})

# Effects of entering or leaving a group of states: the names in ``fsm.moves.STATE_EFFECTS``.
ENTRY: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {"suspended": ("stop_clock",), "terminated": ("revoke_authority", "release_budgets")}
)
EXIT: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {"initializing": ("start_clock",), "suspended": ("go_on_with_clock", "drop_warrant")}
)

# Where a step's end may lead; after a failure also to IDLE, before the next attempt.
_ON = (ACTIVE, WAITING, APPROVAL, EXHAUSTED, COMPLETED, FAILED)
_RESULT = (*_ON, PAUSED)
_FAILURE = (*_RESULT, IDLE)
_HELD_STILL = (PAUSED, COMPLETED, FAILED)

# (state, event) → the states it may lead to; any other pair is refused (FSM-002).
TABLE: Mapping[tuple[str, str], tuple[str, ...]] = MappingProxyType(
    {
        (NEGOTIATION, "RunCreated"): (READY,),
        (READY, "RunStarted"): _RESULT,
        (READY, "KillRequested"): (KILLED,),
        (ACTIVE, "EffectDone"): _RESULT,
        (ACTIVE, "EffectFailed"): _FAILURE,
        (ACTIVE, "EffectUnknown"): (APPROVAL,),
        (ACTIVE, "EffectWaiting"): (WAITING,),
        (ACTIVE, "ProposalReceived"): _RESULT,
        (ACTIVE, "TimePassed"): _FAILURE,
        (ACTIVE, "PauseRequested"): (PAUSED,),
        (ACTIVE, "KillRequested"): (KILLED,),
        (IDLE, "TimePassed"): _RESULT,
        (IDLE, "PauseRequested"): (PAUSED,),
        (IDLE, "KillRequested"): (KILLED,),
        (WAITING, "AnswerArrived"): _RESULT,
        (WAITING, "TimePassed"): _FAILURE,
        (WAITING, "PauseRequested"): (PAUSED,),
        (WAITING, "KillRequested"): (KILLED,),
        (PAUSED, "EffectDone"): _HELD_STILL,
        (PAUSED, "EffectFailed"): (PAUSED, FAILED),
        (PAUSED, "EffectUnknown"): (APPROVAL,),
        (PAUSED, "EffectWaiting"): (PAUSED,),
        (PAUSED, "ProposalReceived"): (PAUSED, FAILED),
        (PAUSED, "AnswerArrived"): (*_HELD_STILL, APPROVAL),
        (PAUSED, "ResumeRequested"): (PAUSED, *_ON, IDLE),  # paused again: another agent's step
        (PAUSED, "StepRequested"): (PAUSED, *_ON, IDLE),
        (PAUSED, "KillRequested"): (KILLED,),
        (APPROVAL, "AnswerArrived"): _RESULT,  # after the time-out
        (APPROVAL, "Approved"): (PAUSED, *_ON),
        (APPROVAL, "Declined"): (FAILED,),
        (APPROVAL, "KillRequested"): (KILLED,),
        (EXHAUSTED, "ResumeRequested"): (PAUSED, *_ON),
        (EXHAUSTED, "KillRequested"): (KILLED,),
    }
)
