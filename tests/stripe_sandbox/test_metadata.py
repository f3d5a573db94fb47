"""Metadata: its limits at n and n + 1, merging and unsetting (docs.stripe.com/metadata)."""

from __future__ import annotations

from typing import Any

import pytest
import stripe

from tests.stripe_sandbox.door import INTENTS, Door, created, draft, refusal
from tests.stripe_sandbox.sdk import pay

KEYS_MAX, NAME_CHARACTERS_MAX, VALUE_CHARACTERS_MAX = 50, 40, 500
FULL = {f"key{number}": "v" for number in range(KEYS_MAX)}
AT_THE_LIMIT = {
    "keys": FULL,
    "name": {"é" * NAME_CHARACTERS_MAX: "v"},  # characters, not bytes
    "value": {"k": "😀" * VALUE_CHARACTERS_MAX},
}
OVER_THE_LIMIT = {
    "keys": {**FULL, "one_more": "v"},
    "name": {"k" * (NAME_CHARACTERS_MAX + 1): "v"},
    "value": {"k": "v" * (VALUE_CHARACTERS_MAX + 1)},
}


@pytest.mark.parametrize("what", AT_THE_LIMIT)
def test_metadata_is_kept_at_the_limit_and_refused_over_it(empty_door: Door, what: str) -> None:
    metadata, over = AT_THE_LIMIT[what], OVER_THE_LIMIT[what]
    intent = created(empty_door, metadata=metadata)
    path = f"{INTENTS}/{intent['id']}"
    assert intent["metadata"] == metadata
    refused = [
        empty_door.post(INTENTS, draft(metadata=over)),
        empty_door.post(path, {"metadata": over}),
    ]
    for answer in refused:
        assert refusal(answer)[:2] == (400, "invalid_request_error")
        assert (answer.body["error"].get("param") or "metadata").startswith("metadata")
    assert empty_door.ids() == [intent["id"]]
    assert empty_door.get(path).body == intent


def test_the_limit_counts_what_an_update_adds(door: Door) -> None:
    intent = created(door, metadata=FULL)
    answer = door.post(f"{INTENTS}/{intent['id']}", {"metadata": {"one_more": "v"}})
    assert refusal(answer)[:2] == (400, "invalid_request_error")
    assert door.get(f"{INTENTS}/{intent['id']}").body["metadata"] == FULL


@pytest.mark.parametrize(
    ("update", "left"),
    [
        ({"b": "2"}, {"a": "1", "b": "2"}),  # merged
        ({"a": "9"}, {"a": "9"}),  # replaced
        ({"a": "", "b": "2"}, {"b": "2"}),  # an empty value unsets
        ("", {}),  # an empty parameter unsets all
    ],
)
def test_an_update_merges_and_unsets(door: Door, update: Any, left: dict[str, str]) -> None:
    intent = created(door, metadata={"a": "1"})
    answer = door.post(f"{INTENTS}/{intent['id']}", {"metadata": update})
    assert (answer.status, answer.body["metadata"]) == (200, left)


def test_a_name_has_no_square_brackets_and_without_metadata_there_is_an_empty_object(
    empty_door: Door,
) -> None:
    answer = empty_door.post(INTENTS, draft(**{"metadata[a[b]]": "v"}))
    assert refusal(answer)[:2] == (400, "invalid_request_error")
    assert empty_door.ids() == []
    assert created(empty_door)["metadata"] == {}


def test_metadata_of_a_paid_intent_can_still_change(sdk: stripe.StripeClient) -> None:
    intent = pay(sdk, metadata={"run": "r-1"})
    changed = sdk.v1.payment_intents.update(intent.id, {"metadata": {"note": "späť & =+%"}})
    assert changed.metadata.to_dict() == {"run": "r-1", "note": "späť & =+%"}
    assert changed.status == "succeeded"
