"""Metadata: its limits at n and n + 1, merging and unsetting (docs.stripe.com/metadata)."""

from __future__ import annotations

from typing import Any

import pytest
import stripe

from tests.stripe_sandbox.door import INTENTS, Door, created, draft, refusal
from tests.stripe_sandbox.sdk import pay

KEYS_MAX = 50
NAME_CHARACTERS_MAX = 40
VALUE_CHARACTERS_MAX = 500

AT_THE_LIMIT = [
    {f"key{number}": "v" for number in range(KEYS_MAX)},
    {"k" * NAME_CHARACTERS_MAX: "v"},
    {"é" * NAME_CHARACTERS_MAX: "v"},  # characters, not bytes
    {"k": "v" * VALUE_CHARACTERS_MAX},
    {"k": "ü" * VALUE_CHARACTERS_MAX},
    {"k": "😀" * VALUE_CHARACTERS_MAX},
]
OVER_THE_LIMIT = [
    {f"key{number}": "v" for number in range(KEYS_MAX + 1)},
    {"k" * (NAME_CHARACTERS_MAX + 1): "v"},
    {"k": "v" * (VALUE_CHARACTERS_MAX + 1)},
]


@pytest.mark.parametrize("metadata", AT_THE_LIMIT)
def test_metadata_at_the_limit_is_kept(door: Door, metadata: dict[str, str]) -> None:
    intent = created(door, metadata=metadata)
    assert intent["metadata"] == metadata
    assert door.get(f"{INTENTS}/{intent['id']}").body["metadata"] == metadata


@pytest.mark.parametrize("metadata", OVER_THE_LIMIT)
def test_metadata_over_the_limit_is_refused(empty_door: Door, metadata: dict[str, str]) -> None:
    answer = empty_door.post(INTENTS, draft(metadata=metadata))
    assert refusal(answer)[:2] == (400, "invalid_request_error")
    assert (answer.body["error"].get("param") or "metadata").startswith("metadata")
    assert empty_door.ids() == []


@pytest.mark.parametrize("metadata", OVER_THE_LIMIT)
def test_an_update_over_the_limit_changes_nothing(door: Door, metadata: dict[str, str]) -> None:
    intent = created(door, metadata={"kept": "yes"})
    answer = door.post(f"{INTENTS}/{intent['id']}", {"metadata": metadata})
    assert refusal(answer)[:2] == (400, "invalid_request_error")
    assert door.get(f"{INTENTS}/{intent['id']}").body == intent


def test_the_limit_counts_what_an_update_adds(door: Door) -> None:
    full = AT_THE_LIMIT[0]
    intent = created(door, metadata=full)
    answer = door.post(f"{INTENTS}/{intent['id']}", {"metadata": {"one_more": "v"}})
    assert refusal(answer)[:2] == (400, "invalid_request_error")
    assert door.get(f"{INTENTS}/{intent['id']}").body["metadata"] == full


@pytest.mark.parametrize(
    ("update", "left"),
    [
        ({"b": "2"}, {"a": "1", "b": "2"}),  # merged
        ({"a": "9"}, {"a": "9"}),  # replaced
        ({"a": ""}, {}),  # an empty value unsets
        ({"a": "", "b": "2"}, {"b": "2"}),
        ("", {}),  # an empty parameter unsets all
    ],
)
def test_an_update_merges_and_unsets(door: Door, update: Any, left: dict[str, str]) -> None:
    intent = created(door, metadata={"a": "1"})
    answer = door.post(f"{INTENTS}/{intent['id']}", {"metadata": update})
    assert (answer.status, answer.body["metadata"]) == (200, left)


def test_a_name_has_no_square_brackets(empty_door: Door) -> None:
    answer = empty_door.post(INTENTS, draft(**{"metadata[a[b]]": "v"}))
    assert refusal(answer)[:2] == (400, "invalid_request_error")
    assert empty_door.ids() == []


def test_without_metadata_there_is_an_empty_object(door: Door) -> None:
    assert created(door)["metadata"] == {}


def test_metadata_of_a_paid_intent_can_still_change(sdk: stripe.StripeClient) -> None:
    intent = pay(sdk, metadata={"run": "r-1"})
    changed = sdk.v1.payment_intents.update(intent.id, {"metadata": {"note": "späť & =+%"}})
    assert changed.metadata.to_dict() == {"run": "r-1", "note": "späť & =+%"}
    assert changed.status == "succeeded"
