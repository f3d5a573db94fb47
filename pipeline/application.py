"""The invoices as the engine runs them: program, policies, adapters, and the register."""

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from django.conf import settings

from engine.application import DEFAULT, Adapter, Application, ErasableRows
from engine.models import Run, Workspace
from engine.privacy import crypto_shred, journal
from engine.store import programs, sql
from nanovm_core.core.envelope import decode_snapshot
from nanovm_core.core.messages import Snapshot
from pipeline import labels
from pipeline.models import Bill, Found, Listed, Register, Supplier, SupplierIndex
from pipeline.register import audit, erasure, found, index, suppliers, versions
from pipeline.steps import advise, seal
from pipeline.steps.propose import model_adapters, model_endpoint
from pipeline.steps.reasons import REASONS, RULES
from reader import currencies, sandbox

FOLDER = Path(__file__).parent
AT_STRIPE = {  # by what the run knows of its payment
    None: "the payment record at Stripe",
    True: "the payment record at Stripe, which names the supplier's account there",
    False: "the payment record at Stripe, which does not know the payee",
}


def paid(asked: Mapping[str, Any], out: Mapping[str, Any]) -> tuple[str, int] | None:
    """Currency and amount of a charge, as its sealed call asks, where Stripe says it succeeded."""
    minor, currency = asked.get("amount_minor"), str(asked.get("currency"))
    is_made = out.get("payment_status") == "succeeded" and currency in currencies.DECIMALS
    if not is_made or type(minor) is not int or not 0 < minor <= currencies.AMOUNT_MINOR_MAX:
        return None
    return currency, minor


class Invoices(Application):
    """A PDF invoice becomes a payment in seven steps, to a supplier of the register."""

    name = "invoice_payment"
    program_file = FOLDER / "invoice_payment.toml"
    policy_files = {name: FOLDER / "policies" / f"{name}.toml" for name in (DEFAULT, "no_limits")}
    paying = {labels.CHARGE: paid}
    slow_tools = frozenset({"invoice.extract"})  # up to ten seconds of a core for a document
    tables = {
        Register: ("workspace_id",),
        Supplier: ("id", "workspace_id"),
        SupplierIndex: ("id", "workspace_id", "supplier_id"),
        Bill: ("id", "run_id", "workspace_id", "supplier_id"),
        Listed: ("workspace_id", "run_id"),
        Found: ("workspace_id", "word", "run_id"),
    }
    key_owners = {versions.SUBJECT: Supplier, index.SUBJECT: Workspace}
    erasable = (ErasableRows(erasure.of_visitors, erasure.erase_supplier),)
    why_kept = labels.WHY_KEPT
    labels = labels.ALL
    codes = (*RULES, *REASONS)
    worker_started = staticmethod(sandbox.start_ahead)
    disclosed = staticmethod(suppliers.disclosed)
    recorded = staticmethod(found.record)
    upgraded = staticmethod(found.fill)
    erased = staticmethod(found.forget_run)
    audit_log = staticmethod(audit.log_damage)
    audit_run = staticmethod(audit.run_damage)
    audit_journal = staticmethod(audit.undone)

    def policy_file(self, name: str) -> Path:
        """The policy's file; in place of the default one, the file that NANOVM_POLICY names."""
        if name == DEFAULT and settings.NANOVM_POLICY is not None:
            return Path(settings.NANOVM_POLICY)
        return super().policy_file(name)

    def adapters(self) -> Mapping[str, Adapter]:
        from pipeline.steps import adapters  # with Stripe's client, which few commands need

        return adapters.ADAPTERS

    def questions(self) -> Mapping[str, Any]:
        from pipeline.steps import adapters

        return adapters.ASKED

    def terms(self, run: Run, now: Snapshot) -> Mapping[str, str]:
        """The stored document, and the register's entry of the supplier."""
        from pipeline.steps import approvals

        return {"document": approvals.document(now), "supplier": approvals.supplier(run, now)}

    def sweep(self) -> None:
        from pipeline.after_payment import far_side

        far_side.sweep()

    def tidy(self) -> None:
        from pipeline.after_payment import webhooks

        webhooks.forget_old()

    def amount(self, values: Mapping[str, Any]) -> str:
        amount, currency = values.get("amount_minor"), values.get("currency")
        if type(amount) is not int or not isinstance(currency, str):
            return ""
        return currencies.shown(amount, currency)

    def instruction(self, model: str) -> str:
        return model_endpoint.INSTRUCTION if model == model_adapters.ENDPOINT else ""

    def passed_over(self, slots: Mapping[str, Any]) -> frozenset[str]:
        return frozenset({advise.STEP} if slots.get("advisor", advise.NONE) == advise.NONE else ())

    def sent_beside(self, tool: str) -> Sequence[str]:
        return ("run", "code", "key") if tool == labels.CHARGE else ()

    def files_of(self, run_id: str) -> Sequence[Path]:
        return [seal.advice_file(run_id)]

    def kept(self, run: Run) -> tuple[str, ...]:
        confirmed = decode_snapshot(bytes(run.snapshot)).slots.get("payee_confirmed")
        at_stripe = AT_STRIPE[confirmed if isinstance(confirmed, bool) else None]
        return ("the supplier's entry in the register: erase the supplier too", at_stripe)

    def counted(self) -> Mapping[str, int]:
        return {"suppliers": sql.execute("SELECT COUNT(*) FROM pipeline_supplier")[0][0]}

    def came_back(self) -> int:
        return sum(1 for _ in erasure.there_again())

    def erase_again(self) -> tuple[str, ...]:
        left = erasure.all_again()
        _, failed = crypto_shred.unlinked(seal.advice_of_the_erased())
        return (*left, *(f"{place}: {said}" for place, said in failed.items()))

    def hand_over(self, old: Workspace, new: Workspace, actor: str) -> None:
        """Register the suppliers anew, and move the claims: their suppliers keep id and key."""
        suppliers.take_over(old, new, besides=journal.subjects(erasure.KIND), actor=actor)
        Bill.objects.filter(workspace=old).update(workspace=new)


INVOICES = Invoices()
EVERY_STEP = tuple(programs.compiled(INVOICES.source()).steps)
STEPS = tuple(name for name in EVERY_STEP if name != advise.STEP)  # those of every run, in order
current = partial(programs.current, INVOICES)
