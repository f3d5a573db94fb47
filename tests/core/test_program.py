"""The program: what loads, what does not and why, and that nobody can change it afterwards."""

from dataclasses import FrozenInstanceError, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nanovm_core.errors import ProgramError
from nanovm_core.fsm import capabilities_hash
from nanovm_core.program import SOURCE_BYTES_MAX, STEPS_MAX, faults, load_program
from tests.core.builders import SOURCE, program

TEXT = SOURCE.decode()


def fault(old: str, new: str, count: int = 1) -> str:
    """What the loader says of the shipped program with one thing changed."""
    assert TEXT.count(old) >= 1
    with pytest.raises(ProgramError) as caught:
        load_program(TEXT.replace(old, new, count).encode())
    assert caught.value.code in ("PRG-001", "PRG-002")
    return caught.value.text


def test_shipped_program_loads_with_its_seven_steps_in_order() -> None:
    loaded = program()
    at, order = loaded.first, []
    while at != "completed":
        order.append(at)
        at = loaded.steps[at].next
    assert order == ["receive", "extract", "vault", "propose", "authorize", "charge", "seal"]
    assert set(loaded.grants) == {"stripe.create_payment_intent", "notify.send_email"}
    assert loaded.model_step.accepts == ("stripe.create_payment_intent",)
    assert list(faults(loaded)) == []


def test_program_without_a_policy_denies_everything() -> None:
    assert load_program(SOURCE).policy.rules == ()


@pytest.mark.parametrize(
    ("old", "new", "named"),
    [
        ('next = "extract"', 'next = "nowhere"', "'receive' leads to the unknown step 'nowhere'"),
        ('first = "receive"', 'first = "begin"', "'first' leads to the unknown step 'begin'"),
        ('next = "completed"', 'next = "receive"', "cycle at 'receive'"),
        ('next = "extract"', 'next = "vault"', "'extract' is unreachable"),
        ('tool = "vault.split"', 'tool = "vault.spilt"', "step vault: unknown tool 'vault.spilt'"),
        ('fills = ["size_bytes"]', 'fills = ["size"]', "step receive: unknown slot 'size'"),
        ('drops = ["staging"]', 'drops = ["stage"]', "step vault: unknown slot 'stage'"),
        ('payee = "payee"', 'payee = "payer"', "critical payee = 'payer'"),
        ('payee = "payee"', 'payer = "payee"', "critical payer = 'payee'"),
        ('equals_slot = "advice_to"', 'equals_slot = "x"', "unknown slot 'x'"),
        ('kind = "model"', 'kind = "oracle"', "exactly one model step"),
        ('kind = "pure"', 'kind = "impure"', "goes to a pure step first"),
        ('call = "authorized"', 'call = "authorised"', "step authorize"),
        (
            'accepts = ["stripe.create_payment_intent"]',
            'accepts = ["wire_transfer"]',
            "step propose: accepts 'wire_transfer'",
        ),
        ('tool = "notify.send_email"\nwhere', 'tool = "notify.sms"\nwhere', "'notify.sms'"),
        ("where = { amount_minor = { min", "where = { amount = { min", "unknown argument"),
    ],
)
def test_contradiction_is_named_with_its_place(old: str, new: str, named: str) -> None:
    assert named in fault(old, new)


@pytest.mark.parametrize(
    ("old", "new", "named"),
    [
        ('v = "nanovm-program/1"', 'v = "nanovm-program/2"', "expected v"),
        ('name = "invoice_payment"', "name = 7", "program: name"),
        ("[limits]", "colour = 1\n[limits]", "program: unknown keys ['colour']"),
        ("[limits]", "[limits]\nmodels = 2", "limits: unknown keys ['models']"),
        ("proposals_max = 3", "proposals_max = 0", "limits: proposals_max"),
        ("proposals_max = 3", "proposals_max = true", "limits: proposals_max"),
        ("warrant_ttl_ms = 900_000", 'warrant_ttl_ms = "1"', "limits: warrant_ttl_ms"),
        ('document = { type = "ref" }', 'document = { type = "text" }', "slot document"),
        ('document = { type = "ref" }', 'document = "ref"', "document must be a table"),
        ('document = { type = "ref" }', 'document = { type = "ref", x = 1 }', "slot document"),
        ("min = 1, max = 999", 'min = "1", max = 999', "argument amount_minor: min"),
        ("min = 1, max = 999", "min = 1.0, max = 999", "argument amount_minor: min"),
        ("min = 1, max = 999", "min = 1, most = 999", "argument amount_minor: most"),
        ("{ min = 1 } }", '{ min = "1" } }', "stripe.create_payment_intent: amount_minor: min"),
        ("{ min = 1 } }", "{ one_of = [1.5] } }", "stripe.create_payment_intent: amount_minor"),
        ("{ min = 1 } }", "{ min = 9007199254740993 } }", "stripe.create_payment_intent"),
        ("attempts_max = 3", "attempts_max = 0", "step charge: attempts_max"),
        ("attempts_max = 3", "attempts = 3", "step charge: unknown keys ['attempts']"),
        ('fills = ["size_bytes"]', 'fills = "size_bytes"', "step receive: fills"),
        ('kind = "pure"', "kind = 3", "step authorize: kind"),
    ],
)
def test_unreadable_part_is_named_with_its_place(old: str, new: str, named: str) -> None:
    assert named in fault(old, new)


