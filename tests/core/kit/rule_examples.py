"""An example that trips each rule of the kernel: each returns the code that it met."""

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest

from nanovm_core.conditions import parse
from nanovm_core.core.canonical import decode, encode, parse_untrusted
from nanovm_core.core.capabilities import grant_id
from nanovm_core.core.envelope import check_chain, decode_snapshot
from nanovm_core.core.events import (
    AnswerArrived,
    Approved,
    Declined,
    DeliveryReceived,
    EffectDone,
    ErasureRequested,
    Event,
    KillRequested,
    ProgramRefused,
    RunStarted,
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
    program,
    proposal,
)
from tests.core.values.test_envelope import CHAIN

OTHER = "0" * 64
PAY, MAIL = "stripe.create_payment_intent", "notify.send_email"
NOTHING = b'v = "nanovm-policy/1"\nname = "nothing"\n'


def refused(decision: Decision) -> str:
    """The code of a refusal, or of why the run is suspended or ended."""
    if decision.refusal is not None:
        return decision.refusal.code
    assert decision.snapshot.reason is not None
    return decision.snapshot.reason[0]


def fed(play: Play, kind: type[Event], **given: Any) -> str:
    """The code that an event is refused with, or that it ends the run with."""
    return refused(play.feed(kind, **given))


def raised(call: Callable[[], object]) -> str:
    with pytest.raises(NanovmError) as caught:
        call()
    return caught.value.code


def changed(old: bytes, new: bytes) -> bytes:
    """The shipped program with one text exchanged."""
    assert old in SOURCE
    return SOURCE.replace(old, new, 1)


def loaded(old: bytes, new: bytes) -> str:
    """The code that a changed program is not loaded with."""
    return raised(lambda: load_program(changed(old, new)))


def a_rule(outcome: str, when: str) -> bytes:
    """The shipped policy with one more rule."""
    more = f'id = "one-more"\nat = "authorize"\noutcome = "{outcome}"\nwhen = "{when}"'
    return POLICY + f'\n[[rules]]\n{more}\nwhy = "An example."\n'.encode()


def ruled(policy: bytes) -> str:
    """The code that a faithful payment is refused with under this policy."""
    return refused(Play(program(policy)).to_propose().propose())


def permitted(call: Call, **facts: Any) -> str:
    """The code that the gate refuses a call with."""
    play = Play().to_propose()
    known = Facts(slots=play.now.slots, ledger=play.ledger, agent="payer", **facts)
    return raised(lambda: play.program.gate.dry_run(call, known))


def paid(**facts: Any) -> str:
    """The code that the gate refuses the faithful payment with."""
    args: Any = {"amount_minor": 128_450, "currency": "EUR"}
    return permitted(Call(PAY, {**args, "payee": "{{payee}}", "memo": "{{memo}}"}), **facts)


def proposed(**args: Any) -> str:
    return refused(Play().to_propose().propose(proposal(**args)))


def advised() -> str:
    """The program's own letter, proposed by the model."""
    play = Play(program(a_rule("allow", f"$tool == '{MAIL}'"))).to_propose()
    args = {name: play.now.slots[f"advice_{name}"] for name in ("to", "subject", "body")}
    return refused(play.propose(json.dumps({"tool": MAIL, "args": args}).encode()))


def held() -> Play:
    play = Play().to_propose(amount_minor=1_000_001)
    play.propose(proposal(amount_minor=1_000_001))
    return play


def unknown() -> Play:
    """A payment of which nobody knows whether it was made."""
    play = Play().to_charge()
    play.unknown()
    return play


def at(step: str) -> Play:
    """A run at its first step or its second one."""
    play = Play()
    play.start()
    if step == "extract":
        play.done({"size_bytes": 1})
    return play


def refused_thrice() -> str:
    """Why a run fails whose model proposes nonsense."""
    play = Play().to_propose()
    for _ in range(3):
        play.propose(proposal("wire_transfer"))
    return play.why


def exhausted(limit: str) -> str:
    """Why a run waits whose own limit is 1."""
    rules = program()
    play = Play(replace(rules, limits=replace(rules.limits, **{limit: 1})))
    play.start()
    answers: list[tuple[Mapping[str, Any], tuple[str, ...]]] = [
        *(({"size_bytes": 1}, ()), ({"pages": 1, "source": "text"}, ("staging",))),
        (FACTS, PERSONAL),
    ]
    for out, personal in answers:
        if play.now.state == "running.active":
            play.done(out, *personal)
    return play.why


