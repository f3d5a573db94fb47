"""Every code the kernel can say no with: what it means and why it exists."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """A stable code, the sentence people see, and the reason the rule exists."""

    code: str
    title: str
    why: str


def catalogue(*rows: tuple[str, str, str]) -> Mapping[str, Rule]:
    """Index rules by code; a code given twice is a mistake in the source."""
    rules = {code: Rule(code=code, title=title, why=why) for code, title, why in rows}
    if len(rules) != len(rows):
        raise ValueError("a rule code is given twice")
    return MappingProxyType(rules)


RULES = catalogue(
    (
        "PRG-001",
        "The program file cannot be read",
        "A program that is not understood to the last word must not run.",
    ),
    (
        "PRG-002",
        "The program contradicts itself",
        "Unknown targets, tools and slots and unreachable steps are found when it loads.",
    ),
    (
        "PRG-003",
        "The policy file cannot be read",
        "A policy that is half understood permits what it should forbid.",
    ),
    (
        "PRG-010",
        "This is not the program the run began under",
        "Its hash is in the run's genesis; a run continues under that hash or not at all.",
    ),
    (
        "PRG-011",
        "The stored program is not the one the run began under",
        "The copy beside the run was exchanged; its hash differs from the genesis.",
    ),
    (
        "FSM-001",
        "Nothing is owed under this key",
        "A result is taken for the one effect whose intent is sealed; no step can be skipped.",
    ),
    (
        "FSM-002",
        "The transition table has no such move",
        "From this state that event leads nowhere.",
    ),
    (
        "FSM-003",
        "The run has ended; the event is absorbed",
        "A terminal state changes no more and makes no effect, however often a message comes.",
    ),
    (
        "FSM-004",
        "No proposal is awaited now",
        "The model speaks when the program asks it, at one step only.",
    ),
    (
        "FSM-005",
        "The model's last refused proposal was one too many",
        "A model that keeps proposing what it may not do is not asked for ever.",
    ),
    (
        "FSM-006",
        "Stopped by a person",
        "Whoever owns a run may stop it for good.",
    ),
    (
        "FSM-007",
        "The effect filled a slot the program does not give it",
        "A step may fill its own slots only, with values of their types.",
    ),
    (
        "FSM-008",
        "Another worker holds this run",
        "One worker drives a run at a time; a second delivery is dropped at the lease.",
    ),
    (
        "FSM-009",
        "A payment is under way",
        "Once a charge has left, only its answer may end the run; a stop could hide a payment.",
    ),
    (
        "FSM-010",
        "The run has not ended; stop it first",
        "Erasing what a running program still needs would break it in the middle.",
    ),
    (
        "FSM-011",
        "The run waits for no message now; it is only counted",
        "A queue message is a wake-up and no command: what a run does next it knows by itself.",
    ),
    (
        "FSM-012",
        "The result does not come from the worker that holds the run",
        "Only who took the effect in hand can say what came of it; another's word is forged.",
    ),
    (
        "CAP-001",
        "This tool was never granted",
        "A tool outside the capability snapshot does not resolve: there is nothing to call.",
    ),
    (
        "CAP-002",
        "This tool cannot be proposed at this step",
        "A granted tool is usable where the program accepts it, and nowhere else.",
    ),
    (
        "CAP-003",
        "The call has an argument that the tool does not know",
        "An unknown argument may mean something to somebody; so it is refused.",
    ),
    (
        "CAP-004",
        "The call lacks an argument",
        "Nothing is filled in on the model's behalf.",
    ),
    (
        "CAP-005",
        "An argument has the wrong type",
        "A number is a number and a string is a string; nothing is converted.",
    ),
    (
        "CAP-006",
        "An argument lies outside what was granted",
        "A grant names ranges and sets; a call outside them is another call.",
    ),
    (
        "CAP-010",
        "The proposal is not one strict JSON tool call",
        "Parsers differ on duplicate keys, floats, huge numbers and deep nesting.",
    ),
    (
        "CAP-020",
        "No valid warrant covers this call",
        "An effect needs a warrant bound to run, program, step, tool and exact arguments.",
    ),
    (
        "CAP-021",
        "The warrant has expired",
        "Authority is for now; a call that comes too late must be authorized again.",
    ),
    (
        "POL-001",
        "No policy rule allows it",
        "What no rule allows is denied.",
    ),
    (
        "POL-002",
        "A policy rule could not be evaluated",
        "An error denies, in allow rules and in deny rules alike.",
    ),
    (
        "POL-003",
        "A policy rule denies it",
        "A deny rule wins over every allow rule.",
    ),
    (
        "POL-010",
        "An argument does not come from the invoice",
        "Payee, amount, currency and memo must equal what a deterministic step produced, "
        "whatever the model says.",
    ),
    (
        "POL-020",
        "A person must approve this first",
        "The policy holds it; the run waits, and nothing was paid.",
    ),
    (
        "POL-021",
        "This hold cannot be approved away",
        "Some invoices must not be paid by anybody's click; the run can only be stopped.",
    ),
    (
        "POL-022",
        "A person declined it",
        "Whoever owns the run refused the held payment.",
    ),
    (
        "POL-023",
        "A person gave up on a payment that may have been made",
        "Nobody could tell whether it happened; the far side's own records say so.",
    ),
    (
        "BUD-001",
        "The workspace's budget does not cover it",
        "Money is reserved before the call; a call that does not fit is not made.",
    ),
    (
        "LOG-001",
        "A stored envelope does not hash to its recorded hash",
        "Stored bytes were changed behind the runtime's back.",
    ),
    (
        "LOG-002",
        "The chain of a run is broken",
        "An envelope is missing, moved, or does not name its predecessor.",
    ),
    (
        "LOG-003",
        "The stored snapshot is not the sealed one",
        "The run's value was changed behind the runtime's back.",
    ),
    (
        "LOG-004",
        "The run's head is not its last envelope",
        "The row that names the head was changed behind the runtime's back.",
    ),
    (
        "PII-001",
        "A personal value has no ref",
        "A value of a personal slot enters a snapshot as a vault ref or not at all.",
    ),
    (
        "PII-003",
        "A secret is missing, and no erasure explains it",
        "What an envelope commits to is either there, or its erasure is sealed.",
    ),
    (
        "PII-010",
        "That is no reason for an erasure",
        "An erasure names its ground in Art. 17(1), a to f, so that it can be accounted for.",
    ),
    (
        "PII-011",
        "The erasure is incomplete",
        "Some place still holds what was to be erased; run it again when the cause is gone.",
    ),
    (
        "PII-002",
        "A secret cannot be opened",
        "Its key or its ciphertext is gone or changed.",
    ),
)
