"""Generated proposals: none crashes, and the runtime takes those alone that the oracle takes."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from random import Random
from urllib.parse import urlencode

import pytest

from engine.models import AdapterCall, Run
from nanovm_core.core.events import ProposalReceived
from nanovm_core.core.fsm import transition
from nanovm_core.core.messages import Decision, Scalar
from sabotage.models import Attack
from tests.core.kit.builders import LEDGER, ROOT, Play, proposal, ref, secret, worker_context
from tests.dashboard.visitor import Visitor

RECORDED = ROOT.parent / "shared/data/attacks/proposals.jsonl"
INVOICES: tuple[Mapping[str, Scalar], ...] = (
    {"amount_minor": 128_450, "currency": "EUR"},
    {"amount_minor": 2_000_000, "currency": "USD"},  # over the limit
    {"amount_minor": 128_450, "currency": "SEK"},  # held whatever the amount
)
PLAYS = [Play().to_propose(**invoice) for invoice in INVOICES]
NOTHING_YET = dict.fromkeys(("eur_24h", "calls_1m@payer", "failing@payer"), 0)
EVERY_ACCOUNT = {f"workspace/{each['currency']}": 100_000_000 for each in INVOICES}
PAY = "stripe.create_payment_intent"
ARGS = ("amount_minor", "currency", "payee", "memo")
TOOLS = (PAY, f"{PAY} ", PAY.title(), "wire_transfer", "notify.send_email",
         "stripe.create_payment_intеnt", "model.propose", "", "vault.split")  # fmt: skip
NAMES = (*ARGS, "to", "amount", "Currency", "payment_method", "idempotency_key", "amount_minor ",
         "__proto__", "payeе")  # fmt: skip
VALUES: Sequence[object] = (
    128_450, 128_451, 128_449, -128_450, 0, 1, 2_000_000, 10**12, 2**53, 10**400, 128_450.0,
    "128450", True, None, "EUR", "eur", "EUR ", "USD", "ＥＵＲ", "attacker", "\u202eRUE",
    "{{payee}}", "{{memo}}", "{{notes}}", "{{x}}", "{{payee}} ", ref(103), ref(104), ref(999),
    "vault://secret/x", [], {}, [128_450], {"v": 128_450}, "x" * 9_000,
)  # fmt: skip
PIECES = (
    b'"amount_minor": 128450,', b'"currency": "EUR",', b'"tool": "wire_transfer",', b"1e400",
    b"-0", b"NaN", b"[" * 70, b"{" * 2_000, b"\xff\xfe", b"\xef\xbb\xbf", b"\x00", b"}{", b",",
    b"\\ud800", b"128450.0", b"0x1F5C2", b" ", b"\r\n", b"/**/", b'"urgent": true,',
)  # fmt: skip


def recorded() -> list[bytes]:
    """What models were seen to propose under attack, both as it was and as it would fit here."""
    if not RECORDED.is_file():
        return []
    rows = [json.loads(line) for line in RECORDED.read_bytes().splitlines()]
    return [json.dumps(row[name]).encode() for row in rows for name in ("proposal", "original")]


def seeded(number: int) -> Random:
    return Random(number)  # noqa: S311 - examples, no secrets


def changed(dice: Random, facts: Mapping[str, Scalar]) -> Iterator[bytes]:
    """Endless variations of the faithful call and of the recorded ones."""
    seeds = recorded()
    while True:
        raw = proposal(amount_minor=facts["amount_minor"], currency=facts["currency"])
        if seeds and dice.random() < 0.4:
            raw = dice.choice(seeds)
        way = dice.randrange(6)
        yield _near(dice, facts) if way == 0 else _torn(dice, raw, times=way - 1)


def _near(dice: Random, facts: Mapping[str, Scalar]) -> bytes:
    """The faithful call with an argument or two exchanged, added or left out."""
    args: dict[str, object] = {**facts, "payee": "{{payee}}", "memo": "{{memo}}"}
    for _ in range(dice.randint(0, 2)):
        args[dice.choice(NAMES)] = dice.choice(VALUES)
        if dice.random() < 0.2:
            args.pop(dice.choice(list(args)))
    return json.dumps({"tool": dice.choice((PAY, *TOOLS[3:5])), "args": args}).encode()


def _torn(dice: Random, raw: bytes, times: int) -> bytes:
    """The bytes with some of them exchanged, cut out, doubled, or another's piece put in."""
    for _ in range(times):
        at = dice.randrange(len(raw) + 1)
        end = min(len(raw), at + dice.randint(0, 12))
        piece = dice.choice(PIECES)
        raw = dice.choice((
            raw[:at] + bytes([dice.randrange(256)]) + raw[at + 1 :],
            raw[:at] + raw[end:],
            raw[:end] + raw[at:],
            raw[:at] + piece + raw[at:],
            piece + raw,
        ))  # fmt: skip
    return raw


