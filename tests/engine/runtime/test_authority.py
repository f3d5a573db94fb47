"""Authority around a run: revocation, signed warrants, operator's policies, shared budgets."""

from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

import pytest
from django.conf import settings

from engine.errors import OutcomeUnknownError
from engine.evidence.fsck.audit import audit
from engine.models import Envelope, Run, Workspace
from engine.runtime import api, chains, warrants
from engine.runtime.group_commit import commit_together
from engine.store import ledgers, programs
from engine.work import Work
from engine.worker import effects
from nanovm_core.core import lifecycle as life
from nanovm_core.core.messages import Effect, RunId, Snapshot
from nanovm_core.core.warrants import binding, check, mint
from nanovm_core.errors import ProgramError, RefusedError
from pipeline.application import INVOICES, current
from tests.kit.house import (
    PAY,
    POLICY,
    House,
    accounts,
    bodies,
    invoice,
    limit,
    payments,
    reason,
    sql,
    succeeded,
)

CALM = """
windows = [{ name = "calls", counts = "calls", within_ms = 3_600_000 }]

[[rules]]
id = "calm-down"
at = "authorize"
outcome = "hold"
approvable = true
when = "$history.calls > 1"
why = "More than one payment within the hour."
"""


@pytest.fixture
def policy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The operator's policy file, in force from the first word written to it."""
    file = tmp_path / "policy.toml"
    monkeypatch.setattr(settings, "NANOVM_POLICY", file)
    file.write_text(POLICY % ("", "workspace", 100_000_000))
    return file


def test_a_revoked_grant_stops_what_is_not_begun_and_is_sealed_once(house: House) -> None:
    run = house.once(House.paused, "propose")
    other = house.new()
    grant = warrants.revoke(str(run.workspace_id), PAY, "operator")
    assert warrants.revoke(str(run.workspace_id), PAY, "operator") == grant
    (sealed,) = Envelope.objects.filter(run="log", kind="capability")
    assert sealed.workspace_id == run.workspace_id
    house.resumed(run)
    assert (run.state, reason(run)) == (life.FAILED, "FSM-005")
    refused = [body["rule"] for body in bodies(run) if body["kind"] == "refused"]
    assert refused == ["CAP-008"] * 3
    api.start(str(other.id), "visitor")
    assert house.drive(other).state == life.COMPLETED
    assert audit().damage == ()


def test_a_run_whose_row_was_moved_to_another_log_pays_nothing(house: House) -> None:
    run = house.once(House.paused)
    other = house.new()
    warrants.revoke(str(run.workspace_id), PAY, "operator")
    moved = "UPDATE pipeline_run SET workspace_id = %s WHERE id = %s"
    sql((moved, (other.workspace_id.hex, run.id.hex)))
    house.resumed(run)
    assert (run.state, reason(run)) == (life.FAILED, "LOG-003")
    assert payments(run) == []


SET_BACK = (
    "UPDATE pipeline_workspace SET log_length = 1, log_head ="
    " (SELECT hash FROM pipeline_envelope WHERE run = 'log' AND n = 0)"
)


@pytest.mark.parametrize(("statement", "seen"), [
    ("DELETE FROM pipeline_envelope WHERE kind = 'capability'", False),
    ("DELETE FROM pipeline_envelope WHERE kind = 'capability'", True),
    ("UPDATE pipeline_envelope SET bytes = x'7b7d' WHERE kind = 'capability'", False),
    ("UPDATE pipeline_envelope SET kind = 'budget' WHERE kind = 'capability'", False),
    ("UPDATE pipeline_workspace SET log_length = 1", True),
    (SET_BACK, True),
    (SET_BACK, False),
])  # fmt: skip
def test_a_revocation_is_not_undone_by_changing_the_database(
    house: House, statement: str, seen: bool
) -> None:
    run = house.once(House.paused)
    with pytest.raises(RefusedError, match="CAP-001"):  # nobody granted it
        warrants.revoke(str(run.workspace_id), "wire_transfer", "operator")
    warrants.revoke(str(run.workspace_id), PAY, "operator")
    log = Workspace.objects.get()
    assert len(warrants.revoked(log, programs.program_of(run))) == 1
    sql((statement, []))
    if not seen:
        warrants._sealed.cache_clear()
    house.resumed(run)
    assert (run.state, reason(run)) == (life.FAILED, "CAP-008")
    assert payments(run) == []
    assert [each.run for each in audit().damage][:1] == ["log"]


