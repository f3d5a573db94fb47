"""Faults of a program file: each is refused, named, and pointed at to the character."""

import pytest

from nanovm_core.loading import load_program
from tests.core.kit.desk import DESK, changed, check, check_one, error_of, place

END = 'steps]]\nname = "{}"'
NO_PATH = "no failure path: say where it leads when it fails"
NOTE = 'note = { type = "string", length_max = 80 }'
CENTS = 'amount_minor = { type = "integer", min = 1, max = 50_000 }'
NOWHERE = "no such step; name one, or 'completed'"


def test_names_of_agents_are_no_other_actors_and_at_most_64() -> None:
    check_one(
        changed('agent = "desk"', 'agent = "runtime"'), "agent", "others are called that", "PRG-002"
    )
    name = changed('name = "refund_desk"', 'name = "9_lives"').replace('agent = "desk"\n', "")
    check_one(name, 'name = "9_lives"', "is no agent's name", "PRG-002")
    tools = [f'\n[tools."t{n}"]\nagent = "a{n}"\n' for n in range(64)]
    assert load_program((DESK + "".join(tools[1:])).encode()).tools["t63"].agent == "a63"
    check_one(DESK + "".join(tools), 'agent = "a63"', "has 65 agents", "PRG-002")


@pytest.mark.parametrize(("old", "new", "at", "said"), [
    # the head and the limits
    ('v = "nanovm-program/1"', 'v = "nanovm-program/2"', "v =", "expected v = 'nanovm-program/1'"),
    ("[limits]", "colour = 1\n[limits]", "colour", "program: unknown key 'colour'; known are"),
    ('name = "refund_desk"', "name = 7", "name = 7", "name must be a text of 1 to 1024 char"),
    ('name = "refund_desk"', 'name = "a b"', "name = ", "name = 'a b' is no name"),
    ('agent = "desk"', 'agent = "Desk"', "agent", "is no name"),
    ('agent = "desk"', 'agent = "dеsk"', "agent", "is no name"),  # its e is Cyrillic
    ('"policies/desk.toml"', '"policies/../../desk.toml"', "policy", "a path without '..'"),
    ('"policies/desk.toml"', '"/desk.toml"', "policy", "is no name"),
    ("proposals_max = 2", "proposals_max = 0", "proposals_max", "an integer of 1 to 1000"),
    ("proposals_max = 2", "proposals_max = true", "proposals_max", "an integer of 1 to 1000"),
    ("[limits]", "[limits]\nwarrant_ttl_ms = 86_400_001", "warrant", "an integer of 1 to 8640"),
    ("[limits]", "[limits]\nwall_ms_max = 2_592_000_001", "wall_ms", "an integer of 1 to 2592"),
    ("[limits]", "[limits]\ncalls_max = 0", "calls_max", "an integer of 1 to 9007199254740991"),
    ("money_minor_max = 50_000", "money_minor_max = -1", "money_minor_max", "an integer of 0 to"),
    # slots, tools and grants
    ('order = { type = "ref" }', 'order = { type = "text" }', 'type = "text"', "slot order: type"),
    ('order = { type = "ref" }', 'order = "ref"', "order =", "order must be a table"),
    ('model = "clear"', 'model = "open"', "model", "model = 'open' is none of hidden, clear"),
    ("answer = {", "Answer = {", "Answer", "'Answer' is no name: it must match [a-z]"),
    ("note = {", '"no te" = {', '"no te"', "'no te' is no name"),
    ('[tools."model.ask"]', '[tools."modеl.ask"]', '"modеl.ask"', "is no name"),  # Cyrillic
    ("min = 1, max = 50_000 }\nc", "min = 1.0 }\nc", "min = 1.0", "min must be an integer of -"),
    ("min = 1, max = 50_000 }\nc", "most = 9 }\nc", "most", "'most'; known are default, max"),
    ("min = 1, max = 50_000 }\nc", "length_max = 9 }\nc", "length_max", "unknown key 'length_max'"),
    ('urgent = { type = "boolean"', 'urgent = { type = "boolean", min = 1', "min = 1 }\nreas",
     "unkn"),
    ('payee = { type = "ref"', 'payee = { type = "ref", one_of = ["a"]', 'one_of = ["a"]',
     "unknown key"),
    ("length_max = 80", "length_max = 0", "length_max = 0", "an integer of 1 to 65536"),
    ('one_of = ["EUR", "USD"]', "one_of = []", "one_of", "must list texts, or integers"),
    ('one_of = ["EUR", "USD"]', 'one_of = ["EUR", 1]', "one_of", "must list texts, or integers"),
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
    # what may be left out, decimals, lists, upstreams
    (NOTE, 'note = { type = "string", default = "x" }', "default", "add optional = true"),
    (NOTE, 'note = { type = "string", optional = true, default = 1.5 }', "default", "must be a te"),
    (NOTE, 'note = { type = "decimal" }', "note = { type", "either a currency or digits"),
    (NOTE, 'note = { type = "decimal", currency = "EUR", digits = 2 }', "digits", "either a curr"),
    (NOTE, 'note = { type = "decimal", digits = 7 }', "digits", "an integer of 0 to 6"),
    (NOTE, 'note = { type = "list" }', "note = { type", "say of what: of = "),
    (NOTE, 'note = { type = "list", of = "ref" }', 'of = "ref"', "'ref' is none of string"),
    (NOTE, 'note = { type = "list", of = "string", min = 7 }', "min = 7", "unknown key 'min'"),
    (NOTE, 'note = { type = "list", of = "string", items_max = 0 }', "items_max", "1 to 1024"),
    (NOTE, 'note = { type = "string", items_max = 5 }', "items_max", "unknown key 'items_max'"),
    ('order = { type = "ref" }', 'order = { type = "list" }', 'type = "list"', "is none of ref"),
    ("[tools.\"model.ask\"]", f"[tools.\"model.ask\"]\npinned = \"{'0' * 64}\"", "pinned",
     "name that with at = "),
    ("[tools.\"model.ask\"]", '[tools."model.ask"]\nat = "bank"\npinned = "00"', "pinned",
     "it must match [0-9a-f]{64}"),
    ("[tools.\"model.ask\"]", '[tools."model.ask"]\nat = "The bank"', "at =", "is no name"),
])  # fmt: skip
def test_a_key_that_does_not_fit(old: str, new: str, at: str, said: str) -> None:
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


