"""The inbox: what waits for a person, decided in place; a register that changed is looked at."""

from dataclasses import replace
from pathlib import Path
from uuid import UUID

import pytest
from pytest_django.fixtures import Settings

from engine.clock import now_ms
from engine.damage import Damage
from engine.evidence.fsck import row_audit
from engine.models import Run, Secret
from engine.queries import log
from engine.queries.runs import RunHead, body_of
from engine.runtime import agents as agent_commands
from engine.runtime import api, chains
from engine.store import records
from engine.vault import secret_store
from nanovm_core.core import lifecycle as life
from nanovm_core.core.events import Approved
from pipeline.application import FOLDER
from pipeline.models import Supplier
from pipeline.queries import stuck_runs
from pipeline.register import suppliers
from pipeline.steps import approvals
from tests.dashboard.visitor import Visitor, by_code, seen, words
from tests.kit.pdf_builder import text_pdf

pytestmark = pytest.mark.usefixtures("db")

IBAN, OWN_IBAN = "IE29 AIBK 9311 5212 3456 78", "DE89 3704 0044 0532 0130 00"


def invoice(
    number: str, *, name: str = "Nobody Knows Ltd", iban: str = IBAN, year: int = 2026
) -> bytes:
    """An invoice of EUR 120.00; its supplier is none that the sample register has."""
    days = f"Invoice date: {year}-03-05                 Due date: {year}-04-04"
    head = (f"{name}      INVOICE", f"Invoice number: {number}", days)
    return text_pdf([*head, f"IBAN {iban}", "Total  EUR 120.00"])


def audited(run: RunHead) -> list[Damage]:
    """What an audit finds of the run's secrets."""
    row = Run.objects.select_related("workspace").get(id=run.id)
    found = records.stored_envelopes(run.id)
    return [*row_audit.secret_damage(row.workspace, row, found)]


def decide(visitor: Visitor, run: RunHead, name: str, **form: str) -> str:
    """Press a button of the open row; where it leads."""
    answer = visitor.post(f"/inbox/{run.code}/{name}/", {**seen(run), **form})
    assert answer.status_code == 303, answer.content.decode()
    return str(answer["Location"])


def part(page: str, code: str) -> str:
    """What the row of a run says."""
    return words(page.partition(f'id="run-{code}"')[2].partition("\n</li>")[0])


def held(visitor: Visitor, content: bytes, rule: str) -> RunHead:
    """A run of this document, approved until this rule holds it."""
    run = visitor.upload("invoice.pdf", content)
    while run.held_by != rule:
        assert run.held_by, run.state
        visitor.command(run, "approve")
        run = visitor.driven(run.code)
    return run


def test_second_hold_is_not_decided_by_who_approved_the_first(owner: Visitor) -> None:
    faulty = "DE00 3704 0044 0532 0130 00"
    old = invoice("T-1", name="Nordlicht Papier GmbH", iban=faulty, year=2016)
    run = held(owner, old, "implausible-dates")
    assert log.row_of(log.envelopes(run).latest("n")).state_event == "Approved"
    page = owner.read(f"/runs/{run.code}/")
    outcome = words(page.partition('id="outcome"')[2].partition("</section>")[0])
    assert "decided by rule implausible-dates" in outcome
    assert "decided by visitor" not in outcome
    owner.command(run, "decline")
    assert "decided by visitor" in words(owner.read(f"/runs/{run.code}/"))


def test_row_says_every_reason_and_who_may_decide_and_opens_in_place(owner: Visitor) -> None:
    run = owner.upload("one.pdf", invoice("R-1"))
    other = owner.make("over_limit")
    row = part(owner.read("/inbox/"), run.code)
    for said in ("EUR 120.00 · Nobody Knows Ltd · R-1", "first-payment", "unseen-text",
                 "May decide: you"):  # fmt: skip
        assert said in row, row
    page = owner.read(f"/inbox/{run.code}/")
    opened = part(page, run.code)
    for said in ("Held for 2 reasons", "Approve EUR 120.00 to Nobody Knows Ltd (first payment)",
                 "Comment, recorded with your decision"):  # fmt: skip
        assert said in opened, opened
    assert "Held for" not in part(page, other.code)
    assert f'formaction="/inbox/{run.code}/approve/"' in page
    assert "<title>(2) Inbox" in page
    assert "Inbox (2)" in words(owner.read("/docs/"))
    assert "2 wait in the inbox" in words(owner.read("/runs/"))


