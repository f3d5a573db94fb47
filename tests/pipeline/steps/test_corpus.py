"""Other people's invoices, broken files and attacks, put through the real pipeline."""

import json
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from nanovm_core.core import lifecycle as life
from nanovm_core.core.events import Context, ProposalReceived
from nanovm_core.core.fsm import transition
from nanovm_core.core.messages import Snapshot
from nanovm_core.core.program import Program
from pipeline import clock
from pipeline.models import Outbox, Run
from pipeline.reports import report
from pipeline.runtime import api
from pipeline.steps.currencies import DECIMALS
from pipeline.steps.extract import extract
from pipeline.steps.extract import step as extract_step
from pipeline.store import programs, workspaces
from samples import path
from tests.core.kit.builders import secret
from tests.pipeline.house import SHARED, House, payments, snapshot, succeeded

pytestmark = [
    pytest.mark.corpus,
    pytest.mark.skipif(not SHARED.is_dir(), reason="../shared/data is missing: no corpus to read"),
]


def truths() -> list[dict[str, Any]]:
    """What the invoices of the corpus say, one object a file."""
    return lines_of(SHARED / "invoices/truth.jsonl")


def lines_of(file: Path) -> list[dict[str, Any]]:
    """The objects of a file, one a line."""
    return [json.loads(line) for line in file.read_text().splitlines()]


def is_payable(truth: dict[str, Any]) -> bool:
    """Payable by the corpus' own words."""
    return bool(
        truth["pay_status"] == "open"
        and truth["currency"]
        and Decimal(truth["total_due"] or 0) > 0
        and not truth["hybrid_mismatch"]
    )


def run_all(house: House, files: Sequence[Path]) -> dict[str, Run]:
    """Every file through the pipeline."""
    workspace = workspaces.create()
    return {
        file.name: house.run(
            file.read_bytes(), workspace=workspace, policy="no_limits", file_name=file.name
        )
        for file in files
    }


def test_invoices_are_paid_exactly_or_not_at_all(house: House) -> None:
    known = {truth["file"]: truth for truth in truths()}
    runs = run_all(house, [SHARED / "invoices" / name for name in known])
    must_pay = [
        name for name, truth in known.items() if truth["embedded_xml"] and is_payable(truth)
    ]
    assert (len(known), len(must_pay)) == (54, 28)
    paid: dict[str, list[tuple[int, str]]] = {}
    for name, run in runs.items():
        said = report(run, name)
        assert said["decision"] in ("paid", "held", "rejected"), name
        assert said["decision"] == "paid" or said["reason"], name
        paid[name] = succeeded(run) if said["decision"] == "paid" else []
        assert said["decision"] == "paid" or payments_of(run) == [], name
    for name, truth in known.items():
        if paid[name]:
            amount = Decimal(truth["total_due"]).scaleb(DECIMALS[truth["currency"]])
            assert is_payable(truth), f"{name} was paid though it must be held"
            assert paid[name] == [(int(amount), truth["currency"].lower())], name
    assert [name for name in must_pay if not paid[name]] == []


def payments_of(run: Run) -> list[Any]:
    """What the adapters did outside: asking the far side for each file would take minutes."""
    tried = run.adapter_calls.filter(tool="stripe.create_payment_intent").exists()
    return payments(run) if tried else []


@pytest.mark.parametrize("every", [5, pytest.param(1, marks=pytest.mark.soak)])
def test_bad_documents_end_in_a_reason_and_pay_nothing_wrong(
    house: House, monkeypatch: pytest.MonkeyPatch, every: int
) -> None:
    """Read by the limited child, as hostile documents are: a part of them, and all in the soak."""
    monkeypatch.setattr(extract_step, "extract", extract)
    files = sorted((SHARED / "bad_pdfs").glob("*.pdf"))
    assert len(files) == 80
    runs = run_all(house, files[::every])
    for name, run in runs.items():
        said = report(run, name)
        assert run.state in life.TERMINAL | life.SUSPENDED, name
        assert said["decision"] in ("held", "rejected"), name
        assert said["reason"], name
        assert payments_of(run) == [], name


# --- attacks ---------------------------------------------------------------------------------


def asked(house: House) -> tuple[Program, Snapshot, str]:
    """A legitimate run that waits for its model: program, value, key."""
    run = house.new(path("plain").read_bytes(), stepping=True)
    api.start(str(run.id), "visitor")
    while house.drive(run).step != "propose":
        api.step(str(run.id), "visitor")
    api.resume(str(run.id), "visitor")
    key = Outbox.objects.get(run=run, done_ms=None).key
    return programs.program_of(run), snapshot(run), key


def judged(program: Program, now: Snapshot, key: str, proposal: object) -> str:
    """The code that a proposal is refused with; empty where it is accepted."""
    raw = json.dumps(proposal).encode()
    event = ProposalReceived(raw=raw, secret=secret("proposal"), key=key)
    context = Context(at_ms=clock.now_ms(), ledger={"workspace/EUR": 10**9})
    decision = transition(program, now, event, context)
    charged = [effect for effect in decision.effects if effect.tool != "model.propose"]
    assert bool(charged) == (decision.refusal is None)
    return decision.refusal.code if decision.refusal else ""


def test_no_attack_is_accepted_where_the_faithful_proposal_is(house: House) -> None:
    program, now, key = asked(house)
    lines = lines_of(SHARED / "attacks/proposals.jsonl")
    codes = {line["id"]: judged(program, now, key, line["proposal"]) for line in lines}
    assert len(codes) == 671
    assert [name for name, code in codes.items() if not code] == []
    unknown = [
        line["id"] for line in lines if line["should_be_stopped_by"].startswith("capability")
    ]
    assert len(unknown) == 563
    assert {codes[name][:4] for name in unknown} == {"CAP-"}
    others = [codes[line["id"]] for line in lines if line["id"] not in set(unknown)]
    assert len(others) == 108
    assert set(others) <= {"CAP-002", "CAP-003", "CAP-004", "CAP-005", "CAP-006", "POL-010"}
    good = {"amount_minor": 128_450, "currency": "EUR", "payee": "{{payee}}", "memo": "{{memo}}"}
    faithful = {"tool": "stripe.create_payment_intent", "args": good}
    assert judged(program, now, key, faithful) == ""
    for name, value in good.items():
        other = {**good, name: value + 1 if isinstance(value, int) else "{{seller}}"}
        assert judged(program, now, key, {**faithful, "args": other}) != ""