@pytest.mark.parametrize(("old", "new", "at", "said"), [
    # a step against the rest
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
    # a tool or a grant against the rest
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
    ("[[rules]]", '[[grants]]\ntool = "wire"\n\n[[rules]]', 'tool = "wire"',
     "the grant of wire: there is no such tool"),
    ("urgent = { one_of = [false] }",
     "urgent = { one_of = [false] }\nhasty = { one_of = [false] }", "hasty",
     "'hasty' is no argument; it has"),
    # an argument of a granted tool is closed by default
    ('free = ["note"]\n', "", "grants]]", "says where 'note' must come from: make it critical"),
    ("urgent = { one_of = [false] }\n", "", "grants]]", "says where 'urgent' must come from"),
    (', equals_slot = "answer"', "", "grants]]", "nothing says where 'reason' must come from"),
    ('payee = "customer", ', "", "grants]]", "nothing says where 'payee' must come from"),
    # no default where money or a model is
    ("proposals_max = 2\n", "", "limits]", "limits missing: proposals_max has no safe"),
    ("money_minor_max = 50_000\n", "", "limits]", "limits missing: money_minor_max has no safe"),
])  # fmt: skip
def test_a_contradiction_is_the_one_fault(old: str, new: str, at: str, said: str) -> None:
    check(changed(old, new), at, said)