@pytest.mark.parametrize("before", ["vault", "propose"])
def test_call_that_something_else_than_a_pure_step_leads_to_is_a_fault(before: str) -> None:
    loaded = program()
    skipping = replace(loaded.steps[before], next="charge")
    found = list(faults(replace(loaded, steps={**loaded.steps, before: skipping})))
    assert any("step charge: call = 'authorized' takes" in fault for fault in found)


def test_grant_or_step_given_twice_does_not_load() -> None:
    grant = '[[grants]]\ntool = "notify.send_email"\n'
    assert "grant 'notify.send_email' is there twice" in fault(grant, grant + "\n" + grant)
    assert "step 'extract' is there twice" in fault('name = "receive"', 'name = "extract"')


def test_number_of_steps_is_limited() -> None:
    step = '\n[[steps]]\nname = "s{}"\nkind = "effect"\ntool = "vault.split"\nnext = "completed"\n'
    many = TEXT + "".join(step.format(n) for n in range(STEPS_MAX - 7))
    with pytest.raises(ProgramError, match="unreachable"):
        load_program(many.encode())
    with pytest.raises(ProgramError, match=f"over {STEPS_MAX}"):
        load_program((many + step.format("x")).encode())


@pytest.mark.parametrize(
    "source",
    [b"", b"\xff\xfe", b"v = ", b"[[[", b"x = " + b"[" * 5000, b"x = " + b"1" * 5000, b"v = 1"],
)
def test_bytes_that_are_no_program_are_refused_in_one_family(source: bytes) -> None:
    with pytest.raises(ProgramError) as caught:
        load_program(source)
    assert caught.value.code == "PRG-001"


def test_size_is_limited_at_the_byte() -> None:
    padding = b"#" * (SOURCE_BYTES_MAX - len(SOURCE))
    assert load_program(SOURCE + padding).name == "invoice_payment"
    with pytest.raises(ProgramError, match="over 262144 bytes"):
        load_program(SOURCE + padding + b"#")


def test_a_program_cannot_be_changed_in_memory() -> None:
    loaded = program()
    with pytest.raises(FrozenInstanceError):
        loaded.first = "charge"  # type: ignore[misc]
    with pytest.raises(TypeError):
        loaded.steps["propose"] = loaded.steps["seal"]  # type: ignore[index]
    with pytest.raises(TypeError):
        loaded.grants["wire_transfer"] = loaded.grants["notify.send_email"]  # type: ignore[index]
    with pytest.raises(FrozenInstanceError):
        loaded.steps["charge"].next = "completed"  # type: ignore[misc]
    with pytest.raises(TypeError):
        loaded.tools["notify.send_email"].critical["to"] = "payee"  # type: ignore[index]
    with pytest.raises(FrozenInstanceError):
        loaded.policy.rules[0].approvable = True  # type: ignore[misc]
    with pytest.raises(AttributeError):
        loaded.model_step.accepts.append("notify.send_email")  # type: ignore[attr-defined]


@given(st.integers(0, len(SOURCE) - 1), st.integers(1, 255))
def test_any_changed_byte_is_another_program_or_none(at: int, mask: int) -> None:
    changed = bytearray(SOURCE)
    changed[at] ^= mask
    try:
        other = load_program(bytes(changed))
    except ProgramError:
        return
    assert other.hash != load_program(SOURCE).hash


def test_capability_hash_names_every_constraint() -> None:
    loaded = program()
    grant = loaded.grants["notify.send_email"]
    loose = replace(loaded, grants={**loaded.grants, grant.tool: replace(grant, where={})})
    assert capabilities_hash(loose) != capabilities_hash(loaded)
