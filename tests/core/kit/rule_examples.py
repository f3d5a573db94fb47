"""An example that trips each rule of the kernel: each returns the code that it met."""

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest

from nanovm_core.conditions import parse
from nanovm_core.core.canonical import Json, decode, encode, parse_untrusted
from nanovm_core.core.capabilities import grant_id
from nanovm_core.core.envelope import check_chain, decode_snapshot
from nanovm_core.core.events import (
    AnswerArrived,
    Approved,
    Declined,
    DeliveryReceived,
    EffectDone,
    EffectUnknown,
    ErasureRequested,
    Event,
    KillRequested,
    ProgramRefused,
    RunStarted,
    TimePassed,
)
from nanovm_core.core.gate import Facts
from nanovm_core.core.messages import Decision
from nanovm_core.core.proposals import Call, read_proposal
from nanovm_core.core.vault import unseal
from nanovm_core.errors import NanovmError
from nanovm_core.loading import load_policy, load_program
from nanovm_core.vm import ExecutionVM
from tests.core.delegation import test_delegation as chains
from tests.core.gate import test_warrants as tokens
from tests.core.kit.builders import (
    FACTS,
    PERSONAL,
    POLICY,
    RUN,
    SOURCE,
    START_MS,
    Play,
    event_and_known,
    program,
    proposal,
)
from tests.core.values.test_envelope import CHAIN

OTHER = "0" * 64
PAY, MAIL = "stripe.create_payment_intent", "notify.send_email"
NOTHING = b'v = "nanovm-policy/1"\nname = "nothing"\n'
TYPES = {"slots.currency": "string", "slots.amount": "integer"}


def refused(decision: Decision) -> str:
    """The code of a refusal, or of what the run stands or ended for."""
    if decision.refusal is not None:
        return decision.refusal.code
    assert decision.snapshot.reason is not None
    return decision.snapshot.reason[0]


def fed(play: Play, kind: type[Event], **fields: Any) -> str:
    """The code that an event is refused with, or that it ends the run with."""
    event, known = event_and_known(kind, fields)
    return refused(play.feed(event, **known))


def raised(call: Callable[[], object]) -> str:
    """The code of the error."""
    with pytest.raises(NanovmError) as caught:
        call()
    return caught.value.code


def loaded(old: bytes, new: bytes) -> str:
    assert old in SOURCE
    return raised(lambda: load_program(SOURCE.replace(old, new, 1)))


def ruled(rule: str) -> str:
    """The code that a payment is refused with under one more rule."""
    return refused(Play(program(POLICY + rule.encode())).to_propose().propose())


def a_rule(outcome: str, when: str) -> str:
    return f"""
[[rules]]
id = "one-more"
at = "authorize"
outcome = "{outcome}"
when = "{when}"
why = "An example."
"""


def unfit(when: str) -> str:
    return raised(lambda: program(POLICY + a_rule("deny", when).encode()))


def permitted(call: Call, **facts: Any) -> str:
    play = Play().to_propose()
    known = Facts(slots=play.now.slots, ledger=play.ledger, agent="payer", **facts)
    return raised(lambda: play.program.gate.dry_run(call, known))


def paid(**facts: Any) -> str:
    args: dict[str, Json] = {
        "amount_minor": 128_450,
        "currency": "EUR",
        "payee": "{{payee}}",
        "memo": "{{memo}}",
    }
    return permitted(Call("stripe.create_payment_intent", args), **facts)


def proposed(**args: object) -> str:
    return refused(Play().to_propose().propose(proposal(**args)))  # type: ignore[arg-type]


def held() -> Play:
    play = Play().to_propose(amount_minor=1_000_001)
    play.propose(proposal(amount_minor=1_000_001))
    return play


def stands(play: Play) -> str:
    assert play.now.reason is not None
    return play.now.reason[0]


def unknown() -> Play:
    play = Play().to_charge()
    play.feed(EffectUnknown(key=play.key, code="STR-004", text="?"), at_ms=play.tick())
    return play


