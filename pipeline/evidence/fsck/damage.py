"""One bad place in what is stored, as the audit reports it."""

from dataclasses import dataclass

from nanovm_core.errors import VerificationError


@dataclass(frozen=True, slots=True, kw_only=True)
class Damage:
    """One bad place. ``explained``: an ``integrity`` envelope of that run already names it."""

    log: str
    run: str
    at: int
    code: str
    text: str
    expected: str = ""
    found: str = ""
    explained: bool = False

    @classmethod
    def of(
        cls, log: str, run: str, fault: VerificationError, *, explained: bool = False
    ) -> "Damage":
        """The place that a refused verification names."""
        return cls(
            log=log,
            run=run,
            at=fault.at,
            code=fault.code,
            text=fault.text,
            expected=fault.expected,
            found=fault.found,
            explained=explained,
        )
