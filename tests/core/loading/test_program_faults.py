"""Contradictions: each is refused, named, and pointed at to the character."""

import pytest

from nanovm_core.loading import load_program
from tests.core.kit.desk import changed, error_of
from tests.core.loading.faults import check

NOWHERE = "no such step; name one, or 'completed'"


@pytest.mark.parametrize(("old", "new", "at", "said"), [
    ('next = "sort"', 'next = "srot"', 'next = "srot"', f"step look_up leads to 'srot': {NOWHERE}"),
    ('to = "confirm" }', 'to = "x" }', 'to = "x"', f"step sort leads to 'x': {NOWHERE}"),
    ('next = "ask"\non_error = "apologise"', 'next = "ask"\non_error = "x"', 'on_error = "x"',
     "step confirm fails to 'x': no such step; name one, or 'failed'"),
    ('on_error = "failed"', 'on_error = "completed"', "on_error", "fails to 'completed'"),
    ('first = "look_up"', 'first = "x"', "first", "first = 'x' is no step"),
    ('fills = ["receipt"]', 'fills = ["recipe"]', '"recipe"', "unknown slot 'recipe'"),
    ('tool = "orders.look_up"', 'tool = "orders"', 'tool = "orders"', "unknown tool 'orders'"),
    ('accepts = ["refunds.pay"]', 'accepts = ["refunds.pay", "refunds.tell"]', '"refunds.tell"]',
     "step ask accepts 'refunds.tell', which is not granted"),
    ('accepts = ["refunds.pay"]', "", 'steps]]\nname = "ask"', "step ask accepts no tool"),
    ("tokens_max = 500", "tokens_max = 100_001", "tokens_max", "needs 100001 tokens, a run has"),
    ('text = "answer" }', 'text = "answer", to = "customer" }', 'to = "customer" }',
     "step apologise: 'to' is no argument of refunds.tell; it has text"),
    ('args = { text = "answer" }', "", 'steps]]\nname = "apolo', "refunds.tell needs 'text'"),
    ('text = "answer" }', 'text = "is_vip" }', 'text = "is_vip"', "text is of type string, the"),
    ('call = "authorized"\nargs = { order = "order" }',
     'call = "authorized"\nargs = { order = "x" }', 'order = "x"',
     "step pay: order names the unknown slot 'x'"),
    ('call = "authorized"\nargs = { order = "order" }',
     'call = "authorized"\nargs = { payee = "order" }', 'payee = "order"',
     "step pay: args would replace 'payee' of the judged call"),
])  # fmt: skip
def test_a_step_that_contradicts_the_rest(old: str, new: str, at: str, said: str) -> None:
    text = changed(old, new)
    check(text, at, said)


@pytest.mark.parametrize(("old", "new", "at", "said"), [
    ('payee = "customer"', 'payee = "custom"', "payee =", "names the unknown slot 'custom'"),
    ('payee = "customer"', 'payee = "answer"', "payee =", "critical payee is of type ref, the"),
    ('constant = "EUR"', "constant = 978", "currency = { c", "is of type string, but 978 is not"),
    ('payee = "customer", currency', 'payee = "customer", payer = "customer", currency', "payer =",
     "critical payer is no argument of the tool; it has amount_minor, currency, payee,"),
    ('free = ["note"]', 'free = ["note", "x"]', '"x"]', "free names 'x', which is no argument"),
    ('free = ["note"]', 'free = ["note", "payee"]', '"payee"]', "or is critical"),
    ('{ amount = "amount_minor"', '{ amount = "note"', 'amount = "n', "'note' is no integer arg"),
    (', currency = "currency" }', ', currency = "amount_minor" }', 'currency = "amount_minor"',
     "currency = 'amount_minor' is no string argument of the tool"),
    ('one_of = ["EUR", "USD"]', "one_of = [1]", "one_of = [1]", "of type string, but 1 is not"),
    ("min = 1, max = 50_000 }\nc", "min = 9, max = 8 }\nc", "min = 9", "over 9 and under 8"),
    ("one_of = [false]", "one_of = [0]", "one_of = [0]", "urgent is of type boolean, but 0 is"),
    ("one_of = [false]", "one_of = [false], min = 1", "min = 1 }\nr", "min bounds a integer"),
    ("one_of = [false]", 'one_of = [false], prefix = "a"', "prefix", "prefix bounds a string"),
    ("amount_minor = { min = 1, max = 50_000", "amount_minor = { min = 7, max = 6", "min = 7",
     "no integer is over 7 and under 6"),
    ('equals_slot = "answer"', 'equals_slot = "x"', "equals_slot", "reason names the unknown slot"),
    ('equals_slot = "answer"', 'equals_slot = "order"', "equals_slot", "is of type string, the"),
])  # fmt: skip
def test_a_tool_or_a_grant_that_contradicts_the_rest(
    old: str, new: str, at: str, said: str
) -> None:
    check(changed(old, new), at, said)


def test_a_grant_of_what_there_is_not() -> None:
    unknown = changed("[[rules]]", '[[grants]]\ntool = "wire"\n\n[[rules]]')
    check(unknown, 'tool = "wire"', "the grant of wire: there is no such tool")
    hasty = "urgent = { one_of = [false] }\nhasty = { one_of = [false] }"
    hasty = changed("urgent = { one_of = [false] }", hasty)
    check(hasty, "hasty", "'hasty' is no argument; it has")


@pytest.mark.parametrize(
    ("old", "argument"),
    [
        ('free = ["note"]\n', "note"),
        ("urgent = { one_of = [false] }\n", "urgent"),
        (', equals_slot = "answer"', "reason"),
        ('payee = "customer", ', "payee"),
    ],
)
def test_an_argument_of_a_granted_tool_is_closed_by_default(old: str, argument: str) -> None:
    text = changed(old, "")
    check(text, "grants]]", f"nothing says where {argument!r} must come from: make it critical")


def test_a_tool_is_granted_once() -> None:
    twice = '[[grants]]\ntool = "refunds.pay"\n\n[[rules]]'
    error = error_of(changed("[[rules]]", twice))
    assert (error.code, len(error.faults)) == ("PRG-002", 1)
    assert "the grant of refunds.pay: it is there twice: make one of both" in error.text


@pytest.mark.parametrize("limit", ['equals_slot = "answer"', 'one_of = ["a"]'])
def test_a_grant_closes_an_argument_by_a_slot_or_a_set(limit: str) -> None:
    load_program(changed('prefix = "r", equals_slot = "answer"', limit).encode())


def test_limits_have_no_default_where_money_or_a_model_is() -> None:
    for line in ("proposals_max = 2\n", "money_minor_max = 50_000\n"):
        name = line.split()[0]
        check(changed(line, ""), "limits]", f"limits missing: {name} has no safe")
    gone = changed("[limits]\nproposals_max = 2\nmoney_minor_max = 50_000\n", "")
    error = error_of(gone)
    assert (error.line, error.column, error.code) == (1, 1, "PRG-002")
    assert "limits missing: say what one run may use, in [limits]" in error.text
