"""What the gallery reads of several runs at once: what stopped them, what they paid, and where."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from nanovm_core.budget import Accounts
from nanovm_core.capabilities import check_provenance
from nanovm_core.gate.passage import Passage
from pipeline.models import Run
from pipeline.reports import decision
from sabotage.deciders import ROOT, place
from sabotage.deciders import where as where_of
from sabotage.evidence import Sealed, sealed_since
from sabotage.far_side import FarSide, far_side
from sabotage.gallery.stage import now
from sabotage.integrity import breaches

# Rules that another process decided, in a function that does not name them by their own text.
DECIDERS: Mapping[str, Callable[..., Any]] = {
    "BUD-001": Accounts.require,
    "BUD-002": Accounts.require,
    "BUD-003": Accounts.begin_step,
    "BUD-004": Accounts.require,
    "CAP-005": Passage.judge,
    "POL-010": check_provenance,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How one of several runs stands, with what the far side holds of it."""

    run: Run
    sealed: tuple[Sealed, ...]
    far: FarSide

    @property
    def stopped_by(self) -> Sealed | None:
        """The first envelope that names a rule: what stopped the run, if anything did."""
        return next((each for each in self.sealed if each.rule), None)

    @property
    def paid_minor(self) -> int:
        return sum(each.amount_minor for each in self.far.succeeded)

    def told(self) -> dict[str, object]:
        """The run in a line of evidence."""
        stopped = self.stopped_by
        return {
            "run": self.run.code,
            "end": decision(self.run),
            "rule": stopped.rule if stopped else "",
            "payments": self.far.in_words(),
        }


def ended(run: Run) -> Ended:
    """Look at a run of the attack's own."""
    run = now(run)
    return Ended(run=run, sealed=sealed_since(run, 0), far=far_side(run))


def got_out(others: Iterable[Ended]) -> tuple[str, ...]:
    """What got out of runs besides the one that was fired at, a sentence each."""
    return tuple(text for each in others for text in breaches(each.run, each.far))


def paid(runs: Iterable[Ended]) -> list[dict[str, object]]:
    """Every payment that the far side holds of these runs, as evidence keeps them."""
    return [
        {"run": each.run.code, "amount_minor": one.amount_minor, "currency": one.currency}
        for each in runs
        for one in each.far.succeeded
    ]


def first_stop(runs: Sequence[Ended]) -> Sealed | None:
    """What stopped the first of these runs that was stopped."""
    return next((each.stopped_by for each in runs if each.stopped_by), None)


def where(rule: str) -> str:
    """``file.py:line function`` of what decides this rule."""
    if not rule:
        return ""
    function = DECIDERS.get(rule)
    return place(function, rule) if function is not None else where_of(rule)


def raised_at(error: BaseException) -> str:
    """``file.py:line function`` of what raised an error: the line that decided."""
    trace: TracebackType | None = (error.__cause__ or error).__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None:
        return ""
    code = trace.tb_frame.f_code
    return f"{_from_root(code.co_filename)}:{trace.tb_lineno} {code.co_name}"


def _from_root(file: str) -> str:
    path = Path(file)
    return path.relative_to(ROOT).as_posix() if path.is_relative_to(ROOT) else path.name
