"""Tokens: the log's ledger alone knows them."""

import pytest

from config import health
from engine import application
from engine.models import Run, Workspace
from engine.runtime import agents, api, chains
from engine.store import actors
from gate import application as programs
from gate import calls, identity, queries
from gate.replies import ALLOWED, HELD
from nanovm_core.core.lifecycle import KILLED, WAITING
from nanovm_core.errors import RefusedError
from tests.gate.conftest import DESK, Desk
from tests.gate.test_calls import code
from tests.kit.house import bodies, sql


def test_a_token_is_the_ledgers(desk: Desk) -> None:
    assert desk.holder == (desk.log.id, "teller", 1, "desk")
    assert queries.of_agent(desk.log.id, "teller") == "desk"
    assert desk.token not in str([*Workspace.objects.values()])
    log, agent, program, secret = desk.token.split(".")[1:]
    other = chains.create()
    for bad in (
        "",
        "nvm1",
        f"{desk.token}x",
        f" {desk.token}",
        f"nvm1.{other.id.hex}.{agent}.{program}.{secret}",
        f"nvm1.{log}.payer.{program}.{secret}",
        f"nvm1.{log}.{agent}.other.{secret}",
        f"nvm1.{log}.{agent}.{program}.{secret[::-1]}",
        f"nvm1.{'0' * 32}.{agent}.{program}.{secret}",
    ):
        assert code(identity.holder, bad) == "GAT-003"


def test_a_killed_agents_token_opens_nothing_and_the_next_has_its_own_requests(desk: Desk) -> None:
    desk.ask()
    assert desk.ask("held", to="all").verdict == HELD
    old, held = desk.holder, desk.run("held")
    with pytest.raises(RefusedError, match="AGT-001"):
        identity.issue(desk.log.id, "teller", "desk", by="visitor")
    assert identity.holder(desk.token) == old
    agents.kill(desk.log.id, "teller", by="visitor")
    assert code(lambda: desk.holder) == "GAT-003"
    agents.declare(desk.log.id, "teller", by="visitor")  # as one of ours: it has no token
    assert code(lambda: desk.holder) == code(calls.ask, old, "2", b"{}") == "GAT-003"
    agents.kill(desk.log.id, "teller", by="visitor")
    again = desk._replace(token=identity.issue(desk.log.id, "teller", "desk", by="visitor"))
    assert again.holder.incarnation == 3
    assert code(calls.answer, again.holder, "1") == "GAT-001"
    assert again.ask().verdict == ALLOWED
    assert Run.objects.count() == 3
    assert api.approve(held.name, "visitor").absorbed  # nobody makes the former's call
    assert [*Run.objects.order_by("state").values_list("state", flat=True)] == [WAITING] * 2 + [
        KILLED
    ]


def test_an_edited_row_registers_nobody(desk: Desk) -> None:
    key = identity._key(desk.token)
    forged = f"{desk.token[:-32]}{'x' * 32}"
    row = bytes(Workspace.objects.get(id=desk.log.id).ledger)
    made = row.replace(key.encode(), identity._key(forged).encode())
    sql(("UPDATE pipeline_workspace SET ledger = %s", [made]))
    assert code(identity.holder, forged) == "GAT-003"
    assert bytes(Workspace.objects.get(id=desk.log.id).ledger) != made
    assert [each["rule"] for each in bodies("log") if each["kind"] == "alert"] == ["LOG-011"]
    assert desk.holder.agent == "teller"


def test_a_token_finds_nothing_of_another_log_or_agent(desk: Desk) -> None:
    desk.ask()
    for log, agent in ((chains.create().id, "teller"), (desk.log.id, "other")):
        other = desk._replace(token=identity.issue(log, agent, "desk", by="visitor"))
        assert code(calls.answer, other.holder, "1") == "GAT-001"
        assert code(calls.report, other.holder, "1", "done") == "GAT-001"
        assert other.ask().verdict == ALLOWED
    for name in ("payer", "Bad Name", "operator"):
        with pytest.raises(RefusedError, match="AGT-002"):
            identity.issue(desk.log.id, name, "desk", by="visitor")
    assert code(identity.issue, desk.log.id, "new", "nothing", by="visitor") == "GAT-014"


@pytest.mark.whole
@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('first = "ask"', 'first = "aks"', "PRG-"),
        ("proposals_max = 1", "proposals_max = 2", "proposals_max must be 1"),
        ('name = "desk"', 'name = "invoice_payment"', "Two applications"),
        ('name = "desk"', 'name = "shop"', "copy.toml has the program shop too: rename one"),
        ('policy = "policy.toml"', 'policy = "none.toml"', "none.toml"),
        ('scope = "agent"', 'scope = "workspace"', "would bind all programs"),
        ("ttl_ms = 600_000", "ttl_ms = 600_001", "say limits.warrant_ttl_ms = 600000"),
    ],
)
def test_a_broken_program_is_left_out_and_named(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, old: str, new: str, said: str
) -> None:
    folder = desk.house.folder / "programs"
    folder.mkdir()
    files = [("broken.toml", "desk.toml"), ("policy.toml", "policy.toml")]
    for name, file in [*files, ("copy.toml", "desk.toml")][: 2 + ("copy" in said)]:
        (folder / name).write_text((DESK / file).read_text().replace(old, new))
    monkeypatch.setattr(programs, "BROKEN", {})
    before = application.installed()
    programs.install_from(folder)
    assert said in programs.BROKEN["broken.toml"]
    assert application.installed() == before
    assert actors.main() == actors.agents()[0]
    assert "broken.toml" in str(health.load()["gate"])
