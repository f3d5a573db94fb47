"""Origins: what a document says reaches nothing that demands more, unless a step endorses it."""

import re
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from random import Random
from typing import Any

import pytest

from nanovm_core.core.authority.capabilities import Constraint, Grant, attenuate, narrower
from nanovm_core.core.authority.origin import ORIGINS, least, meets
from nanovm_core.core.fsm import begin
from nanovm_core.core.gate import Facts
from nanovm_core.core.messages import RunId, Scalar
from nanovm_core.core.program import Program
from nanovm_core.core.proposals import Call
from nanovm_core.core.snapshots import decode_snapshot, encode_snapshot
from nanovm_core.core.warrants import OTHER_CALL, authorize, binding
from nanovm_core.errors import ProgramError, RefusedError
from nanovm_core.judge import judge
from nanovm_core.loading import load_program
from nanovm_core.policy_tests import run_examples
from nanovm_core.vm import Waiting
from tests.core.kit.builders import refused
from tests.core.kit.drawn_origins import World
from tests.core.kit.refund_desk import DESK, TOOL, Run, Till, args_of, desk_with, slots_of
from tests.core.vm.test_judge import line

BATCH = 400
UNPROVEN = re.compile("of the origin|demands the origin|less than|rests on advice")
SEEDS = [1, *(pytest.param(seed, marks=pytest.mark.soak) for seed in (0, *range(2, 30)))]


# --- order, and what a file may say ----------------------------------------------------------


def test_origins_have_one_order_and_an_unknown_one_is_never_enough() -> None:
    for place, origin in enumerate(ORIGINS):
        assert [meets(origin, demanded) for demanded in ORIGINS] == [
            at <= place for at in range(len(ORIGINS))
        ]
        assert least([origin, "program"]) == origin
        assert not meets("invented", origin)
        assert not meets(origin, "invented")
    assert least(["register", "invented", "advisor"]) == "invented"


FREE = ('currency = { slot = "currency", origin = "register" }\n', "")
ENDORSED = 'endorses = { paid_minor = "register", currency = "register" }'


@pytest.mark.parametrize(
    ("edits", "says"),
    [
        ([(ENDORSED, "")], "step look_up fills 'paid_minor', of the origin register"),
        ([(ENDORSED, 'endorses = { paid_minor = "register" }')], "fills 'currency'"),
        ([(ENDORSED, ENDORSED.replace("currency", "order"))], "'order', which it does not fill"),
        ([(ENDORSED, ENDORSED.replace('cy = "register"', 'cy = "person"'))], "less than"),
        ([(ENDORSED, ENDORSED.replace("register", "regster"))], "is none of advisor, document"),
        ([('"clear", origin = "register" }\ncurrency', '"clear" }\ncurrency')], "declares none"),
        ([('order = "order"\namount', 'order = { slot = "order", origin = "person" }\namount')],
         "demands the origin person"),
        ([('one_of = ["EUR", "USD"] }', 'origin = "program" }')], "demands the origin program"),
        ([FREE, ('one_of = ["EUR", "USD"] }', 'one_of = ["EUR"], origin = "register" }')],
         "add equals_slot"),
    ],
)  # fmt: skip
def test_what_nothing_proves_does_not_load(edits: list[tuple[str, str]], says: str) -> None:
    with pytest.raises(ProgramError) as caught:
        desk_with(*edits)
    assert any(says in fault.text for fault in caught.value.faults), caught.value.faults


def test_what_the_model_may_choose_makes_the_answer_the_models() -> None:
    trusted = [
        (
            'order = { type = "string", model = "clear" }',
            'order = { type = "string", origin = "person" }',
        ),
        ('receipt = { type = "string" }', 'receipt = { type = "string", origin = "person" }'),
        (
            '"currency" }\n[tools."refund.issue".c',
            '"currency" }\norigin = "program"\n[tools."refund.issue".c',
        ),
    ]
    assert desk_with(*trusted).slots["receipt"].origin == "person"
    with pytest.raises(ProgramError, match="step issue fills 'receipt'"):
        desk_with(*trusted, FREE)


def test_a_condition_reads_an_origin() -> None:
    rule = """
[[rules]]
id = "named-by-a-document"
at = "authorize"
outcome = "deny"
when = "$origin.order == 'document'"
why = "Nobody but a document names the order."

[[examples]]
name = "an order that a person named"
expect = "allow"
[examples.given]
tool = "refund.issue"
slots = { age_days = 1 }
origin = { order = "person" }
proposal = { amount_minor = 1 }

[[examples]]
name = "an order that a document named"
expect = "deny"
[examples.given]
tool = "refund.issue"
slots = { age_days = 1 }
origin = { order = "document" }
proposal = { amount_minor = 1 }
"""
    desk = desk_with(more=rule)
    assert [each.outcome for each in list(run_examples(desk))[-2:]] == ["allow", "deny"]
    assert Run(program=desk).go().stands == "completed apologise"
    named = Run(program=desk, origins={"order": "person"}).go()
    assert named.stands == "completed issue"
    with pytest.raises(ProgramError, match="PRG-004"):
        desk_with(more=rule.replace("$origin.order", "$origin.nothing"))


