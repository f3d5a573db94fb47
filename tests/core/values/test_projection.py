"""Projections: closed by default, placeholders for what is personal, and masked text."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nanovm_core.core.canonical import Json
from nanovm_core.core.messages import Scalar, Slots
from nanovm_core.core.projection import DeterministicSanitizer, masked
from tests.core.kit.builders import ref

SLOTS: dict[str, Scalar] = {"amount": 5, "seller": ref(1), "notes": ref(2), "iban": ref(3)}
OPENED = {"seller": "Acme Tools", "notes": "Pay Acme Tools at DE89 3704", "iban": "DE89 3704"}
SHOWN = {"amount": "clear", "seller": "placeholder", "notes": "text", "iban": "hidden"}
SANITIZER = DeterministicSanitizer(modes=SHOWN)


def test_each_mode_shows_what_it_says() -> None:
    assert SANITIZER.for_model(SLOTS, OPENED) == {
        "amount": 5,
        "seller": "{{seller}}",
        "notes": "Pay {{seller}} at {{iban}}",
    }


@pytest.mark.parametrize(
    ("modes", "opened"),
    [
        ({}, OPENED),
        ({"amount": "unheard of"}, OPENED),
        ({"seller": "clear"}, OPENED),  # a ref is never shown as a clear value
        ({"notes": "text"}, {}),  # nor a text that cannot be opened
    ],
)
def test_what_no_known_mode_shows_is_hidden(modes: dict[str, str], opened: dict[str, str]) -> None:
    assert DeterministicSanitizer(modes=modes).for_model(SLOTS, opened) == {}


def filled(of: DeterministicSanitizer, args: dict[str, Json], slots: Slots) -> dict[str, object]:
    return {name: of.filled(value, slots) for name, value in args.items()}


def test_argument_names_only_what_the_model_was_shown() -> None:
    args: dict[str, Json] = {"a": "{{amount}}", "s": "{{seller}}", "n": "{{notes}}"}
    args |= {"i": "{{iban}}", "x": "{{absent}}", "t": "to {{seller}}", "d": ["{{seller}}"]}
    args |= {"w": "{{ seller }}", "l": "{{seller}}\n", "o": 7}
    assert filled(SANITIZER, args, SLOTS) == {**args, "a": 5, "s": ref(1), "n": ref(2)}
    for other in ({}, {"seller": "unheard of"}):
        assert filled(DeterministicSanitizer(modes=other), args, SLOTS) == args
    odd = DeterministicSanitizer(modes={"Seller": "placeholder"})  # no argument can name it
    assert odd.filled("{{Seller}}", {"Seller": 5}) == "{{Seller}}"


IBAN = {"iban": "DE02120300000000202051", "seller_address": "Main Street 5, 12345 Town"}
SPACED = "Pay DE02 1203 0000 0000 2020 51 (de02-1) to\nMain Street 5\n12345  TOWN."


@pytest.mark.parametrize(
    ("text", "opened", "shown"),
    [
        ("Acme Tools and Acme", {"a": "Acme", "b": "Acme Tools"}, "{{b}} and {{a}}"),
        (SPACED, IBAN, "Pay {{iban}} (de02-1) to\n{{seller_address}}."),
        ("Street 5", {"seller_at": "Street 5", "buyer": "seller"}, "{{seller_at}}"),  # once
        ("a+b.c (x)", {"s": "b.c (x)"}, "a+{{s}}"),  # it is plain text and no pattern
        ("bxc", {"s": ".*.*"}, "bxc"),
        ("12ab", {"a": "1 2 , a b"}, "{{a}}"),  # longer than the whole text
        ("DE 12 abc abcd", {"a": "DE", "b": "abc", "c": "abcd"}, "DE 12 abc {{c}}"),
    ],
)
def test_values_are_masked_as_they_are_set(text: str, opened: dict[str, str], shown: str) -> None:
    assert masked(text, opened) == shown


@given(st.dictionaries(st.sampled_from("abcdef"), st.text(min_size=4, max_size=9)), st.text())
@settings(derandomize=True, max_examples=40)
def test_masking_leaves_no_value_where_it_stood(opened: dict[str, str], text: str) -> None:
    for value in opened.values():
        left = masked(f"{text}\x00{value}\x00{text}", opened)
        assert f"\x00{value}\x00" not in left
