"""The part of Stripe's search that is here (docs.stripe.com/search)."""

import stripe

from tests.stripe_sandbox.door import INTENTS, Door, created, paid, refusal

SEARCH = f"{INTENTS}/search"


def test_metadata_and_status_find_an_intent(
    sdk: stripe.StripeClient, empty_door: Door, other_door: Door
) -> None:
    odd = 'it\'s "odd" \\ %'
    first = paid(empty_door, metadata={"run": "r-1", odd: odd})["id"]
    second = created(empty_door, metadata={"run": "r-1"})["id"]
    created(empty_door, metadata={"run": "r-10", "other": "r-1"})
    escaped = odd.replace("\\", "\\\\").replace("'", "\\'")
    for query, found in [
        ("metadata['run']:'r-1'", [second, first]),
        ('metadata["run"]:"R-1"', [second, first]),  # in any case of its letters
        ("metadata['run']:'r-1' AND status:'succeeded'", [first]),
        ("status:'requires_payment_method' currency:'usd' and metadata['run']:'r-1'", [second]),
        (f"metadata['{escaped}']:'{escaped}'", [first]),
        ("metadata['run']:'r'", []),
    ]:
        result = empty_door.get(SEARCH, {"query": query}).body
        assert [each["id"] for each in result["data"]] == found, query
        assert other_door.get(SEARCH, {"query": query}).body["data"] == []
    pages = sdk.v1.payment_intents.search({"query": "metadata['run']:'r-1'", "limit": 1})
    assert [each.id for each in pages.auto_paging_iter()] == [second, first]


def test_a_query_beyond_the_subset_is_refused(door: Door) -> None:
    for query in (
        *("amount>1000", "metadata['run']~'r'", "-status:'succeeded'", "metadata['run']:null"),
        *(
            "status:'a' OR status:'b'",
            "metadata['run']:'r-1",
            "' OR 1=1 --",
            "status:'a'status:'b'",
        ),
        *(" ", " ".join(["status:'succeeded'"] * 11)),
    ):
        answer = door.get(SEARCH, {"query": query})
        assert refusal(answer)[::3] == (400, "query"), query
        assert "cannot answer" in answer.body["error"]["message"]
