"""New runs over invoices: the document sealed, and the run made under the invoices' program."""

from engine.entropy import uuid7
from engine.models import Run, Workspace
from engine.runtime.create_run import NewRun, make_run
from engine.vault import secret_store
from pipeline.application import INVOICES
from pipeline.steps import advise


def create_run(
    workspace: Workspace,
    document: bytes,
    file_name: str,
    *,
    model: str = "faithful",
    proposal: bytes = b"",
    payment_method: str = "pm_card_visa",
    pace_ms: int = 0,
    policy: str = "default",
    stepping: bool = False,
    started_by: str = "",
    text_accepted: bool = False,
    advisor: str = advise.NONE,
) -> Run:
    """Make a run over a document: its genesis sealed, nothing begun; READY, or ``started_by`` one.

    ``proposal`` is what a compromised model will say; it lies in the vault like all a model says.
    ``text_accepted``: whoever submits the document accepts what it says. ``advisor``: who says how
    risky the payment is. A bad document is no error here: step ``receive`` says what is wrong.
    """
    run = uuid7()
    given = {"file_name": file_name.encode("utf-8", "replace"), "document": document}
    if proposal:
        given["planted"] = proposal
    sealed = secret_store.seal_values(str(run), workspace.origin, given)
    sealed["document"] = secret_store.in_a_file(sealed["document"])
    slots = {slot: each.ref for slot, each in sealed.items()} | {"advisor": advisor}
    new = NewRun(
        workspace=workspace,
        program=INVOICES.source(),
        policy=INVOICES.policy_source(policy),
        slots={**slots, "payment_method": payment_method, "text_accepted": text_accepted},
        sealed=tuple(sealed.values()),
        model=model,
        pace_ms=pace_ms,
        stepping=stepping,
        started_by=started_by,
    )
    return make_run(new, run).run
