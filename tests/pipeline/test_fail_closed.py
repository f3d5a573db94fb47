"""The fail-closed matrix: each part of the decision path broken in each way, as the table says.

``docs/fail_closed.toml`` has the cells. Each breaks a part, has a worker try, compares what became
of the run, mends the part and drives the run to its end: paid exactly once.
"""

import tomllib
from typing import Any

import pytest

from config import health
from docs import generate
from engine.models import Run, Workspace
from engine.ops import error_messages
from engine.store import ledgers
from nanovm_core.core import lifecycle as life
from nanovm_core.errors import ProgramError
from tests.kit import house as kit
from tests.kit.house import payments, reason, snapshot
from tests.pipeline.broken_parts import PARTS, Part
from tests.pipeline.steps.test_unknown import far as far
from tests.pipeline.steps.test_unknown import side as side

CELLS = tomllib.loads((kit.ROOT / "docs/fail_closed.toml").read_text())["cells"]
BREAKS = ("missing", "garbage", "slow", "raising")
STATES = {
    "waits": life.ACTIVE,
    "held": life.APPROVAL,
    "unknown": life.APPROVAL,
    "exhausted": life.EXHAUSTED,
    "failed": life.FAILED,
}
HEALTH = {"keys": health._keys, "database": health._database, "queue": health._queue}


def test_every_part_is_broken_in_every_way_and_the_page_says_so() -> None:
    cells = [(each["part"], each["break"]) for each in CELLS]
    assert cells == [(part, each) for part in PARTS for each in BREAKS]
    assert (kit.ROOT / "docs/fail_closed.md").read_text() == generate.fail_closed()


def tried(part: Part, run: Run) -> str:
    """What a worker, and a person who begins a run, are told; empty where nothing was raised."""
    try:
        part.work(run)
    except error_messages.DATABASE_ERRORS as error:
        return error_messages.of_database(error, "")
    except (OSError, ProgramError) as error:
        return str(error)
    return ""


def said_by(place: str, run: Run) -> str:
    """What the run, its advice, or the alert of its log says."""
    if place != "alert":
        now = snapshot(run)
        return str(now.reason if place == "reason" else now.slots["risk_source"])
    found = ledgers.stored(Workspace.objects.get(id=run.workspace_id))
    return str(found and [each.text for each in found.alerts.values()])


def marks(cell: dict[str, Any]) -> list[pytest.MarkDecorator]:
    """PostgreSQL is asked again where it locks and fails otherwise; alone it runs every cell."""
    rows = cell["part"] in ("window totals", "ledger", "revocations", "supplier register")
    differs = cell["part"] == "database" or (rows and cell["break"] in ("slow", "raising"))
    return [pytest.mark.postgres] if differs else []


@pytest.mark.usefixtures("migrated")
@pytest.mark.parametrize("cell", [
    pytest.param(each, id=f"{each['part']}: {each['break']}", marks=marks(each)) for each in CELLS
])  # fmt: skip
def test_a_broken_part_lets_nothing_begin_until_it_is_mended(
    request: pytest.FixtureRequest, cell: dict[str, Any]
) -> None:
    part = PARTS[cell["part"]](request)
    run = part.prepared()
    with part.breaks()[BREAKS.index(cell["break"])]:
        told = tried(part, run)
        if cell["said"] in HEALTH:
            told = HEALTH[cell["said"]]()
    if cell["said"] in ("reason", "advice", "alert"):
        assert told == ""
        told = said_by(cell["said"], run)
    assert cell["names"] in told
    assert len(payments(run)) <= cell["left"]
    if cell["state"] != "refused":
        assert (snapshot(run).state, reason(run)) == (STATES[cell["state"]], cell["code"])
        under_way = [each.reserved for each in kit.accounts(run).values() if each.reserved]
        assert under_way == ([12_000] if cell["budget"] == "held" else [])
    paid = part.go_on(run)
    assert paid.state == life.COMPLETED
    assert (len(payments(paid)), kit.succeeded(paid)) == (1, [(12_000, "eur")])
    assert run.id == paid.id or payments(run) == []
