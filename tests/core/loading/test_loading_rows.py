"""Rows of a program file: each key that does not fit is refused, and pointed at."""

import pytest

from nanovm_core.loading import load_program
from tests.core.kit.desk import changed, error_of, place
from tests.core.loading.faults import check, check_one

END = 'steps]]\nname = "{}"'
NO_PATH = "no failure path: say where it leads when it fails"


@pytest.mark.parametrize(("old", "new", "at", "said"), [
    ('v = "nanovm-program/1"', 'v = "nanovm-program/2"', "v =", "expected v = 'nanovm-program/1'"),
    ("[limits]", "colour = 1\n[limits]", "colour", "program: unknown key 'colour'; known are"),
    ('name = "refund_desk"', "name = 7", "name = 7", "name must be a text of 1 to 1024 char"),
    ('name = "refund_desk"', 'name = "a b"', "name = ", "name = 'a b' is no name"),
    ('agent = "desk"', 'agent = "dеsk"', "agent", "is no name"),  # its e is Cyrillic
    ('"policies/desk.toml"', '"policies/../../desk.toml"', "policy", "a path without '..'"),
    ('"policies/desk.toml"', '"/desk.toml"', "policy", "is no name"),
    ("proposals_max = 2", "proposals_max = 0", "proposals_max", "an integer of 1 to 1000"),
    ("proposals_max = 2", "proposals_max = true", "proposals_max", "an integer of 1 to 1000"),
    ("[limits]", "[limits]\nwarrant_ttl_ms = 86_400_001", "warrant", "an integer of 1 to 8640"),
    ("[limits]", "[limits]\nwall_ms_max = 2_592_000_001", "wall_ms", "an integer of 1 to 2592"),
    ("[limits]", "[limits]\ncalls_max = 0", "calls_max", "an integer of 1 to 9007199254740991"),
    ("money_minor_max = 50_000", "money_minor_max = -1", "money_minor_max", "an integer of 0 to"),
])  # fmt: skip
def test_head_and_limits(old: str, new: str, at: str, said: str) -> None:
    check_one(changed(old, new), at, said, "PRG-001")


@pytest.mark.parametrize(("old", "new", "at", "said"), [
    ('order = { type = "ref" }', 'order = { type = "text" }', 'type = "text"', "slot order: type"),
    ('order = { type = "ref" }', 'order = "ref"', "order =", "order must be a table"),
    ('model = "clear"', 'model = "open"', "model", "model = 'open' is none of hidden, clear"),
    ("answer = {", "Answer = {", "Answer", "'Answer' is no name: it must match [a-z]"),
    ("note = {", '"no te" = {', '"no te"', "'no te' is no name"),
    ('[tools."model.ask"]', '[tools."modеl.ask"]', '"modеl.ask"', "is no name"),  # Cyrillic
    ("min = 1, max = 50_000 }\nc", "min = 1.0 }\nc", "min = 1.0", "min must be an integer of -"),
    ("min = 1, max = 50_000 }\nc", "most = 9 }\nc", "most", "unknown key 'most'; known are max"),
    ("min = 1, max = 50_000 }\nc", "length_max = 9 }\nc", "length_max", "unknown key 'length_max'"),
    ('urgent = { type = "boolean"', 'urgent = { type = "boolean", min = 1', "min = 1 }\nreas",
     "unkn"),
    ('payee = { type = "ref"', 'payee = { type = "ref", one_of = ["a"]', 'one_of = ["a"]',
     "unknown key"),
    ("length_max = 80", "length_max = 0", "length_max = 0", "an integer of 1 to 65536"),
    ("length_max = 80", "length_max = 65_537", "length_max = 65", "an integer of 1 to 65536"),
    ('one_of = ["EUR", "USD"]', "one_of = []", "one_of", "must list texts, or integers"),
    ('one_of = ["EUR", "USD"]', 'one_of = ["EUR", 1]', "one_of", "must list texts, or integers"),
    ('one_of = ["EUR", "USD"]', "one_of = [1.5]", "one_of", "must list texts, or integers"),
    ('constant = "EUR"', "constant = 1.5", "constant", "constant must be a text, true, false"),
    ('constant = "EUR"', "", "currency = { ", "say which: { constant"),
    ('payee = "customer"', "payee = 5", "payee", "payee must be a text"),
    ('free = ["note"]', 'free = ["note", "note"]', "free", "free names something twice"),
    ('free = ["note"]', 'free = "note"', "free", "free must be a list of names"),
    (', currency = "currency" }', " }", "money = {", "money needs either currency"),
    (', currency = "currency" }', ', currency = "currency", currency_is = "EUR" }',
     'currency_is = "EUR"', "money needs either currency"),
    (', currency = "currency" }', ', currency_is = "euro" }', "currency_is", "[A-Z]{3}"),
    ('money = { amount = "amount_minor"', "money = { x = 1", "money = { x", "amount must be a"),
    ("money = { amount", "money = { x = 1, amount", "x = 1", "unknown key 'x'"),
    ("expires_ms = 1", "expires_ms = -1", "expires_ms", "an integer of 0 to"),
    ('prefix = "r"', "prefix = 7", "prefix", "prefix must be a text"),
])  # fmt: skip
def test_slots_tools_and_grants(old: str, new: str, at: str, said: str) -> None:
    check_one(changed(old, new), at, said, "PRG-001")


