"""Why an invoice is held: every rule with the values that it is about, and what is asked."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from engine.application import amount_of
from engine.models import Run, Workspace
from engine.queries.runs import RunHead
from engine.store import programs
from nanovm_core.core.authority.policy import PolicyRule
from nanovm_core.core.envelope import decode_snapshot
from nanovm_core.core.messages import Scalar
from nanovm_core.errors import VerificationError
from pipeline.register import suppliers
from pipeline.reports import held_by, original_of
from pipeline.steps import approvals, identify, pointing
from pipeline.steps.approvals import Approvable
from reader import Extraction
from reader.holds import explained
from reader.invoice import Reading
from reader.known_text.unit import Edges

PAGES_MAX = 5  # that are shown, of those with something to look at
AROUND = 2.0  # points around what is marked
MARGIN = 48.0  # around all that is marked on a page
BY_NOW = {  # what the register says of a supplier
    identify.KNOWN: "The register has this supplier now, with the account on the invoice.",
    identify.UNKNOWN: "The register does not have this supplier any more.",
    identify.CHANGED: "The register has another account for the supplier than the invoice names.",
    identify.BLOCKED: "The supplier is blocked.",
    identify.SHARED: "Another supplier of the register has the same account.",
}
OTHER_TEXTS = "What is accepted of this supplier's invoices is not the same any more."


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A field that a person is asked for: what was read, and what it may be, each by number."""

    name: str
    label: str
    read: str
    choices: tuple[tuple[int, Reading], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PageMark:
    """A place on a page in points, and what is printed there; a reading has its number, else -1."""

    box: tuple[float, float, float, float]  # left, top, width, height
    text: str
    number: int = -1
    field: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkedPage:
    """A page of this size in points, with the places that a person has to look at."""

    number: int
    width: float
    height: float
    marks: tuple[PageMark, ...]

    @property
    def part(self) -> Edges:
        """Left, top, width and height of the part that has them all."""
        boxes = [mark.box for mark in self.marks] or [(0.0, 0.0, self.width, self.height)]
        left, top = (max(0.0, min(box[at] for box in boxes) - MARGIN) for at in (0, 1))
        right = min(self.width, max(box[0] + box[2] for box in boxes) + MARGIN)
        bottom = min(self.height, max(box[1] + box[3] for box in boxes) + MARGIN)
        return left, top, right - left, bottom - top


class Reasons(NamedTuple):
    """The rules that hold a run now. ``changed`` as in HeldRun, ``four_eyes`` of its policy."""

    rules: tuple[PolicyRule, ...]
    changed: str
    four_eyes: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldRun:
    """All that a person decides by.

    ``reasons``: the rules that hold it, each with the values that it is about. ``said`` is what
    was said of the invoice before: field, value, whether its place is known.
    """

    reasons: tuple[tuple[PolicyRule, str], ...]
    asked: tuple[Asked, ...] = ()
    sheets: tuple[MarkedPage, ...] = ()
    said: tuple[tuple[str, str, bool], ...] = ()
    keeps: bool = False  # whether any place is
    changed: str = ""  # what the register says by now, where that is not what it was judged by


def hold_of(run: RunHead, values: Mapping[str, str], approval: Approvable | None) -> HeldRun | None:
    """Why a run is held; None where no rule holds it. ``values`` are its opened secrets."""
    row = Run.objects.select_related("workspace").get(id=run.id)
    fresh = approvals.fresh(row)
    rules = held_by(run, fresh)
    if not rules and not fresh:
        return None
    staged = approvals.staged_of(decode_snapshot(bytes(row.snapshot)))
    told = _values(run, values, approval, row.workspace)
    waits, points = run.held_by in approvals.STAGED, run.held_by in approvals.POINTED
    said = pointing.heard(run.slots)
    return HeldRun(
        reasons=tuple((rule, told.get(rule.id, "")) for rule in rules),
        asked=_questions(staged) if staged and waits else (),
        sheets=_sheets(staged, approval, points=points) if staged else (),
        keeps=bool(said.marks),
        changed=_by_now(fresh),
        said=tuple(
            (pointing.NAMES[name], value, name in said.marks)
            for name, value in said.values.items()
            if value
        ),
    )


def reasons_of(run: RunHead) -> Reasons:
    """Why a run is held, for a list: without its secrets."""
    row = Run.objects.select_related("workspace").get(id=run.id)
    fresh = approvals.fresh(row)
    try:
        four_eyes = programs.program_of(row).policy.four_eyes
    except VerificationError:  # damage, which is named where it is found
        four_eyes = False
    return Reasons(held_by(run, fresh), _by_now(fresh), four_eyes)


def _by_now(fresh: Mapping[str, Scalar]) -> str:
    state = str(fresh.get("supplier_state", ""))
    return BY_NOW.get(state, OTHER_TEXTS) if fresh else ""


def advised(slots: Mapping[str, object]) -> str:
    """What the advisor said, or why it said nothing; empty where none was asked."""
    score, kind, source = (slots.get(f"risk_{name}") for name in ("score", "kind", "source"))
    said = str(source or "").rstrip(".")
    return f"risk {score} of 100, kind “{kind}”, source “{said}”" if said else ""


def _values(
    run: RunHead, values: Mapping[str, str], approvable: Approvable | None, workspace: Workspace
) -> dict[str, str]:
    slots = run.slots
    original, document = original_of(slots), explained(slots.get("hold"))
    days = (("issued", slots.get("issue_date")), ("due", slots.get("due_date")))
    sum_ = amount_of(slots)
    where = "listed below" if approvable and approvable.unseen else "listed when it is the reason"
    return {
        "not-simply-payable": document,
        approvals.INCOMPLETE: document,
        approvals.FIRST_PAYMENT: _payee_text(approvable),
        approvals.CHANGED_DETAILS: _payee_text(approvable),
        approvals.SHARED_ACCOUNT: _shared(approvable),
        approvals.DUPLICATE: original.named if original else "",
        approvals.UNSEEN_TEXT: f"{slots.get('unseen', 0)} new, {where}",
        "iban-check-digits": _grouped(values.get("iban", "")),
        "other-company": f"{values.get('buyer', '')}, and not {_own_name(workspace)}",
        "implausible-dates": ", ".join(f"{name} {day}" for name, day in days if day),
        "advised-risk": advised(slots),
        "currency-not-allowed": sum_,
        "over-limit": sum_,
    }


def _payee_text(approvable: Approvable | None) -> str:
    if approvable is None:
        return ""
    registered, named = map(_grouped, (approvable.registered, approvable.named))
    if not approvable.supplier:
        return f"{approvable.name}, {named}"
    return f"{approvable.name}: registered {registered}, the invoice names {named}"


def _shared(approvable: Approvable | None) -> str:
    typed = approvable.typed if approvable else None
    if approvable is None or typed is None:
        return ""
    account = _grouped(approvable.registered or approvable.named)
    return (
        f"{approvable.name or 'This supplier'} and {typed.details.name} have one account, {account}"
    )


def _grouped(iban: str) -> str:
    return " ".join(iban[at : at + 4] for at in range(0, len(iban), 4)) or "no account"


def _own_name(workspace: Workspace) -> str:
    try:
        own = suppliers.own_company(workspace)
    except VerificationError:  # damage, which is named where it is found
        own = None
    return own.name if own else "your company"


def _questions(staged: Extraction) -> tuple[Asked, ...]:
    asked = []
    for name, read in pointing.fields_asked(staged).items():
        numbered = enumerate(staged.candidates)
        choices = tuple((number, each) for number, each in numbered if each.field == name)
        asked.append(Asked(name=name, label=pointing.NAMES[name], read=read, choices=choices))
    return tuple(asked)


def _sheets(
    staged: Extraction, approvable: Approvable | None, *, points: bool
) -> tuple[MarkedPage, ...]:
    """The pages with what to accept or to pick from; all of a picture of which nothing was read."""
    marks: dict[int, list[PageMark]] = {}
    if points:
        for number, each in enumerate(staged.candidates):
            mark = PageMark(box=_within(each.box), text=each.value, number=number, field=each.field)
            marks.setdefault(each.page, []).append(mark)
    for unit in approvable.unseen if approvable and not points else ():
        if unit.box is not None:
            marks.setdefault(unit.page, []).append(PageMark(box=_within(unit.box), text=unit.text))
    wanted = sorted(marks) or (range(1, len(staged.sizes) + 1) if points else ())
    return tuple(
        MarkedPage(number=page, width=width, height=height, marks=tuple(marks.get(page, ())))
        for page, (width, height) in enumerate(staged.sizes, 1)
        if page in wanted
    )[:PAGES_MAX]


def _within(box: Edges) -> Edges:
    """The place with a little paper around it, as left, top, width and height."""
    left, top, right, bottom = box
    around = (left - AROUND, top - AROUND, right - left + 2 * AROUND, bottom - top + 2 * AROUND)
    return tuple(round(each, 1) for each in around)  # type: ignore[return-value]
