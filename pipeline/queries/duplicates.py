"""Which run had an invoice first, for whoever decides about the same invoice again."""

from dataclasses import dataclass

from nanovm_core.core.messages import Args
from nanovm_core.errors import VerificationError
from pipeline.models import Run
from pipeline.register.bills import DOCUMENT, NUMBER, SIMILAR
from pipeline.reports import decision

BY = {
    NUMBER: "same supplier and number",
    DOCUMENT: "the same file",
    SIMILAR: "same supplier, amount and date, and a similar number",
}
BECAME = {"paid": "paid", "held": "on hold", "rejected": "failed"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Original:
    """The run that had an invoice first; ``by``: in words, how the two are known to be one."""

    run: str
    code: str
    became: str  # paid, on hold, failed, in progress; damaged
    by: str


def original_of(slots: Args) -> Original | None:
    """The run whose invoice this is again, by a run's slots; None for the first one."""
    run_id = slots.get("duplicate_of")
    if not run_id:
        return None
    run = Run.objects.get(id=str(run_id))
    try:
        became = BECAME.get(decision(run), "in progress")
    except VerificationError:
        became = "damaged"
    by = BY.get(str(slots.get("duplicate_by")), "")
    return Original(run=str(run.id), code=run.code, became=became, by=by)