def waiting(limit: str, value: int) -> str:
    """Why a run waits under a smaller limit of its own."""
    rules = program()
    play = Play(replace(rules, limits=replace(rules.limits, **{limit: value})))
    play.start()
    given: list[tuple[Mapping[str, Any], tuple[str, ...]]] = [
        ({"size_bytes": 1}, ()),
        ({"pages": 1, "source": "text"}, ("staging",)),
        (FACTS, PERSONAL),
    ]
    for out, personal in given:
        if play.now.state == "running.active":
            play.done(out, *personal)
    return stands(play)


def late() -> str:
    play = Play().to_charge()
    return refused(play.feed(TimePassed(), at_ms=play.now.deadline_ms))


def guard() -> str:
    """A branch whose guard reads a slot that no step filled."""
    old, new = (
        b'fills = ["size_bytes"]\nnext = "extract"',
        (
            b'fills = ["size_bytes"]\nnext = [{ when = "$slots.pages > 1", to = "extract" }, '
            b'{ to = "extract" }]'
        ),
    )
    assert old in SOURCE
    rules = load_program(SOURCE.replace(old, new, 1)).under(load_policy(POLICY))
    play = Play(rules)
    play.start()
    return refused(play.done({"size_bytes": 1}))


def damaged(**changed: Any) -> str:
    links = [*CHAIN]
    links[2] = links[2]._replace(**changed)
    return raised(lambda: check_chain(links, run=RUN))


def untrusted(data: bytes) -> str:
    return raised(lambda: parse_untrusted(data, size_max=10_000))


def read(args: str, tool: str = "x") -> str:
    raw = f'{{"tool": "{tool}", "args": {args}}}'.encode("utf-8", "surrogatepass")
    return raised(lambda: read_proposal(raw))


def condition(text: str) -> str:
    return raised(lambda: parse(text))


def evaluated(text: str, **context: object) -> str:
    return raised(lambda: parse(text).holds(context))


def checked(text: str) -> str:
    return raised(lambda: parse(text).check(TYPES))


def refused_thrice() -> str:
    play = Play().to_propose()
    for _ in range(3):
        play.propose(proposal("wire_transfer"))
    assert play.now.reason is not None
    return play.now.reason[0]


def started_and_done(out: Mapping[str, Any]) -> str:
    play = Play()
    play.start()
    return refused(play.done(out))


def personal() -> str:
    play = Play()
    play.start()
    play.done({"size_bytes": 1})
    return fed(play, EffectDone, key=play.key, out={"staging": "Muster GmbH"})


def unseen() -> str:
    play = Play().to_charge()
    play.under_way()
    return fed(play, AnswerArrived, run=RUN, program=program().hash, key=play.key, vouched=False)


def woken() -> str:
    play = Play()
    event = DeliveryReceived(program=play.program.hash)
    return {"DeliveryReceived": "FSM-011"}[play.feed(event).absorbed]


def forged() -> str:
    play = Play().to_charge()
    return fed(play, EffectDone, key=play.key, by_holder=False)


def advised() -> str:
    play = Play(program(POLICY + a_rule("allow", "$tool == 'notify.send_email'").encode()))
    play.to_propose()
    args = {"to": "{{advice_to}}", "subject": "{{advice_subject}}", "body": "{{advice_body}}"}
    given = {name: play.now.slots[text.strip("{}")] for name, text in args.items()}
    return refused(play.propose(json.dumps({"tool": MAIL, "args": given}).encode()))


def revoked() -> str:
    grant = program().grants[PAY]
    return paid(revoked=frozenset({grant_id(grant)}))


def not_open() -> Play:
    return Play().to_propose(pay_status="paid")