def read_strictly(raw: bytes) -> object:
    """What Python's own parser reads, none of the kernel's; None for what is no JSON."""

    def once(pairs: list[tuple[str, object]]) -> dict[str, object]:
        if len({name for name, _ in pairs}) != len(pairs):
            raise ValueError("a key twice")
        return dict(pairs)

    def no_number(text: str) -> object:
        raise ValueError(text)

    try:
        return json.loads(raw.decode(), object_pairs_hook=once, parse_constant=no_number)
    except (ValueError, RecursionError):
        return None


def is_due(raw: bytes, slots: Mapping[str, Scalar]) -> bool:
    """The oracle: whether the bytes ask for the invoice's own payment and for nothing more."""
    read = read_strictly(raw)
    if not isinstance(read, dict) or set(read) != {"tool", "args"} or read["tool"] != PAY:
        return False
    args = read["args"]
    if not isinstance(args, dict) or set(args) != {*ARGS}:
        return False
    return (
        type(args["amount_minor"]) is int
        and args["amount_minor"] == slots["amount_minor"]
        and args["currency"] == slots["currency"]
        and all(args[name] in (slots[name], f"{{{{{name}}}}}") for name in ("payee", "memo"))
    )


def needs_nobody(slots: Mapping[str, Scalar]) -> bool:
    """Whether the default policy pays such an invoice without a person."""
    listed = slots["currency"] in ("EUR", "USD", "GBP", "CHF")
    return listed and 0 < int(slots["amount_minor"]) <= 1_000_000


def judged(play: Play, raw: bytes) -> str:
    """Propose the bytes and compare the answer with the oracle's; the code."""
    event = ProposalReceived(raw=raw, secret=secret("proposal", 500), key=play.key)
    ledger = LEDGER if play.now.slots["currency"] == "EUR" else EVERY_ACCOUNT
    context = worker_context(at_ms=play.at_ms, actor="model", ledger=ledger, counts=NOTHING_YET)
    decision = transition(play.program, play.now, event, context)
    compare(play, raw, decision)
    return decision.refusal.code if decision.refusal else "taken"


def compare(play: Play, raw: bytes, decision: Decision) -> None:
    """What is taken is the invoice's own payment; what is owed then, the policy pays alone."""
    due, slots = is_due(raw, play.now.slots), play.now.slots
    assert (decision.refusal is None) == due, raw
    paid = [each for each in decision.effects if each.tool == PAY]
    assert bool(paid) == (due and needs_nobody(slots)), raw
    for effect in paid:
        assert effect.warrant is not None
        assert {name: effect.args[name] for name in ARGS} == {name: slots[name] for name in ARGS}


def judge_all(proposals: Iterable[bytes], play: Play) -> Counter[str]:
    """The answers by code."""
    return Counter(judged(play, raw) for raw in proposals)


@pytest.mark.parametrize("count", [1_000, pytest.param(30_000, marks=pytest.mark.soak)])
@pytest.mark.parametrize("place", range(len(PLAYS)))
def test_variations_are_taken_only_where_they_are_the_invoices_own(place: int, count: int) -> None:
    many = changed(seeded(place), INVOICES[place])
    answers = judge_all(islice(many, count), PLAYS[place])
    print(f"{count} proposals: {dict(answers)}")
    assert answers["taken"] > 50
    assert len(answers) > 11  # as many different refusals, so that not one wall stops them all


@pytest.mark.skipif(not RECORDED.is_file(), reason="../shared/data is missing: no attacks to read")
@pytest.mark.parametrize("play", PLAYS)
def test_nothing_that_a_fooled_model_said_is_taken(play: Play) -> None:
    answers = judge_all(recorded(), play)
    assert answers["taken"] == 0
    assert answers["CAP-001"] > 500


@pytest.mark.usefixtures("runtime_here")
@pytest.mark.parametrize("times", [15, pytest.param(1_000, marks=pytest.mark.soak)])
def test_over_http_no_proposal_is_an_error_of_ours(times: int) -> None:
    many = changed(seeded(7), INVOICES[0])
    for _ in range(0, times, 25):  # a run's record is read whole each time: it is kept short
        visitor = Visitor()
        run = visitor.make(hold=True)
        for raw in islice(many, min(25, times)):
            answer = visitor.post(
                f"/runs/{run.code}/attacks/tool_injection/",
                urlencode({"proposal": raw}),
                content_type="application/x-www-form-urlencoded",
            )
            assert answer.status_code in (303, 422)
        attacks = Attack.objects.filter(run_id=run.id)
        assert set(attacks.values_list("verdict", "integrity")) == {("BLOCKED", "HELD")}
        assert Run.objects.get(id=run.id).state == run.state
        assert not AdapterCall.objects.filter(run_id=run.id).exists()
