"""One bad place in what is stored, as the audit reports it."""

from dataclasses import dataclass

from nanovm_core.errors import VerificationError

RESTORE = "If a backup was put back: run manage.py restore."


@dataclass(frozen=True, slots=True)
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
        what = (fault.at, fault.code, fault.text, fault.expected, fault.found)
        return cls(log, run, *what, explained=explained)