EXAMPLES: Mapping[str, Callable[[], str]] = {
    "PRG-001": lambda: loaded(b'kind = "effect"', b'kindd = "effect"'),
    "PRG-002": lambda: loaded(b'next = "extract"', b'next = "extrat"'),
    "PRG-003": lambda: raised(lambda: load_policy(POLICY.replace(b'outcome = "hold"\n', b"", 1))),
    "PRG-004": lambda: raised(
        lambda: program(POLICY + a_rule("deny", "$slots.currency > 5").encode())
    ),
    "PRG-005": lambda: raised(lambda: program(b'lifts = ["not-simply-payable"]\n' + POLICY)),
    "PRG-006": lambda: raised(
        lambda: ExecutionVM(program(), run="r", tools={}, now_ms=lambda: START_MS)
    ),
    "PRG-010": lambda: fed(Play().to_charge(), DeliveryReceived, program=OTHER),
    "PRG-011": lambda: fed(Play(), ProgramRefused, found=OTHER),
    "FSM-001": lambda: fed(Play().to_propose(), EffectDone, key=OTHER),
    "FSM-002": lambda: fed(Play(), Approved),
    "FSM-003": lambda: str(Play().to_end().feed(RunStarted()).drafts[0].body["rule"]),
    "FSM-004": lambda: refused(Play().to_charge().propose()),
    "FSM-005": refused_thrice,
    "FSM-006": lambda: fed(Play().to_propose(), KillRequested),
    "FSM-007": lambda: started_and_done({"amount_minor": 1}),
    "FSM-009": lambda: fed(Play().to_charge(), KillRequested),
    "FSM-010": lambda: fed(Play(), ErasureRequested, refs=(), reason="art17-1-a"),
    "FSM-011": woken,
    "FSM-012": forged,
    "FSM-013": guard,
    "FSM-014": late,
    "FSM-018": unseen,
    "FSM-017": lambda: raised(lambda: EffectDone(key="", outcome="x" * 300)),
    "FSM-016": lambda: fed(held(), Approved, hold=OTHER),
    "FSM-015": lambda: fed(
        Play().to_charge(), AnswerArrived, run=RUN, program=program().hash, key=OTHER
    ),
    "CAP-001": lambda: permitted(Call("wire_transfer", {})),
    "CAP-002": advised,
    "CAP-003": lambda: proposed(note="x"),
    "CAP-004": lambda: proposed(payee=None),
    "CAP-005": lambda: proposed(amount_minor="12845"),
    "CAP-006": lambda: proposed(amount_minor=0),
    "CAP-007": lambda: raised(lambda: chains.seen(chains.CHAIN, at_ms=chains.ENDS_MS)),
    "CAP-008": revoked,
    "CAP-010": lambda: raised(lambda: read_proposal(b"pay!")),
    "CAP-011": lambda: read('{"a": 1, "a": 2}'),
    "CAP-012": lambda: read('{"a": 1e400}'),
    "CAP-013": lambda: read('{"a": NaN}'),
    "CAP-014": lambda: read('{"a": -0}'),
    "CAP-015": lambda: read('{"a": 99999999999999999999}'),
    "CAP-016": lambda: read('{"a": ' + "[" * 40 + "]" * 40 + "}"),
    "CAP-017": lambda: read('{"a": "' + "x" * 20_000 + '"}'),
    "CAP-018": lambda: raised(lambda: read_proposal('{"tool": "x", "args": {}}'.encode("utf-16"))),
    "CAP-019": lambda: read("{}", tool="p\u0430y"),
    "CAP-020": lambda: tokens.checked(tokens.TOKEN, {**tokens.BOUND, "run": "another"}),
    "CAP-021": lambda: tokens.checked(tokens.TOKEN, at_ms=tokens.ENDS_MS),
    "CAP-022": lambda: tokens.checked(bytes([tokens.TOKEN[0] ^ 1]) + tokens.TOKEN[1:]),
    "CAP-030": lambda: chains.code(chains.forged(chains.THIRD, grants=chains.grants(chains.PAY))),
    "CAP-031": lambda: chains.code(chains.joined(*reversed(chains.split(chains.CHAIN)))),
    "CAP-032": lambda: chains.code(chains.joined(*chains.split(chains.CHAIN) * 3)),
    "POL-001": lambda: refused(Play(program(NOTHING)).to_propose().propose()),
    "POL-002": lambda: ruled(a_rule("deny", "$slots.pages > 5 or $slots.issue_date == 'x'")),
    "POL-003": lambda: ruled(a_rule("deny", "$slots.currency == 'EUR'")),
    "POL-010": lambda: proposed(amount_minor=128_451),
    "POL-020": lambda: stands(held()),
    "POL-021": lambda: fed(not_open(), Approved),
    "POL-022": lambda: fed(held(), Declined),
    "POL-023": lambda: fed(unknown(), Declined),
    "BUD-001": lambda: paid(used={"EUR": 999_999_999_999}),
    "BUD-002": lambda: paid(used={"calls": 16}),
    "BUD-003": lambda: waiting("steps_max", 1),
    "BUD-004": lambda: waiting("tokens_max", 1),
    "BUD-005": lambda: raised(
        lambda: program().gate.begin_step(1, {}, 1, 1 + program().limits.wall_ms_max)
    ),
    "BUD-006": lambda: raised(
        lambda: load_program(SOURCE).gate.reserve({"EUR": 5}, Facts(ledger={"workspace/EUR": 9}))
    ),
    "LOG-001": lambda: damaged(data=CHAIN[2].data + b" "),
    "LOG-002": lambda: raised(lambda: check_chain([CHAIN[0], *CHAIN[2:]], run=RUN)),
    "LOG-003": lambda: raised(lambda: decode_snapshot(b"{}")),
    "PII-001": personal,
    "PII-002": lambda: raised(lambda: unseal(b"k" * 32, b"n" * 40, bound_to="x")),
    "CAN-001": lambda: raised(lambda: encode({1, 2})),
    "CAN-002": lambda: untrusted(b"0.1"),
    "CAN-003": lambda: untrusted(b"Infinity"),
    "CAN-004": lambda: untrusted(b"-0"),
    "CAN-005": lambda: untrusted(b"9007199254740992"),
    "CAN-006": lambda: untrusted('{"é": 1}'.encode()),
    "CAN-007": lambda: untrusted(b'{"a": 1, "a": 2}'),
    "CAN-008": lambda: untrusted(b'"\\ud800"'),
    "CAN-009": lambda: untrusted(b"[" * 65 + b"]" * 65),
    "CAN-010": lambda: untrusted(b'"' + b"x" * 10_000 + b'"'),
    "CAN-011": lambda: untrusted(b'"\xff"'),
    "CAN-012": lambda: untrusted(b"\xef\xbb\xbf{}"),
    "CAN-013": lambda: untrusted(b"{'tool': 'x'}"),
    "CAN-014": lambda: raised(lambda: decode(b'{ "a": 1 }')),
    "CON-001": lambda: condition("(" * 33 + "$a" + ")" * 33),
    "CON-002": lambda: condition("!$blocked"),
    "CON-003": lambda: condition("$currency == EUR"),
    "CON-004": lambda: condition("$currency == 'EUR"),
    "CON-005": lambda: condition("$amount > 1.5"),
    "CON-006": lambda: condition("$_secret"),
    "CON-007": lambda: condition("$amount >"),
    "CON-008": lambda: condition("$a == 1 $b"),
    "CON-009": lambda: condition("1 < $amount < 3"),
    "CON-010": lambda: condition("$a in ['EUR', 5]"),
    "CON-020": lambda: evaluated("$discount > 0"),
    "CON-021": lambda: evaluated("$a == 1", a=0.5),
    "CON-022": lambda: evaluated("$a == 5", a="5"),
    "CON-023": lambda: evaluated("$a and $b", a=1, b=True),
    "CON-030": lambda: checked("$slots.ammount > 5"),
    "CON-031": lambda: checked("$slots.currency == 5"),
    "CON-032": lambda: checked("$slots.currency < 'USD'"),
    "CON-033": lambda: checked("not $slots.currency"),
    "CON-034": lambda: checked("$slots.amount in ['EUR']"),
    "CON-035": lambda: checked("$slots.currency"),
}