def work(house: House, step: str = "charge") -> Work:
    """The charge, or the advice mail, taken in hand with its signed warrant."""
    run = house.paused(step)  # of a log that no other test has revoked anything in
    api.resume(str(run.id), "visitor")
    begun = api.begin_effect(str(run.id))
    assert begun is not None
    return effects.work_of(begun)


def test_an_adapter_pays_under_a_whole_token_for_this_very_call_alone(house: House) -> None:
    good = work(house)
    more = good.effect._replace(args={**good.effect.args, "amount_minor": 1})
    broken = bytes([good.token[0] ^ 1]) + good.token[1:]
    for changed, code in (
        ({"token": b""}, "CAP-022"),
        ({"token": broken}, "CAP-022"),
        ({"effect": more}, "CAP-020"),
    ):
        with pytest.raises(OutcomeUnknownError, match=code):
            effects.perform(replace(good, **changed))
    mail = work(house, "seal")
    with pytest.raises(OutcomeUnknownError, match="CAP-022"):
        effects.perform(replace(mail, token=b""))
    assert (payments(good.run), [*(house.folder / "mail").glob("*")]) == ([], [])
    warrants.revoke(str(good.run.workspace_id), PAY, "operator")
    with pytest.raises(OutcomeUnknownError, match="CAP-008"):
        effects.perform(good)
    assert payments(good.run) == []


def test_a_policy_is_in_force_for_new_runs_without_a_restart(house: House, policy: Path) -> None:
    old = house.new(invoice("Total  EUR 20,000.00"))
    held = POLICY.replace('outcome = "allow"', 'outcome = "deny"')
    policy.write_text(held % ("", "workspace", 100_000_000))
    new = house.run(workspace=old.workspace)
    assert (new.state, reason(new)) == (life.FAILED, "FSM-005")
    api.start(str(old.id), "visitor")
    assert house.drive(old).state == life.COMPLETED
    assert old.policy_hash != new.policy_hash
    assert audit().damage == ()


@pytest.mark.parametrize("text", ["", "v = 1", POLICY % ('lifts = ["payable"]', "workspace", 1)])
def test_a_broken_policy_begins_nothing_and_falls_back_to_nothing(
    house: House, policy: Path, text: str
) -> None:
    run = house.new()
    policy.write_text(text)
    with pytest.raises(ProgramError) as caught:
        house.new(workspace=run.workspace)
    assert caught.value.code in ("PRG-001", "PRG-003", "PRG-005")
    assert Run.objects.count() == 1
    api.start(str(run.id), "visitor")
    assert house.drive(run).state == life.COMPLETED


@pytest.mark.parametrize(("scope", "shared"), [
    ("workspace", False),
    ("agent", False),
    pytest.param("global", True, marks=pytest.mark.postgres),
])  # fmt: skip
def test_what_several_runs_share_is_never_overdrawn(
    house: House, policy: Path, scope: str, shared: bool
) -> None:
    policy.write_text(POLICY % ("", scope, 20_000))
    first = house.run()
    beside = house.run(workspace=first.workspace)
    elsewhere = house.run()
    assert succeeded(first) == [(12_000, "eur")]
    assert (beside.state, reason(beside)) == (life.EXHAUSTED, "BUD-001")
    assert elsewhere.state == (life.EXHAUSTED if shared else life.COMPLETED)
    own = [each.spent for run in (first, elsewhere) for each in accounts(run).values()]
    everyones = ledgers.stored(ledgers.house() or first.workspace) if shared else None
    shares = [each.spent for each in everyones.accounts.values()] if everyones else []
    assert own + shares == ([12_000] if shared else [12_000, 12_000])


