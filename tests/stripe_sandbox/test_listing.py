"""Lists: order, bounds, cursors and filters (docs.stripe.com/api/pagination)."""

from __future__ import annotations

import time
from typing import Any

import pytest
import stripe

from tests.stripe_sandbox.door import INTENTS, Door, created, paid, refusal

PAGE_DEFAULT = 10
PAGE_MAX = 100


def _filled(door: Door, count: int) -> list[str]:
    """Create ``count`` intents and return their ids, newest first, as a list must show them."""
    return [created(door)["id"] for _ in range(count)][::-1]


def _page(door: Door, **params: object) -> tuple[list[str], bool]:
    answer = door.get(INTENTS, params)
    assert answer.status == 200, answer.raw
    assert (answer.body["object"], answer.body["url"]) == ("list", INTENTS)
    return [intent["id"] for intent in answer.body["data"]], answer.body["has_more"]


def test_an_empty_account_has_an_empty_list(empty_door: Door) -> None:
    assert _page(empty_door) == ([], False)


def test_the_newest_comes_first_and_ten_by_default(empty_door: Door) -> None:
    ids = _filled(empty_door, PAGE_DEFAULT + 2)
    assert _page(empty_door) == (ids[:PAGE_DEFAULT], True)
    assert _page(empty_door, limit=12) == (ids, False)


def test_a_page_that_ends_with_the_last_object_has_no_more(empty_door: Door) -> None:
    ids = _filled(empty_door, 4)
    assert _page(empty_door, limit=4) == (ids, False)
    assert _page(empty_door, limit=3) == (ids[:3], True)
    assert _page(empty_door, limit=2, starting_after=ids[1]) == (ids[2:], False)


def test_a_limit_is_at_least_one_and_at_most_a_hundred(empty_door: Door) -> None:
    ids = _filled(empty_door, PAGE_MAX + 1)
    assert _page(empty_door, limit=1) == (ids[:1], True)
    assert _page(empty_door, limit=PAGE_MAX) == (ids[:PAGE_MAX], True)
    for limit in ("0", str(PAGE_MAX + 1), "-1", "ten", "1.5", ""):
        answer = empty_door.get(INTENTS, {"limit": limit})
        assert refusal(answer)[:2] == (400, "invalid_request_error"), limit
        assert answer.body["error"]["param"] == "limit"


def test_pages_forward_join_to_the_whole(empty_door: Door) -> None:
    ids = _filled(empty_door, 11)
    seen: list[str] = []
    more: dict[str, object] = {}
    while True:
        page, has_more = _page(empty_door, limit=3, **more)
        seen += page
        if not has_more:
            break
        more = {"starting_after": page[-1]}
    assert seen == ids


def test_pages_backward_show_what_stands_just_before(empty_door: Door) -> None:
    # ending_before fetches the previous page, in the same newest-first order
    ids = _filled(empty_door, 8)
    assert _page(empty_door, limit=3, ending_before=ids[6]) == (ids[3:6], True)
    assert _page(empty_door, limit=3, ending_before=ids[3]) == (ids[:3], False)
    assert _page(empty_door, limit=3, ending_before=ids[2]) == (ids[:2], False)
    assert _page(empty_door, limit=3, ending_before=ids[0]) == ([], False)
    assert _page(empty_door, limit=3, starting_after=ids[-1]) == ([], False)


def test_what_arrives_meanwhile_moves_no_page(empty_door: Door) -> None:
    ids = _filled(empty_door, 5)
    first, _ = _page(empty_door, limit=3)
    _filled(empty_door, 2)
    second, has_more = _page(empty_door, limit=3, starting_after=first[-1])
    assert (first + second, has_more) == (ids, False)


def test_a_change_does_not_reorder_the_list(empty_door: Door) -> None:
    ids = _filled(empty_door, 3)
    empty_door.post(f"{INTENTS}/{ids[-1]}", {"description": "touched"})
    empty_door.post(f"{INTENTS}/{ids[1]}/cancel")
    assert _page(empty_door) == (ids, False)


def test_two_cursors_at_once_are_refused(empty_door: Door) -> None:
    ids = _filled(empty_door, 2)
    answer = empty_door.get(INTENTS, {"starting_after": ids[0], "ending_before": ids[1]})
    assert refusal(answer)[:2] == (400, "invalid_request_error")


@pytest.mark.parametrize("cursor", ["starting_after", "ending_before"])
def test_an_unknown_cursor_is_refused(empty_door: Door, cursor: str) -> None:
    answer = empty_door.get(INTENTS, {cursor: "pi_unknown"})
    assert answer.status in {400, 404}
    assert refusal(answer)[1:] == ("invalid_request_error", "resource_missing", cursor)


def _two_seconds_apart(door: Door) -> tuple[Any, Any]:
    """Create two intents whose ``created`` differ: the server is asked until its second is over."""
    early = created(door)
    while time.time() < early["created"] + 1:
        door.get(f"{INTENTS}/{early['id']}")
    late = created(door)
    assert late["created"] > early["created"]
    return early, late


def test_created_filters_by_time(empty_door: Door) -> None:
    early, late = _two_seconds_apart(empty_door)
    both, first, second = [late["id"], early["id"]], early["created"], late["created"]
    cases: list[tuple[object, list[str]]] = [
        ({"gte": first}, both),
        ({"gt": first}, both[:1]),
        ({"gte": second}, both[:1]),
        ({"gt": second}, []),
        ({"lte": second}, both),
        ({"lt": second}, both[1:]),
        ({"lte": first}, both[1:]),
        ({"lt": first}, []),
        ({"gte": first, "lt": second}, both[1:]),
        ({"gt": second, "lt": first}, []),
        (first, both[1:]),
        (second, both[:1]),
    ]
    for condition, expected in cases:
        assert _page(empty_door, created=condition) == (expected, False), condition


def test_created_filters_before_it_pages(empty_door: Door) -> None:
    early, _ = _two_seconds_apart(empty_door)
    later = _filled(empty_door, 3)
    since = {"gt": early["created"]}
    page, has_more = _page(empty_door, limit=3, created=since)
    assert (page, has_more) == (later, True)
    rest, has_more = _page(empty_door, limit=3, created=since, starting_after=page[-1])
    assert (len(rest), has_more) == (1, False)
    assert early["id"] not in page + rest


@pytest.mark.parametrize("created_filter", ["soon", {"gte": "x"}, {"about": 5}, {"gt": "1.5"}])
def test_a_created_filter_takes_whole_seconds(door: Door, created_filter: object) -> None:
    answer = door.get(INTENTS, {"created": created_filter})
    assert refusal(answer)[:2] == (400, "invalid_request_error")
    assert answer.body["error"]["param"].startswith("created")


def test_created_is_the_time_of_creation(door: Door) -> None:
    earliest = int(time.time())
    assert earliest <= created(door)["created"] <= int(time.time())


def test_a_list_shows_objects_as_retrieve_does(empty_door: Door) -> None:
    intent = paid(empty_door, metadata={"run": "r-1"})
    assert empty_door.get(INTENTS).body["data"] == [intent]


def test_the_sdk_pages_by_itself(empty_door: Door, empty_sdk: stripe.StripeClient) -> None:
    ids = _filled(empty_door, 7)
    listed = empty_sdk.v1.payment_intents.list({"limit": 3})
    assert [intent.id for intent in listed.auto_paging_iter()] == ids