@pytest.mark.parametrize(
    ("origin", "rule"),
    [
        ({}, "small-or-signed"),
        ({"origin": {"paid_minor": "register"}}, "small-or-signed"),
        ({"origin": {"paid_minor": "document"}}, "CAP-009"),
        ({"origin": {"paid_minor": "invented"}}, "CAP-010"),
        ({"origin": "document"}, "CAP-010"),
        ({"origin": {"paid_minor": 1}}, "CAP-010"),
    ],
)
def test_judge_takes_the_origins_of_its_context(origin: dict[str, object], rule: str) -> None:
    (found,) = judge(DESK, [line(**origin)])  # type: ignore[arg-type]
    assert found.rule == rule


# --- a run -----------------------------------------------------------------------------------


def test_a_run_says_where_its_values_come_from() -> None:
    run = Run(origins={"order": "person"}).go()
    assert run.snapshot.origins == {
        "order": "person",
        "paid_minor": "register",
        "currency": "register",
    }
    sealed = run.bodies()
    assert sealed[0]["origin"] == {"order": "person"}
    assert sealed[2]["origin"] == {"paid_minor": "register", "currency": "register"}
    assert decode_snapshot(encode_snapshot(run.snapshot)) == run.snapshot
    run.verify()
    assert run.replayed() == run.envelopes


def test_a_slot_takes_no_less_than_it_declares() -> None:
    given = {**slots_of(), "message": "please"}
    for origins in (
        {},
        {"paid_minor": "register"},
        {"paid_minor": "invented"},
        {"nobody": "person"},
    ):
        assert refused(lambda o=origins: begin_with(DESK, given, o)) == "CAP-009"  # type: ignore[misc]
    enough = {"paid_minor": "register", "currency": "program"}
    assert begin_with(DESK, given, enough).snapshot.origins == enough


def begin_with(program: Program, slots: Mapping[str, Scalar], origins: Mapping[str, str]) -> Any:
    return begin(program, RunId("r"), slots, (), at_ms=1, actor="a", origins=origins)


def test_a_narrowed_grant_demands_more_than_the_program_proves() -> None:
    grant = DESK.grants[TOOL]
    where = {**grant.where, "order": Constraint(equals_slot="order", origin="person")}
    narrowed = DESK.attenuated([replace(grant, where=where)])
    by_document = Run(program=narrowed).go()
    assert by_document.stands == "completed apologise"
    assert {body.get("rule") for body in by_document.bodies()} >= {"CAP-009"}
    assert not by_document.till.asked
    assert Run(program=narrowed, origins={"order": "person"}).go().stands == "completed issue"


def test_the_programs_own_call_is_held_to_origins_too() -> None:
    slots, origins = slots_of(), DESK.declared(DESK.slots)
    call = Call(TOOL, args_of())
    assert DESK.gate.permit_own(call, Facts(slots=slots, origins=origins)) == args_of()
    assert refused(lambda: DESK.gate.permit_own(call, Facts(slots=slots))) == "CAP-009"


def test_an_origin_is_narrowed_and_never_widened() -> None:
    def grant(origin: str | None) -> Grant:
        return Grant(tool=TOOL, where={"order": Constraint(equals_slot="order", origin=origin)})

    for outer in (None, *ORIGINS):
        for inner in (None, *ORIGINS):
            holds = outer is None or meets(inner or "", outer)
            assert narrower(grant(inner), grant(outer)) is holds
            if not holds:
                widened = partial(attenuate, {TOOL: grant(outer)}, [grant(inner)])
                assert refused(widened) == "CAP-030"


def test_a_warrant_is_for_these_origins_alone() -> None:
    owed = Run(Till(Waiting())).go().owed
    assert owed.warrant is not None
    assert owed.origins == {"amount_minor": "register", "currency": "register"}
    bound = binding("run", DESK.hash, owed)
    authorize(owed.warrant, bound, owed.at_ms)
    for other in (None, {**owed.origins, "currency": "document"}):
        forged = binding("run", DESK.hash, owed._replace(origins=other))
        with pytest.raises(RefusedError, match=OTHER_CALL):
            authorize(owed.warrant, forged, owed.at_ms)


# --- generated programs ----------------------------------------------------------------------
@pytest.mark.parametrize("seed", SEEDS)
def test_no_program_that_loads_lets_a_value_reach_what_demands_more(seed: int) -> None:
    """The oracle follows each value from hand to hand and knows nothing of slots' declarations."""
    loaded = paid = unproven = 0
    for number in range(BATCH):
        world = World(Random(f"{seed}/{number}"))  # noqa: S311
        try:
            program = load_program(world.source)
        except ProgramError as error:
            unproven += all(UNPROVEN.search(fault.text) is not None for fault in error.faults)
            continue
        loaded += 1
        world.run(program)
        for args in world.paid:
            paid += 1
            for name, (_, demanded) in world.demands.items():
                found = world.came_from[args[name]]
                assert not demanded or all(meets(each, demanded) for each in found), world.source
    assert loaded + unproven == BATCH
    assert min(loaded, unproven) > BATCH // 25
    assert paid > BATCH // 50
