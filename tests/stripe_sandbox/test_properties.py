"""Properties over random payments and random nonsense; the seeds are fixed."""

from urllib.parse import quote_plus

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.stripe_sandbox.door import FORM, INTENTS, Door, draft, payment, refusal

# Lone surrogates have no UTF-8 form; NUL is no text; brackets are refused in names by the docs.
TEXT = st.characters(exclude_categories=["Cs"], exclude_characters="\x00")
NAME = st.characters(exclude_categories=["Cs"], exclude_characters="\x00[]")
METADATA = st.dictionaries(
    st.text(NAME, min_size=1, max_size=40), st.text(TEXT, min_size=1, max_size=500), max_size=8
)
AMOUNT = st.integers(min_value=50, max_value=99_999_999)
CURRENCY = st.sampled_from(["usd", "eur", "gbp", "chf", "jpy"])

steady = settings(max_examples=15, derandomize=True, deadline=None, database=None)


@steady
@given(amount=AMOUNT, currency=CURRENCY, metadata=METADATA)
def test_what_is_paid_is_what_was_said(
    door: Door, amount: int, currency: str, metadata: dict[str, str]
) -> None:
    params = payment(amount=amount, currency=currency, metadata=metadata)
    answer = door.post(INTENTS, params)
    assert answer.status == 200, answer.raw
    body = answer.body
    assert (body["amount"], body["amount_received"]) == (amount, amount)
    assert (body["currency"], body["metadata"]) == (currency, metadata)
    assert door.get(f"{INTENTS}/{body['id']}").body == body
    assert door.get(INTENTS, {"limit": 1}).body["data"] == [body]


@steady
@given(amount=st.text(TEXT, max_size=40))
def test_an_amount_is_understood_or_refused(door: Door, amount: str) -> None:
    answer = door.post(INTENTS, draft(amount=amount))
    if answer.status == 200:
        assert answer.body["amount"] == int(amount)
        assert amount.isascii()
    else:
        assert refusal(answer)[:2] == (400, "invalid_request_error")


@steady
@given(body=st.binary(max_size=200), path=st.text(TEXT, max_size=30))
def test_noise_never_breaks_the_server(door: Door, body: bytes, path: str) -> None:
    headers = {"Authorization": f"Bearer {door.key}", "Content-Type": FORM}
    for target in (INTENTS, f"{INTENTS}/{quote_plus(path) or 'x'}"):
        answer = door.send("POST", target, headers=headers, body=body)
        assert 400 <= answer.status < 500