def test_after_a_decision_the_inbox_says_it_and_opens_the_next_row(owner: Visitor) -> None:
    last, first = owner.make("over_limit"), owner.upload("one.pdf", invoice("N-1"))
    there = decide(owner, first, "decline")
    assert there == f"/inbox/{last.code}/?decided={first.code}#open-{last.code}"
    said = words(owner.read(there))
    assert "Declined: EUR 120.00 to Nobody Knows Ltd; nothing is paid." in said
    assert f"/inbox/{last.code}/approve/" in owner.read(there)
    there = decide(owner, last, "approve")
    assert there == f"/inbox/?decided={last.code}"
    assert "; the run goes on." in words(owner.read(there))
    assert "Nothing waits for you." in words(owner.read("/inbox/"))
    assert "is not waiting for a decision" in words(owner.read(f"/inbox/{last.code}/"))


def test_refused_decision_stays_at_its_row(owner: Visitor) -> None:
    run = owner.make("over_limit")
    there = decide(owner, run, "approve", terms="policy=another")
    assert there.startswith(f"/inbox/{run.code}/?refused=POL-025")
    said = words(owner.read(there))
    assert "Changed: " in said
    assert by_code(run.code).hold == run.hold


@pytest.mark.parametrize("name", ["approve", "decline"])
def test_comment_is_sealed_with_the_decision_shown_and_erased_with_the_run(
    owner: Visitor, name: str
) -> None:
    run = owner.make("over_limit")
    decide(owner, run, name, comment="Asked Ms. Muster on the phone.")
    run = owner.driven(run.code)
    secret = Secret.objects.get(run_id=run.id, slot="comment")
    (sealed,) = [row for row in log.envelopes(run) if secret.ref.encode() in bytes(row.bytes)]
    kind = "resumed" if name == "approve" else "terminal"
    assert (sealed.kind, b"Muster" in bytes(sealed.bytes)) == (kind, False)
    listed = body_of(sealed.bytes)["secrets"]
    assert [(each["ref"], each["c"]) for each in listed] == [(secret.ref, secret.commitment)]
    pages = (f"/runs/{run.code}/events/{sealed.n + 1}/", f"/runs/{run.code}/audit/")
    for path in pages:
        assert "Asked Ms. Muster on the phone." in owner.read(path)
    assert audited(run) == []
    owner.erase(run)
    for path in pages:
        assert "Muster" not in owner.read(path)
    assert secret_store.text(secret.ref) == secret_store.TOMBSTONE
    assert audited(run) == []


def test_comment_of_a_refused_decision_is_not_kept(owner: Visitor) -> None:
    run = owner.make("over_limit")
    decide(owner, run, "decline", comment="no", hold="0" * 64)
    assert not Secret.objects.filter(run_id=run.id, slot="comment").exists()
    long = "x" * 501
    page = owner.refused(f"/inbox/{run.code}/decline/", {**seen(run), "comment": long})
    assert "The comment has 501 characters of at most 500. Nothing was decided" in words(page)
    assert long in page
    assert by_code(run.code).hold == run.hold
    decide(owner, run, "decline", comment=long[1:])
    assert by_code(run.code).label == "DECLINED"


def test_held_run_goes_on_by_itself_when_the_register_was_corrected(owner: Visitor) -> None:
    run = owner.upload("one.pdf", invoice("C-1", name="Nordlicht Papier GmbH"))
    assert run.held_by == "changed-details"
    supplier = Supplier.objects.get(id=run.slots["supplier"])
    form = {"name": "Nordlicht Papier GmbH", "iban": IBAN, "seen": str(supplier.sealed_n)}
    assert owner.post(f"/suppliers/{supplier.id}/", form).status_code == 303
    run = owner.driven(run.code)
    assert run.held_by == "unseen-text"
    resumed = log.row_of(log.envelopes(run).filter(kind="resumed").latest("n"))
    assert (resumed.actor, resumed.decided_by) == ("register", "program")
    assert "changed-details" not in part(owner.read("/inbox/"), run.code)


