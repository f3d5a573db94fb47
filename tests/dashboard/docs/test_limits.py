"""The page of the policy: limits that were put in force, with the events that sealed them."""

from pathlib import Path

import pytest
from django.conf import settings

from engine.models import AdapterCall, Envelope, Run
from tests.dashboard.visitor import Visitor, words
from tests.kit.house import POLICY


def test_each_change_of_a_limit_is_shown_with_the_event_that_sealed_it(
    visitor: Visitor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "Limits in your workspace" not in visitor.read("/policy/")
    run = visitor.make(hold=True)
    log = Run.objects.get(id=run.id).workspace_id
    file = tmp_path / "policy.toml"
    monkeypatch.setattr(settings, "NANOVM_POLICY", file)
    for most in (100, 30_000_000):
        file.write_text(POLICY % ("", "workspace", most))
        visitor.make(hold=True)
    rows = Envelope.objects.filter(workspace=log, run="log", kind="policy").order_by("-seq")
    page = words(
        visitor.read("/policy/").partition('id="sealed-title"')[2].partition("</section>")[0]
    )
    first, second = rows.values_list("seq", flat=True)
    assert page.index(f"log #{first}:") < page.index(f"log #{second}:")
    said = (page.index("300,000.00"), page.index("1.00"), page.index("1,000,000.00"))
    assert said == tuple(sorted(said))


WINDOW = """
[[windows]]
name = "calls_1m"
counts = "calls"
tool = "notify.send_email"
within_ms = 60_000
scope = "agent"

[[rules]]
id = "storm"
at = "authorize"
outcome = "hold"
when = "7 <= $history.calls_1m or $history.calls_1m > 20 and true"
why = "Too many calls."
"""


def test_each_window_is_shown_with_the_counts_that_rules_compare_it_with(
    visitor: Visitor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "policy.toml"
    file.write_text(POLICY % (WINDOW, "workspace", 30_000_000))
    monkeypatch.setattr(settings, "NANOVM_POLICY", file)
    run = visitor.make()
    calls = AdapterCall.objects.filter(run_id=run.id, tool="notify.send_email").count()
    assert calls > 0
    said = f"calls_1m : calls of notify.send_email within 60.0 s , by payer: {calls} now."
    for path in ("/policy/", "/agents/payer/"):
        page = words(visitor.read(path))
        assert f"{said} Rule storm (hold) applies when this is at least 7 ." in page
        assert "Rule storm (hold) applies when this is more than 20 ." in page
