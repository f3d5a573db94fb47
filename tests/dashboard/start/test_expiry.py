"""The end of a workspace that nobody uses is announced on its pages."""

from uuid import UUID

import pytest
from django.conf import settings

from engine.privacy import expiry
from engine.queries.runs import RunHead
from tests.dashboard.visitor import Visitor, words

pytestmark = pytest.mark.usefixtures("db")


def test_the_list_says_when_and_a_week_before_the_start_page_warns(
    owner: Visitor, ready: RunHead, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = expiry.of(UUID(ready.workspace))
    assert found is not None
    said = f"is erased after 90 days without a change: on {found.on}"
    assert said in words(owner.read("/runs/"))
    assert "will be erased" not in owner.read("/")
    monkeypatch.setattr(expiry, "now_ms", lambda: found.at_ms - expiry.ANNOUNCED_MS)
    for path in ("/", "/runs/"):
        page = words(owner.read(path))
        assert f"On {found.on} (UTC) the personal data of its runs" in page
        assert "Start a run to keep it for 90 more days" in page
    assert "erased after" not in words(Visitor().read("/runs/"))
    monkeypatch.setattr(settings, "NANOVM_EXPIRE_DAYS", 0)
    assert "erased" not in words(owner.read("/runs/"))