@pytest.mark.parametrize(("old", "new", "inside", "said"), [
    ("$run.calls > 3", "$run.calls > '3'", "> '3'", "step judge: this guard does not fit: "),
    ("not $slots.is_vip", "not $slots.vip", "$slots.vip", "step sort: this guard does not fit: "),
    ("$slots.total_minor <= 0", "$slots.total_minor", "$slots.total_minor", "does not fit: "),
    ("$run.calls > 3", "$proposal.x > 3", "$proposal.x", "this guard does not fit: "),
    ('when = "$slots.is_vip"', 'when = "$fact.large"', "$fact.large", "fact large: its condition"),
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


def test_a_tool_is_granted_once() -> None:
    twice = '[[grants]]\ntool = "refunds.pay"\n\n[[rules]]'
    error = error_of(changed("[[rules]]", twice))
    assert (error.code, len(error.faults)) == ("PRG-002", 1)
    assert "the grant of refunds.pay: it is there twice: make one of both" in error.text


@pytest.mark.parametrize("limit", ['equals_slot = "answer"', 'one_of = ["a"]'])
def test_a_grant_closes_an_argument_by_a_slot_or_a_set(limit: str) -> None:
    load_program(changed('prefix = "r", equals_slot = "answer"', limit).encode())


def test_limits_are_said_somewhere() -> None:
    gone = changed("[limits]\nproposals_max = 2\nmoney_minor_max = 50_000\n", "")
    error = error_of(gone)
    assert (error.line, error.column, error.code) == (1, 1, "PRG-002")
    assert "limits missing: say what one run may use, in [limits]" in error.text


@pytest.mark.parametrize(("old", "new", "at", "said"), [
    (CENTS, CENTS.replace("}", ", optional = true }"), "amount_minor = \"total_minor\"",
     "critical amount_minor may be left out, and then equals nothing: give it a default"),
    (CENTS, CENTS.replace("}", ", optional = true }"), "amount = \"amount_minor\"",
     "money: amount = 'amount_minor' may be left out: give it a default"),
    (CENTS, CENTS.replace("}", ", optional = true, default = 0 }"), "default = 0",
     "default 0: The argument 'amount_minor' must be in"),
    (CENTS, CENTS.replace('"integer"', '"decimal", currency = "EUR"'), 'amount = "amount_minor"',
     "is in EUR: let it and currency_is be one currency"),
    (CENTS, 'amount_minor = { type = "list", of = "integer" }', 'amount_minor = "total_minor"',
     "amount_minor is of type list, the slot 'total_minor' of type integer"),
    ('reason = { type = "string" }', 'reason = { type = "list", of = "integer" }', 'prefix = "r"',
     "reason is of type integer; prefix bounds a string"),
])  # fmt: skip
def test_what_may_be_left_out_and_what_is_no_scalar(old: str, new: str, at: str, said: str) -> None:
    check_one(changed(old, new), at, said)


@pytest.mark.parametrize(("kind", "said"), [
    ('type = "integer", optional = true', "which may be left out: give it a default"),
    ('type = "list", of = "integer"', "which is a list, which no condition reads"),
])  # fmt: skip
def test_a_rule_reads_nothing_that_may_be_absent_and_no_list(kind: str, said: str) -> None:
    text = changed(
        NOTE, f"note = {{ {kind} }}", "$proposal.amount_minor > 50000", "$proposal.note > 1"
    )
    check_one(text, 'when = "$proposal.note', f"it reads note of refunds.pay, {said}", "PRG-004")


def test_optional_arguments_need_no_slot_and_upstreams_are_carried() -> None:
    text = changed('args = { text = "answer" }', "", "[tools.\"model.ask\"]",
        f"[tools.\"model.ask\"]\nat = \"bank\"\npinned = \"{'0' * 64}\"",
        'text = { type = "string" }', 'text = { type = "string", optional = true }')  # fmt: skip
    found = load_program(text.encode()).tools
    assert (found["model.ask"].at, found["model.ask"].pinned) == ("bank", "0" * 64)
    assert (found["refunds.tell"].at, found["refunds.tell"].args["text"].may_lack) == ("", True)
