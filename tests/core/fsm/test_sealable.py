"""What cannot be sealed is refused or cut, whoever says it, and never raised."""

from typing import Any

import pytest

from nanovm_core.core import events
from nanovm_core.core import lifecycle as life
from nanovm_core.core.canonical import SIZE_BYTES_MAX
from nanovm_core.core.envelope import encode_snapshot
from nanovm_core.core.events import ACTOR_MAX, Context, EffectDone, EffectWaiting, Event
from nanovm_core.core.fsm import begin
from nanovm_core.core.messages import Commitment, Decision
from nanovm_core.core.program import Program
from nanovm_core.errors import RefusedError
from nanovm_core.loading import load_program
from nanovm_core.vm import Done, Failed, Unknown, sealed
from tests.core.kit.builders import RUN, START_MS, body, code
from tests.core.kit.refund_desk import Run, Till
from tests.core.kit.refund_runs import BUYER, DRAFT, HASH, ORDER, PROGRAM, TEXT, Refund

HALF = "half of a pair: \ud800"
ODD: tuple[Any, ...] = (HALF, "x" * 5_000, 5, b"x", ["x"])
OUT = {"amount_minor": 1, "urgent": True, "buyer": BUYER.ref, "draft": DRAFT.ref}


def fed(to: Refund, kind: type[Event], /, **fields: Any) -> Decision:
    """Feed an event, and seal what was decided: there is nothing that cannot be."""
    decision = to.feed(kind, **fields)
    list(sealed((), decision))
    return decision


def unsealable(kind: type[Event], /, **fields: Any) -> bool:
    """Whether an event is refused as it is constructed."""
    with pytest.raises(RefusedError) as caught:
        kind(**fields)
    return caught.value.code == "FSM-017"


def started(program: Program = PROGRAM) -> Refund:
    run = Refund(program)
    run.start()
    return run


def awaiting() -> Refund:
    run = started()
    run.look_up(urgent=False)
    return run


def answered(run: Refund, **fields: Any) -> Decision:
    """What comes of an answer to what is awaited."""
    return fed(
        run, events.AnswerArrived, run=run.now.run, program=HASH, key=run.now.awaits, **fields
    )


def long(count: int) -> Refund:
    """A run of a program whose first step fills so many texts."""
    more = "".join(f'text{n} = {{ type = "string" }}\n' for n in range(count))
    names = "".join(f', "text{n}"' for n in range(count))
    text = TEXT.replace("[slots]\n", f"[slots]\n{more}").replace('"draft"]', f'"draft"{names}]', 1)
    return started(load_program(text.encode()))


@pytest.mark.parametrize("said", ODD)
@pytest.mark.parametrize("kind", [events.EffectFailed, events.EffectUnknown])
def test_failure_is_taken_whatever_its_words(kind: type[Event], said: Any) -> None:
    run = started()
    decision = fed(run, kind, key=run.key, code=said, text=said)
    assert decision.refusal is None
    assert run.now.owed is None or run.now.state == life.APPROVAL
    assert 0 < len(str(body(decision)["rule"])) <= events.NAME_MAX


@pytest.mark.parametrize("said", ODD)
def test_failure_that_is_awaited_is_taken_whatever_its_words(said: Any) -> None:
    run = awaiting()
    decision = answered(run, code=said, text=said)
    assert (decision.refusal, run.now.step, run.now.awaits) == (None, "apologise", "")


def test_words_are_cut_and_not_lost() -> None:
    run = started()
    fed(run, events.EffectUnknown, key=run.key, code="X-1", text="it broke: " + "x" * 5_000)
    assert run.now.reason == ("X-1", ("it broke: " + "x" * 5_000)[: events.SAID_MAX])
    none = None
    waits = awaiting()
    answered(waits, code=none, text=none)  # without a code it is no failure
    assert waits.now.step == "ask"


MANY = tuple(Commitment("buyer", BUYER.ref, f"{n:064x}") for n in range(events.SECRETS_MAX + 1))


@pytest.mark.parametrize(
    "fields",
    [
        *({"outcome": odd} for odd in (HALF, "x" * 201, 5)),
        {"outcome": HALF, "out": {}, "secrets": ()},
        *({"out": odd} for odd in (5, [("amount_minor", 1)])),
        *({"secrets": odd} for odd in (5, "x", MANY, [("buyer", BUYER.ref, "c")])),
        *({"secrets": (Commitment("buyer", BUYER.ref, odd),)} for odd in ODD),
        *({"secrets": (Commitment(odd, BUYER.ref, "c"),)} for odd in ODD),
    ],
)  # fmt: skip
def test_answer_that_cannot_be_sealed_cannot_be_constructed(fields: Any) -> None:
    given = {"key": "k", "out": OUT, "secrets": (BUYER, DRAFT), **fields}
    assert unsealable(EffectDone, **given)
    assert unsealable(events.AnswerArrived, run=RUN, program=HASH, **given)


