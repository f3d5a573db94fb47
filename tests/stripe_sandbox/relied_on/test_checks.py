"""The checks of ``manage.py stripe_check`` against the counterpart: one list for both."""

import pytest
import stripe

from pipeline.ops import stripe_checks
from pipeline.ops.stripe_checks import CHECKS, DIFFERS, SAME, Finding


@pytest.mark.parametrize("name", CHECKS)
def test_counterpart_does_what_is_relied_on(sdk: stripe.StripeClient, name: str) -> None:
    assert stripe_checks.run(name, sdk) == Finding(name=name.replace("_", " "), verdict=SAME)


def test_what_differs_is_named_with_both_values(
    sdk: stripe.StripeClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stripe_checks, "GOOD", stripe_checks.OWNER)
    found = stripe_checks.run("a_good_card_pays_at_once", sdk)
    assert found.verdict == DIFFERS
    assert "'status': 'succeeded'" in found.text
    assert "'status': 'requires_action'" in found.text
    monkeypatch.setattr(stripe_checks, "GOOD", stripe_checks.DECLINED)
    assert "CardError 402 card_declined" in stripe_checks.run("a_key_pays_once", sdk).text
