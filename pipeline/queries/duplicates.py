"""Which run had an invoice first, for a person who decides about a repeated one."""

from collections.abc import Mapping
from dataclasses import dataclass
from uuid import UUID

from engine.models import Run
from nanovm_core.core.messages import Scalar
from nanovm_core.errors import VerificationError
from pipeline.register.bills import SIMILAR
from pipeline.reports import decision

BY = {
    "number": "same supplier and number",
    "document": "the same file",
    SIMILAR: "same supplier, and a similar number",
    "total": "same supplier, amount and date",
    "pair": "same number and amount, of another supplier",
    "account": "same amount, date and account, of another supplier",
    "tax": "same amount, date and tax id, of another supplier",
}
BECAME = {"paid": "was paid", "held": "is on hold", "rejected": "failed", "": "is in progress"}
DAMAGED = "damaged"


@dataclass(frozen=True, slots=True, kw_only=True)
class Original:
    run: str
    code: str
    decision: str  # paid, held, rejected; empty while it is open, damaged where it cannot be read
    by: str  # how the two are known to be one, in words

    @property
    def became(self) -> str:
        """What became of it, after "which"."""
        return BECAME.get(self.decision, "is damaged")

    @property
    def says(self) -> str:
        """What an approval overrides, in a sentence or two."""
        text = f"The same invoice as run {self.code}, which {self.became}: {self.by}."
        return f"{text} Approving pays it once more."


def original_of(slots: Mapping[str, Scalar]) -> Original | None:
    """The run whose invoice this is again, by a run's slots; None for the first one."""
    try:
        run = Run.objects.filter(id=UUID(str(slots.get("duplicate_of")))).first()
    except ValueError:  # none; or a snapshot that somebody changed
        return None
    if run is None:
        return None
    try:
        became = decision(run)
    except VerificationError:
        became = DAMAGED
    by = BY.get(str(slots.get("duplicate_by")), "")
    return Original(run=str(run.id), code=run.code, decision=became, by=by)
