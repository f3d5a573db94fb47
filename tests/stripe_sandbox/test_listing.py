"""Lists: order, bounds, cursors and filters (docs.stripe.com/api/pagination)."""

import time

import stripe

from tests.stripe_sandbox.door import INTENTS, Door, created, paid, refusal

PAGE_DEFAULT, PAGE_MAX = 10, 100


def _filled(door: Door, count: int) -> list[str]:
    """Create ``count`` intents and return their ids, newest first, as a list must show them."""
    return [created(door)["id"] for _ in range(count)][::-1]


def _page(door: Door, **params: object) -> tuple[list[str], bool]:
    answer = door.get(INTENTS, params)
    assert answer.status == 200, answer.raw
    assert (answer.body["object"], answer.body["url"]) == ("list", INTENTS)
    return [intent["id"] for intent in answer.body["data"]], answer.body["has_more"]


def test_a_page_is_newest_first_and_has_one_to_a_hundred_objects_and_ten_by_default(
    empty_door: Door,
) -> None:
    assert _page(empty_door) == ([], False)
    ids = _filled(empty_door, PAGE_MAX + 1)
    assert _page(empty_door) == (ids[:PAGE_DEFAULT], True)
    assert _page(empty_door, limit=1) == (ids[:1], True)
    assert _page(empty_door, limit=PAGE_MAX) == (ids[:PAGE_MAX], True)


def test_pages_join_to_the_whole_in_both_directions(
    empty_door: Door, sdk: stripe.StripeClient
) -> None:
    ids = _filled(empty_door, 8)
    assert _page(empty_door, limit=8) == (ids, False)
    assert _page(empty_door, limit=7) == (ids[:7], True)
    assert _page(empty_door, limit=2, starting_after=ids[5]) == (ids[6:], False)
    assert _page(empty_door, limit=3, starting_after=ids[-1]) == ([], False)
    # ending_before fetches the previous page, in the same newest-first order
    assert _page(empty_door, limit=3, ending_before=ids[6]) == (ids[3:6], True)
    assert _page(empty_door, limit=3, ending_before=ids[3]) == (ids[:3], False)
    assert _page(empty_door, limit=3, ending_before=ids[2]) == (ids[:2], False)
    assert _page(empty_door, limit=3, ending_before=ids[0]) == ([], False)
    listed = sdk.v1.payment_intents.list({"limit": 3})
    assert [intent.id for intent in listed.auto_paging_iter()] == ids


def test_two_cursors_at_once_and_unknown_ones_are_refused(empty_door: Door) -> None:
    ids = _filled(empty_door, 2)
    both = {"starting_after": ids[0], "ending_before": ids[1]}
    assert refusal(empty_door.get(INTENTS, both))[:2] == (400, "invalid_request_error")
    for cursor in both:
        answer = empty_door.get(INTENTS, {cursor: "pi_unknown"})
        assert answer.status in {400, 404}
        assert refusal(answer)[1:] == ("invalid_request_error", "resource_missing", cursor)


def test_created_filters_by_time_before_it_pages(empty_door: Door) -> None:
    earliest = int(time.time())
    early = created(empty_door)
    assert earliest <= early["created"] <= int(time.time())
    while time.time() < early["created"] + 1:  # the server is asked until its second is over
        empty_door.get(f"{INTENTS}/{early['id']}")
    late = created(empty_door)
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
    later, since = _filled(empty_door, 3), {"gt": first}
    assert _page(empty_door, limit=3, created=since) == (later, True)
    rest = _page(empty_door, limit=3, created=since, starting_after=later[-1])
    assert rest == ([late["id"]], False)


def test_a_list_holds_ids_until_expansion_is_asked_for(door: Door) -> None:
    charge = paid(door)["latest_charge"]
    whole = door.get(f"/v1/charges/{charge}").body
    for expand, held in (([], charge), (["data.latest_charge"], whole)):
        (intent,) = door.get(INTENTS, {"limit": 1, "expand": expand}).body["data"]
        assert intent["latest_charge"] == held
