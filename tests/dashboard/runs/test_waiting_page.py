"""The page of a run whose payment waits: words, the bank's page, and asking at once."""

import pytest

from pipeline.models import Run
from tests.dashboard.visitor import Visitor, by_code, words
from tests.pipeline.far_side.pages import press

OWNER_ASKED = "pm_card_authenticationRequired"


@pytest.mark.parametrize(("outcome", "label"), [("complete", "SUCCESS"), ("fail", "FAILED")])
def test_a_payment_that_waits_says_so_and_leads_to_the_banks_page(
    owner: Visitor, outcome: str, label: str
) -> None:
    run = owner.make(payment_method=OWNER_ASKED)
    here = f"/runs/{run.code}/"
    assert run.label == "WAITING"
    page = owner.read(here)
    assert "asks the card's owner to authenticate the payment" in words(page)
    assert f'href="{here}authenticate/"' in page
    assert "Ask Stripe now" in words(page)
    there = owner.get(f"{here}authenticate/")["Location"]
    assert "/counterpart/authentications/" in there
    assert there.rpartition("/")[2] not in page  # it is kept nowhere
    press(Run.objects.get(id=run.id), outcome)
    with owner.pressed(f"{here}wake/"):
        assert by_code(run.code).label == label
    assert owner.get(f"{here}authenticate/")["Location"] == here