def test_unblocked_supplier_lets_its_run_be_judged_and_paid(owner: Visitor) -> None:
    paid = owner.make()
    supplier = f"/suppliers/{paid.slots['supplier']}"
    owner.post(f"{supplier}/block/")
    run = owner.make()
    assert run.held_by == "blocked-supplier"
    owner.post(f"{supplier}/unblock/")
    run = owner.driven(run.code)
    assert run.label == "SUCCESS"
    page = owner.read(f"/runs/{run.code}/")
    outcome = words(page.partition('id="outcome"')[2].partition("</section>")[0])
    assert "decided by rule within-limit" in outcome


def test_a_correction_judges_the_newest_runs_and_no_more(
    owner: Visitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(approvals, "AT_ONCE_MAX", 1)
    supplier = f"/suppliers/{owner.make().slots['supplier']}"
    owner.post(f"{supplier}/block/")
    older, newer = owner.make(), owner.make()
    owner.post(f"{supplier}/unblock/")
    held = [owner.driven(each.code).held_by for each in (older, newer)]
    assert held == ["blocked-supplier", ""]


def test_supplier_that_an_approval_registered_makes_the_other_holds_stale(owner: Visitor) -> None:
    first, *others = (owner.upload("one.pdf", invoice(f"S-{n}")) for n in range(3))
    decide(owner, first, "approve")
    owner.driven(first.code)
    page = owner.read("/inbox/")
    for run in others:
        row = part(page, run.code)
        assert "The register has this supplier now, with the account on the invoice." in row
        assert "First payment to this supplier" not in row, row
        assert "Judge the 2 runs of this supplier again" in row
    assert "Judge it again" in words(owner.read(f"/runs/{run.code}/"))
    answer = owner.post(f"/inbox/{run.code}/judge/", {"all": "1"})
    assert answer.status_code == 303
    assert "Judged again: EUR 120.00 to Nobody Knows Ltd" in words(owner.read(answer["Location"]))
    for run in others:
        owner.driven(run.code)
        said = [log.row_of(each).actor for each in log.envelopes(run).filter(kind="resumed")]
        assert said == ["register"]


def test_hold_that_the_register_does_not_change_is_not_judged_again(owner: Visitor) -> None:
    run = owner.make("over_limit")
    new = owner.upload("one.pdf", invoice("H-1"))
    assert approvals.judge_again(run.id) is None
    assert approvals.judge_again(new.id) is None
    owner.post(f"/inbox/{new.code}/judge/", {"all": "1"})
    assert (by_code(run.code).length, by_code(new.code).length) == (run.length, new.length)


def test_forged_register_has_no_run_judged_or_paid(owner: Visitor) -> None:
    run = owner.upload("one.pdf", invoice("F-1", name="Nordlicht Papier GmbH"))
    assert run.held_by == "changed-details"
    Supplier.objects.filter(id=run.slots["supplier"]).update(commitment="0" * 64)
    assert approvals.judge_again(run.id) is None
    assert by_code(run.code).length == run.length
    assert "changed-details" in part(owner.read("/inbox/"), run.code)


def test_rule_whose_approval_would_lift_it_is_not_lifted_by_the_register(
    owner: Visitor, tmp_path: Path, settings: Settings
) -> None:
    policy = (FOLDER / "policies" / "default.toml").read_text()
    again = 'again_from = "vault" # where what is known is looked up again; nothing is lifted\n'
    assert policy.count(again) == 1
    settings.NANOVM_POLICY = tmp_path / "policy.toml"
    settings.NANOVM_POLICY.write_text(policy.replace(again, ""))
    run = owner.upload("one.pdf", invoice("L-1", name="Nordlicht Papier GmbH", iban=OWN_IBAN))
    assert run.held_by == "unseen-text"
    entry = suppliers.by_id(Run.objects.get(id=run.id).workspace, run.slots["supplier"])
    known = entry.details.known.with_run(run.id)
    suppliers.change(entry, replace(entry.details, known=known), actor="visitor")
    assert approvals.judge_again(run.id) is None


def test_under_four_eyes_the_row_says_who_may_not_decide(
    owner: Visitor, four_eyes: None, settings: Settings
) -> None:
    run = owner.make("over_limit")
    row = part(owner.read("/inbox/"), run.code)
    assert "another person than the one who started it" in row
    assert "Make a link for another person" in row
    assert decide(owner, run, "approve") == f"/inbox/{run.code}/?refused=POL-026"
    settings.NANOVM_POLICY = None
    assert "judged by the policy that it began with" in words(owner.read(f"/inbox/{run.code}/"))


def test_under_four_eyes_the_requesters_change_of_the_register_pays_nothing(
    owner: Visitor, four_eyes: None
) -> None:
    new = owner.upload("one.pdf", invoice("E-1"))
    supplier = f"/suppliers/{owner.make().slots['supplier']}"
    owner.post(f"{supplier}/block/")
    blocked = owner.make()
    owner.post(f"{supplier}/unblock/")
    owner.post("/suppliers/", {"name": "Nobody Knows Ltd", "iban": IBAN})
    for run, held_by in ((new, "first-payment"), (blocked, "blocked-supplier")):
        owner.post(f"/inbox/{run.code}/judge/", {"all": "1"})
        assert owner.driven(run.code) == by_code(run.code) == run
        assert run.held_by == held_by
        says = part(owner.read("/inbox/"), run.code)
        assert "another person than the one who started it" in says
        asked = Approved(hold=run.hold, seen=api.terms_now(run.id))
        refusal = api.submit(run.id, [asked], actor=approvals.REGISTER).refusal
        assert getattr(refusal, "code", "") == "POL-026"
    approvals.approve(blocked.id, "link-1")
    assert owner.driven(blocked.code).label == "SUCCESS"


def test_suspended_agents_and_alerts_have_a_tab_and_count(owner: Visitor, paid: RunHead) -> None:
    assert "No agent and no alert waits" in words(owner.read("/inbox/?tab=agents"))
    agent_commands.suspend(UUID(paid.workspace), "payer", by="visitor", why="A look at it")
    page = owner.read("/inbox/?tab=agents")
    assert "(1) Inbox" in page
    assert "A look at it" in words(page)
    assert 'action="/agents/payer/resume/"' in page
    assert "is not a value of the filter" in words(owner.read("/inbox/?tab=stripe"))


def test_the_number_is_that_of_the_rows(owner: Visitor) -> None:
    owner.make("over_limit")
    stuck, ready = owner.make(hold=True), owner.make(hold=True)
    api.start(stuck.id, "visitor")
    workspace = UUID(ready.workspace)

    def listed() -> int:
        return sum(stall.waits for _, stall in stuck_runs.of_workspace(workspace))

    assert (stuck_runs.waiting(workspace), listed()) == (1, 1)
    row = Run.objects.filter(id=stuck.id)
    late = now_ms() - stuck_runs.STUCK_MS - 1
    for change in ({"owed_ms": late}, {"due_ms": now_ms() + 60_000, "tries": 1}, {"due_ms": None},
                   {"holder": "w", "until_ms": now_ms() + 60_000}, {"until_ms": late},
                   {"deadline_ms": late}, {"due_ms": now_ms() + 60_000}, {"state": life.IDLE},
                   {"state": life.WAITING}, {"state": life.PAUSED}, {"state": life.EXHAUSTED},
                   {"ended_ms": late}, {"state": life.ACTIVE, "due_ms": late, "owed_ms": late},
                   {"ended_ms": None, "owed_ms": now_ms(), "deadline_ms": now_ms()},
                   {"due_ms": now_ms(), "owed_ms": late, "deadline_ms": 0},
                   {"due_ms": None, "workspace": chains.create()},
                   {"workspace": workspace, "state": life.IDLE, "deadline_ms": late, "holder": "",
                    "until_ms": now_ms() + 60_000}):  # fmt: skip
        row.update(**change)
        assert stuck_runs.waiting(workspace) == listed(), change
    assert listed() == 2