@pytest.mark.parametrize("actor", [HALF, "x" * (ACTOR_MAX + 1), "a\nb"])
def test_actor_that_cannot_be_sealed_makes_no_context(actor: str) -> None:
    with pytest.raises(ValueError, match="an actor is a printable text"):
        Context(at_ms=1, actor=actor)
    assert Context(at_ms=1, actor="x" * ACTOR_MAX).actor


@pytest.mark.parametrize(
    ("kind", "fields"),
    [
        *((EffectWaiting, {"until_ms": odd}) for odd in (HALF, 0.5, None)),
        (events.ProposalReceived, {"raw": b"{}", "secret": Commitment("draft", DRAFT.ref, HALF)}),
    ],
)
def test_event_that_cannot_be_sealed_cannot_be_constructed(kind: type[Event], fields: Any) -> None:
    assert unsealable(kind, key="k", **fields)


def test_slots_of_an_answer_are_its_own() -> None:
    out: dict[str, Any] = {"amount_minor": 1}
    event = EffectDone(key="k", out=out)
    out["amount_minor"] = 9
    assert dict(event.out) == {"amount_minor": 1}
    with pytest.raises(TypeError):
        event.out["amount_minor"] = 2  # type: ignore[index]


@pytest.mark.parametrize("tokens", [HALF, 0.5, None, 2**80])
def test_tokens_that_are_no_number_are_all_that_was_reserved(tokens: Any) -> None:
    run = Refund().to_ask()
    (frozen,) = (each for each in run.now.reserved if each.account == "run/tokens")
    decision = fed(run, events.ProposalReceived, raw=b"no", key=run.key, tokens=tokens)
    spent = sum(each.spent for each in decision.budgets if each.account == "agent/tokens")
    assert (code(decision), spent) == ("CAP-010", frozen.reserved)


@pytest.mark.parametrize("raw", ["{}", None, bytearray(b"{}")])
def test_proposal_that_is_no_bytes_is_none(raw: Any) -> None:
    run = Refund().to_ask()
    assert code(fed(run, events.ProposalReceived, raw=raw, key=run.key)) == "CAP-010"


def test_slots_are_bounded_together() -> None:
    most, many = events.SLOTS_BYTES_MAX, long(4)
    texts = {f"text{n}": "\u0001" * (most // 25) for n in range(4)}
    given = {**OUT, "note": "n", **texts}

    def filled(**more: str) -> Decision:
        run = Refund(many.program)
        run.start()

        return fed(run, EffectDone, key=run.key, out={**given, **more}, secrets=(BUYER, DRAFT))

    fits = filled()
    assert fits.refusal is None
    assert most * 0.9 < len(encode_snapshot(fits.snapshot)) < SIZE_BYTES_MAX // 3
    assert code(filled(text0="\u0001" * (most // 6))) == "FSM-017"
    assert filled(text0="x" * (most // 6), text1="", text2="", text3="").refusal is None


def test_run_begins_with_what_can_be_sealed() -> None:
    given = {"at_ms": START_MS, "actor": "clerk"}
    for slots, secrets in (
        ({"note": "x" * events.SLOTS_BYTES_MAX}, []),
        ({"order": ORDER.ref}, [ORDER, *MANY]),
    ):
        with pytest.raises(RefusedError) as caught:
            begin(PROGRAM, RUN, slots, secrets, **given)  # type: ignore[arg-type]
        assert caught.value.code == "FSM-017"


def test_late_result_that_cannot_be_sealed_says_nothing() -> None:
    for out in ({"note": "x" * events.SLOTS_BYTES_MAX}, {"note": HALF}):
        run = started()
        run.now = run.now._replace(state=life.COMPLETED, owed=None)
        assert body(fed(run, EffectDone, key="k", out=out)).get("out", {}) == {}


@pytest.mark.parametrize(
    ("answer", "stands"),
    [
        (Done(out=5), "awaiting_approval issue FSM-017"),  # type: ignore[arg-type]
        *(
            (Done(out=out), "awaiting_approval issue FSM-007")
            for out in ({"receipt": HALF}, {"receipt": 7}, {"order": "A-2"})
        ),
        (Done(out={HALF: "x"}), "awaiting_approval issue FSM-007"),
        (Done(secrets=(Commitment("x", HALF, "c"),)), "awaiting_approval issue FSM-017"),
        (Failed(code="X", text=HALF), "completed apologise"),
        (Unknown(code=HALF, text="?"), "awaiting_approval issue half of a pair: ?"),
    ],
)
def test_tool_whose_answer_cannot_be_taken_counts_as_broken(answer: Any, stands: str) -> None:
    run = Run(Till(answer), order="A-1").go()
    assert run.stands == stands
    assert (len(run.till.asked), run.money) == (1, 25_000 if "completed" in stands else 20_500)
    run.verify()


def test_model_that_says_no_bytes_is_refused_until_it_may_say_no_more() -> None:
    run = Run(order="A-1", model=lambda _: "{}").go()  # type: ignore[arg-type,return-value]
    assert run.stands.startswith("completed apologise")
    assert run.till.asked == []
