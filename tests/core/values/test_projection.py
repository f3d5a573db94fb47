"""Projections: closed by default, placeholders for what is personal, and masked text."""

from hypothesis import given, settings
from hypothesis import strategies as st

from nanovm_core.core.canonical import Json
from nanovm_core.core.messages import Args, Scalar
from nanovm_core.core.projection import (
    MODES,
    DeterministicSanitizer,
    masked,
)
from tests.core.kit.builders import ref

SLOTS: dict[str, Scalar] = {"amount": 5, "seller": ref(1), "notes": ref(2), "iban": ref(3)}
OPENED = {"seller": "Acme Tools", "notes": "Pay Acme Tools at DE89 3704", "iban": "DE89 3704"}
SHOWN = {"amount": "clear", "seller": "placeholder", "notes": "text", "iban": "hidden"}
SANITIZER = DeterministicSanitizer(modes=SHOWN)


def test_slot_without_a_mode_is_hidden() -> None:
    assert DeterministicSanitizer(modes={}).for_model(SLOTS, OPENED) == {}
    assert DeterministicSanitizer(modes={"amount": "unheard of"}).for_model(SLOTS, OPENED) == {}


def test_each_mode_shows_what_it_says() -> None:
    assert SANITIZER.for_model(SLOTS, OPENED) == {
        "amount": 5,
        "seller": "{{seller}}",
        "notes": "Pay {{seller}} at {{iban}}",
    }


def test_ref_is_never_shown_as_a_clear_value() -> None:
    assert DeterministicSanitizer(modes={"seller": "clear"}).for_model(SLOTS, OPENED) == {}


def test_text_that_cannot_be_opened_is_not_shown() -> None:
    assert DeterministicSanitizer(modes={"notes": "text"}).for_model(SLOTS, {}) == {}


def test_trace_sees_refs_and_clear_facts() -> None:
    assert SANITIZER.for_trace(SLOTS) == SLOTS
    assert list(SANITIZER.for_trace(SLOTS)) == sorted(SLOTS)


def filled(of: DeterministicSanitizer, args: dict[str, Json], slots: Args) -> dict[str, Json]:
    return {name: of.filled(value, slots) for name, value in args.items()}


def test_argument_names_only_what_the_model_was_shown() -> None:
    args: dict[str, Json] = {
        "a": "{{amount}}",
        "s": "{{seller}}",
        "n": "{{notes}}",
        "i": "{{iban}}",
        "x": "{{absent}}",
        "t": "to {{seller}}",
        "d": ["{{seller}}"],
    }
    assert filled(SANITIZER, args, SLOTS) == {**args, "a": 5, "s": ref(1), "n": ref(2)}
    for other in ({}, {"seller": "unheard of"}):
        assert filled(DeterministicSanitizer(modes=other), args, SLOTS) == args
    odd = DeterministicSanitizer(modes={"Seller": "placeholder"})  # no argument can name it
    assert odd.filled("{{Seller}}", {"Seller": 5}) == "{{Seller}}"


@given(
    st.dictionaries(st.sampled_from(sorted(SLOTS)), st.sampled_from(MODES)),
    st.dictionaries(st.sampled_from("pqr"), st.integers() | st.booleans() | st.text()),
)
@settings(derandomize=True)
def test_new_slot_changes_nothing_that_the_model_sees(
    modes: dict[str, str], new: dict[str, Scalar]
) -> None:
    of = DeterministicSanitizer(modes=modes)
    assert of.for_model({**SLOTS, **new}, OPENED) == of.for_model(SLOTS, OPENED)
    args: dict[str, Json] = {name: "{{" + name + "}}" for name in new}
    assert filled(of, args, {**SLOTS, **new}) == args


def test_longer_value_is_masked_first() -> None:
    opened = {"seller": "Acme", "payee": "Acme Tools Ltd"}
    assert masked("Acme Tools Ltd and Acme", opened) == "{{payee}} and {{seller}}"


def test_a_value_is_masked_however_it_is_set() -> None:
    opened = {"iban": "DE02120300000000202051", "seller_address": "Main Street 5, 12345 Town"}
    text = "Pay DE02 1203 0000 0000 2020 51 (de02-1) to\nMain Street 5\n12345  TOWN."
    assert masked(text, opened) == "Pay {{iban}} (de02-1) to\n{{seller_address}}."


def test_placeholder_is_not_masked_again() -> None:
    opened = {"seller_address": "Main Street 5", "buyer": "seller"}
    assert masked("Main Street 5", opened) == "{{seller_address}}"


def test_value_is_plain_text_and_no_pattern() -> None:
    assert masked("a+b.c (x)", {"s": "b.c (x)"}) == "a+{{s}}"
    assert masked("bxc", {"s": ".*.*"}) == "bxc"


def test_short_values_would_mask_half_the_text_and_stay() -> None:
    assert masked("DE 12 abc abcd", {"a": "DE", "b": "abc", "c": "abcd"}) == "DE 12 abc {{c}}"


@given(st.dictionaries(st.sampled_from("abcdef"), st.text(min_size=4, max_size=9)), st.text())
@settings(derandomize=True)
def test_masking_leaves_no_value_where_it_stood(opened: dict[str, str], text: str) -> None:
    for value in opened.values():
        left = masked(f"{text}\x00{value}\x00{text}", opened)
        assert f"\x00{value}\x00" not in left