@pytest.mark.parametrize(("old", "new", "at", "said", "code"), [
    ('kind = "wait"', 'kind = "sleep"', 'kind = "sl', "is none of effect, model, pure, wait", "1"),
    ('kind = "wait"', "", END.format("confirm"), "step confirm: kind must be a text", "1"),
    ('name = "look_up"', "", 'steps]]\n\nkind = "effect"', "step 1: name must be a text", "1"),
    ('name = "sort"', 'name = "look_up"', 'name = "look_up"\nkind = "p', "rename one", "2"),
    ('name = "apologise"', 'name = "failed"', 'name = "failed"\nk', "this is where runs end", "2"),
    ('name = "apologise"', 'name = "completed"', 'name = "com', "this is where runs end", "2"),
    ('next = "sort"', "", END.format("look_up"), "step look_up: next must be a text", "1"),
    ('next = "sort"', "next = []", "next = []", "name at least one target", "1"),
    ('next = "sort"', 'next = ["sort"]', "next = [", "next must be a list of tables", "1"),
    ('{ to = "ask" }', '{ when = "true", to = "ask" }', 'when = "true"', "the last has none", "2"),
    ('when = "not $slots.is_vip", ', "", '{ to = "confirm" }', "every branch but the last", "2"),
    ('next = "sort"\non_error = "failed"', 'next = "sort"', END.format("look_up"), NO_PATH, "2"),
    ('"ask"\non_error = "apologise"', '"ask"', END.format("confirm"), NO_PATH, "2"),
    ('"judge"\non_error = "apologise"', '"judge"', END.format("ask"), NO_PATH, "2"),
    ('tool = "model.ask"', "", END.format("ask"), "say which tool asks the model", "2"),
    ('tool = "orders.look_up"', "", END.format("look_up"), "either a tool, or call =", "2"),
    ('call = "authorized"', 'call = "authorized"\ntool = "refunds.tell"', 'call = "auth',
     "either a to", "2"),
    ('call = "authorized"', 'call = "authorised"', 'call = "authorised"', "is none of", "1"),
    ("tokens_max = 500", 'fills = ["answer"]', 'fills = ["answer"]\n[[steps]]\nname = "ju',
     "a model fills no slot", "2"),
    ("tokens_max = 500", 'drops = ["answer"]', 'drops = ["answer"]', "unknown key 'drops'", "1"),
    ("timeout_ms = 86_400_000", "", END.format("confirm"), "timeout_ms must be an integer", "1"),
    ("timeout_ms = 60_000", "timeout_ms = 2_592_000_001", "timeout_ms = 2", "an integer of 1", "1"),
    ("attempts_max = 3", "attempts_max = 101", "attempts_max", "an integer of 1 to 100", "1"),
    ("backoff_ms = 500", "backoff_ms = -1", "backoff_ms", "an integer of 0 to", "1"),
    ("backoff_ms = 500", "backoff_ms = 60_001", "backoff_ms", "and at most 60000: raise", "2"),
    ('args = { text = "answer" }', 'args = { text = ["answer"] }', "text = [", "text must be a",
     "1"),
    ('args = { text = "answer" }', "args = 5", "args = 5", "args must be a table", "1"),
    ('authorizes = "ask"', 'authorizes = "ask"\nfills = []', "fills = []", "unknown key", "1"),
    ("timeout_ms = 86_400_000", 'timeout_ms = 1\ntool = "a"', 'tool = "a"', "unknown key", "1"),
    ('fills = ["receipt"]', 'accepts = ["receipt"]', 'accepts = ["rec', "unknown key", "1"),
])  # fmt: skip
def test_steps(old: str, new: str, at: str, said: str, code: str) -> None:
    check_one(changed(old, new), at, said, f"PRG-00{code}")