def guard() -> str:
    """A branch whose guard reads a slot that no step filled."""
    ways = b'next = [{ when = "$slots.pages > 1", to = "extract" }, { to = "extract" }]'
    fills = b'fills = ["size_bytes"]\n'
    source = changed(fills + b'next = "extract"', fills + ways)
    play = Play(load_program(source).under(load_policy(POLICY)))
    play.start()
    return refused(play.done({"size_bytes": 1}))


def answered(key: str = "", *, vouched: bool) -> str:
    """An answer to a payment that is under way."""
    play = Play().to_charge()
    play.under_way()
    given = {"run": RUN, "program": program().hash, "key": key or play.key, "vouched": vouched}
    return fed(play, AnswerArrived, **given)


def damaged(**changes: Any) -> str:
    """A chain with one envelope changed."""
    links = [*CHAIN]
    links[2] = links[2]._replace(**changes)
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
    types = {"slots.currency": "string", "slots.amount": "integer"}
    return raised(lambda: parse(text).check(types))


EXAMPLES: Mapping[str, Callable[[], str]] = {
    "PRG-001": lambda: loaded(b'kind = "effect"', b'kindd = "effect"'),
    "PRG-002": lambda: loaded(b'next = "extract"', b'next = "extrat"'),
    "PRG-003": lambda: raised(lambda: load_policy(POLICY.replace(b'outcome = "hold"\n', b"", 1))),
    "PRG-004": lambda: raised(lambda: program(a_rule("deny", "$slots.currency > 5"))),
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
    "FSM-007": lambda: refused(at("receive").done({"amount_minor": 1})),
    "FSM-009": lambda: fed(Play().to_charge(), KillRequested),
    "FSM-010": lambda: fed(Play(), ErasureRequested, refs=(), reason="art17-1-a"),
    "FSM-011": lambda: {"DeliveryReceived": "FSM-011"}[
        Play().feed(DeliveryReceived, program=program().hash).absorbed
    ],
    "FSM-012": lambda: fed(at("receive"), EffectDone, key=at("receive").key, by_holder=False),
    "FSM-013": guard,
    "FSM-014": lambda: refused(Play().to_charge().passes(10**9)),
    "FSM-018": lambda: answered(vouched=False),
    "FSM-017": lambda: raised(lambda: EffectDone(key="", outcome="x" * 300)),
    "FSM-016": lambda: fed(held(), Approved, hold=OTHER),
    "FSM-015": lambda: answered(OTHER, vouched=True),
    "CAP-001": lambda: permitted(Call("wire_transfer", {})),
    "CAP-002": advised,
    "CAP-003": lambda: proposed(note="x"),
    "CAP-004": lambda: proposed(payee=None),
    "CAP-005": lambda: proposed(amount_minor="12845"),
    "CAP-006": lambda: proposed(amount_minor=0),
    "CAP-007": lambda: raised(lambda: chains.seen(chains.CHAIN, at_ms=chains.ENDS_MS)),
    "CAP-008": lambda: paid(revoked=frozenset({grant_id(program().grants[PAY])})),
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
    "POL-001": lambda: ruled(NOTHING),
    "POL-002": lambda: ruled(a_rule("deny", "$slots.pages > 5 or $slots.issue_date == 'x'")),
    "POL-003": lambda: ruled(a_rule("deny", "$slots.currency == 'EUR'")),
    "POL-010": lambda: proposed(amount_minor=128_451),
    "POL-020": lambda: held().why,
    "POL-021": lambda: fed(Play().to_propose(pay_status="paid"), Approved),
    "POL-022": lambda: fed(held(), Declined),
    "POL-023": lambda: fed(unknown(), Declined),
    "BUD-001": lambda: paid(used={"EUR": 999_999_999_999}),
    "BUD-002": lambda: paid(used={"calls": 16}),
    "BUD-003": lambda: exhausted("steps_max"),
    "BUD-004": lambda: exhausted("tokens_max"),
    "BUD-005": lambda: raised(
        lambda: program().gate.begin_step(1, {}, 1, 1 + program().limits.wall_ms_max)
    ),
    "BUD-006": lambda: raised(
        lambda: load_program(SOURCE).gate.reserve({"EUR": 5}, Facts(ledger={"workspace/EUR": 9}))
    ),
    "LOG-001": lambda: damaged(data=CHAIN[2].data + b" "),
    "LOG-002": lambda: raised(lambda: check_chain([CHAIN[0], *CHAIN[2:]], run=RUN)),
    "LOG-003": lambda: raised(lambda: decode_snapshot(b"{}")),
    "PII-001": lambda: refused(at("extract").done({"staging": "Muster GmbH"})),
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
