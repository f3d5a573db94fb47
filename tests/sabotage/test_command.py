"""``manage.py sabotage`` with the real queue server, worker and Stripe counterpart."""

import json
from argparse import Namespace
from contextlib import nullcontext
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from sabotage.campaign import InjectorOutcome
from sabotage.gallery import rogue_mcp_client
from sabotage.injectors import INJECTORS
from sabotage.management.commands import sabotage
from tests.house.demo import ran, wait_for_none

UNGUARDED = """
import sys
from django.core.management import execute_from_command_line
import django
django.setup()
from engine.store import records
records.check_chain = lambda *args, **kwargs: None
execute_from_command_line(["manage.py", *sys.argv[1:]])
"""


def test_what_is_held_and_what_gets_through_is_told_and_nothing_is_left(tmp_path: Path) -> None:
    data = tmp_path / "data"
    words = ("-c", UNGUARDED, "sabotage", "corrupt_hash", "--json")
    done = ran(data, *words, DJANGO_SETTINGS_MODULE="config.settings")
    assert done.returncode == 1, done.stderr
    damaged: dict[str, Any] = json.loads(done.stdout)
    keys = ["injector", "verdict", "rule", "integrity", "evidence", "control", "careful"]
    assert list(damaged) == keys
    assert (damaged["injector"], damaged["verdict"]) == ("corrupt_hash", "ACCEPTED")
    assert wait_for_none(data) == []


@pytest.mark.parametrize(
    ("through", "status"), [((), 0), (("tool_injection",), 1), (("skip_step", "double_exec"), 2)]
)
def test_the_exit_status_counts_what_got_through(
    through: tuple[str, ...], status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    evidence = {**dict.fromkeys(("headline", "where", "payments", "end"), ""), "params": {}}
    told: dict[str, Any] = {"rule": "", "integrity": "HELD", "evidence": evidence}
    told |= {key: {"happened": ""} for key in ("control", "careful")}

    def attack(name: str, _params: dict[str, str]) -> InjectorOutcome:
        verdict = "ACCEPTED" if name in through else "BLOCKED"
        return InjectorOutcome(injector=name, verdict=verdict, **told)

    monkeypatch.setattr(sabotage, "services", nullcontext)
    monkeypatch.setattr(sabotage, "attack", attack)
    out = StringIO()
    with pytest.raises(SystemExit) as ended:
        sabotage.Command(stdout=out).perform(
            Namespace(names=[], gallery=False, forms=False, json=False)
        )
    assert ended.value.code == status
    words = [line.split()[0] for line in out.getvalue().splitlines()]
    assert words == ["ACCEPTED" if name in through else "BLOCKED" for name in INJECTORS]
    asked = Namespace(names=["rogue_mcp_client", "skip_step"], gallery=False, forms=True)
    forms = [("rogue_mcp_client", {"how": how}) for how in rogue_mcp_client.FORMS]
    assert sabotage._meant(asked) == [*forms, ("skip_step", {})]