@pytest.mark.parametrize(("old", "new", "inside", "said"), [
    ("$run.calls > 3", "$run.calls > '3'", "> '3'", "step judge: this guard does not fit: "),
    ("not $slots.is_vip", "not $slots.vip", "$slots.vip", "step sort: this guard does not fit: "),
    ("$slots.total_minor <= 0", "$slots.total_minor", "$slots.total_minor", "does not fit: "),
    ("$run.calls > 3", "$proposal.x > 3", "$proposal.x", "this guard does not fit: "),
    ("$history.failed >= 3", "$history.fell >= 3", "$history.fell", "rule calm: its condition"),
    ("$history.failed >= 3", "$tool == 'a'", "$tool", "rule calm: its condition does not fit"),
    ("$proposal.amount_minor >", "$proposal.amount >", "$proposal.amount", "where refunds.pay is"),
    ("> 50000 or", "> '50000' or", "> '5", "rule too-much: its condition does not fit where"),
    ("$run.calls > 3", "$run.calls => 3", "=> 3", "step judge: branch 1: when: an unknown char"),
    ("not $slots.is_vip", "!$slots.is_vip", "!$s", "step sort: branch 2: when: an unknown char"),
])  # fmt: skip
def test_a_condition_is_pointed_into(old: str, new: str, inside: str, said: str) -> None:
    text = changed(old, new)
    error = error_of(text)
    assert said in error.text
    assert (error.code, error.line, error.column) == ("PRG-004", *place(text, inside))
    assert "^" in error.text.splitlines()[-1]


def test_a_rule_about_a_tool_that_is_not_granted() -> None:
    text = changed('tools = ["refunds.pay"]', 'tools = ["refunds.pay", "wire"]')
    check(text, "tools = [", "rule too-much: it is about 'wire', which is not granted", "PRG-004")


def test_a_rule_without_tools_is_held_to_each_granted_tool() -> None:
    more = '[[grants]]\ntool = "refunds.tell"\nwhere = { text = { one_of = ["sorry"] } }\n[[rules]]'
    load_program(changed("[[rules]]", more).encode())
    error = error_of(changed("[[rules]]", more, 'tools = ["refunds.pay"]\n', ""))
    assert "does not fit where refunds.tell is proposed (with tools = […] it is about" in error.text


def test_nobody_judges_conditions_while_types_are_at_fault() -> None:
    error = error_of(changed('is_vip = { type = "boolean" }', 'is_vip = { type = "bool" }'))
    assert [fault.code for fault in error.faults] == ["PRG-001"]