@pytest.mark.usefixtures("policy")
def test_no_row_widens_the_programs_own_limit(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    cap = b'\n[[budgets]]\nscope = "workspace"\nunit = "money"\nmax = 20_000\n'
    source = INVOICES.source() + cap
    monkeypatch.setattr(INVOICES, "source", lambda: source)
    first = house.run()
    assert first.state == life.COMPLETED
    limit(first, "workspace/EUR", 10**9)
    beside = house.run(workspace=first.workspace)
    assert (beside.state, reason(beside)) == (life.EXHAUSTED, "BUD-001")


def test_the_commands_that_test_a_policy_and_revoke_a_grant(house: House, tmp_path: Path) -> None:
    first = house.new()
    tested = house.command("policy", "test", "pipeline/policies/default.toml")
    assert (tested.returncode, "30 of 30" in tested.stdout) == (0, True)
    bad = (tmp_path / "bad.toml").absolute()
    bad.write_text(Path("pipeline/policies/default.toml").read_text().replace("1000000", "5"))
    assert house.command("policy", "test", str(bad)).returncode == 1
    written = house.command("policy", "cedar", str(bad.with_suffix(".cedar")))
    assert (written.returncode, "Not in Cedar: rule error-storm" in written.stderr) == (1, True)
    assert "permit(" in bad.with_suffix(".cedar").read_text()
    assert 'action "admission"' in bad.with_suffix(".cedarschema").read_text()
    assert house.command("policy", "cedar", str(bad)).returncode == 2
    other = house.new(workspace=chains.create())
    several = house.command("revoke", PAY)
    assert (several.returncode, other.workspace.origin in several.stderr) == (2, True)
    revoked = house.command("revoke", PAY, "--workspace", first.workspace.origin)
    assert revoked.returncode == 0
    assert Envelope.objects.filter(kind="capability").count() == 1


NOW_MS = 1_000


def owed(program: str, tool: str = PAY) -> tuple[Snapshot, Effect]:
    """A run under this program, and a warranted effect of it."""
    effect = Effect("charge", tool, 1, "k" * 64, MappingProxyType({"amount_minor": 1}), NOW_MS)
    bound = binding("run", program, effect)
    warranted = effect._replace(warrant=mint(bound, at_ms=NOW_MS, ttl_ms=9))
    run = RunId("run")
    return Snapshot(run=run, program=program, policy="", state="", step="charge"), warranted


def test_a_call_is_signed_where_the_runs_own_program_warranted_and_grants_it(house: House) -> None:
    program = current()
    now, effect = owed(program.hash)
    token = warrants.token(program, now, effect)
    check(token, binding("run", program.hash, effect), warrants.public_key(), at_ms=NOW_MS)
    other, _ = owed("0" * 64)
    with pytest.raises(RefusedError, match="CAP-020"):
        warrants.token(program, other, effect)
    with pytest.raises(KeyError):  # never granted
        warrants.token(program, *owed(program.hash, "wire_transfer"))


def test_runs_that_are_decided_in_one_commit_count_each_other(house: House, policy: Path) -> None:
    """Two payments are authorized at once: the second sees the first, which is not stored yet."""
    policy.write_text(POLICY % (CALM.replace("> 1", "> 0"), "workspace", 100_000_000))
    first = house.owing("propose")
    second = house.paused("propose", workspace=first.workspace)
    api.resume(str(second.id), "visitor")
    begun = [work for run in (first, second) if (work := api.take(str(run.id))[1])]
    answers = [(work, effects.perform(effects.work_of(work))) for work in begun]
    jobs = [api.answer_job(work, found.event, found.secrets) for work, found in answers]
    commit_together(jobs)
    held = [job.outcome().decision.snapshot.held_by for job in jobs]
    assert held == ["", "calm-down"]
