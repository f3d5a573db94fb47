"""The list of a workspace's runs: filtered, searched, sorted, counted and summed.

It reads the narrow rows that ``register.found`` keeps, and opens what one page shows.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from uuid import UUID

from django.db.models import Case, Count, OrderBy, QuerySet, Sum, Value, When
from django.db.models.expressions import Combinable

from engine.models import Workspace
from engine.queries.runs import FILTERS, RunHead, listed, logs_of
from pipeline.models import Listed
from pipeline.queries import search
from pipeline.register import suppliers
from pipeline.register.found import plain
from reader.currencies import shown

SIZE = 50
CHUNK_ROWS = 200  # runs of a file that are opened at a time
_PLACE = Case(*(When(state=name, then=Value(at)) for at, name in enumerate(FILTERS)))
_UNREAD = Case(When(amount_minor=None, then=Value(1)), default=Value(0))
ORDERS: Mapping[str, tuple[str | Combinable | OrderBy, ...]] = {
    "newest": ("-run",),
    "oldest": ("run",),
    "amount": (_UNREAD, "currency", "-amount_minor", "-run"),
    "supplier": (),  # by the register: see ``_by_supplier``
    "state": (_PLACE, "-run"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What a list is narrowed to, and how it is sorted; what is empty narrows nothing."""

    state: str = ""
    supplier: UUID | None = None
    runs: Sequence[str] | None = None  # these alone
    q: str = ""
    sort: str = "newest"
    page: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class RunList:
    """A page of the runs that match, and what all of them add up to.

    ``paid``: the sum of what was paid, of each currency. ``states``: how many there are of each
    state where nothing is narrowed to one.
    """

    runs: tuple[RunHead, ...] = ()
    total: int = 0
    paid: tuple[str, ...] = ()
    states: Mapping[str, int] = field(default_factory=dict)
    page: int = 1
    pages: int = 1


def page(workspace: Workspace | None, asked: Asked, size: int = SIZE) -> RunList:
    """One page; the last one where there are fewer.

    Raises:
        VerificationError: PII-002, where the key of the searched words is damaged.
    """
    if workspace is None:
        return RunList()
    rows = _matching(workspace, asked)
    states, paid = Counter[str](), Counter[str]()
    sums = rows.values_list("state", "currency", "paid")
    for state, currency, is_paid, count, minor in sums.annotate(
        n=Count("run"), m=Sum("amount_minor")
    ):
        states[state] += count
        if is_paid and asked.state in ("", state):
            paid[currency] += minor or 0
    total = states[asked.state] if asked.state else states.total()
    pages = max(1, -(-total // size))
    number = min(asked.page, pages)
    ids = _ids(workspace, asked, rows, (number - 1) * size, number * size)
    return RunList(
        runs=listed(ids),
        total=total,
        paid=tuple(shown(minor, currency) for currency, minor in sorted(paid.items())),
        states=states,
        page=number,
        pages=pages,
    )


def newest(workspace: Workspace | None, size: int) -> tuple[RunHead, ...]:
    """The newest runs; nothing is counted."""
    if workspace is None:
        return ()
    return listed(_ids(workspace, Asked(), _matching(workspace, Asked()), 0, size))


def every(workspace: Workspace, asked: Asked) -> Iterator[tuple[RunHead, ...]]:
    """All runs that match, in order, some at a time."""
    rows = _matching(workspace, asked)
    ids = _ids(workspace, asked, rows, 0, None)
    for at in range(0, len(ids), CHUNK_ROWS):
        yield listed(ids[at : at + CHUNK_ROWS])


def _matching(workspace: Workspace, asked: Asked) -> "QuerySet[Listed]":
    """The rows of what is asked for, in any state."""
    rows = Listed.objects.filter(workspace_id__in=logs_of(workspace.id))
    if asked.runs is not None:
        rows = rows.filter(run_id__in=asked.runs)
    if asked.supplier is not None:
        rows = rows.filter(supplier=asked.supplier)
    if not asked.q.strip():
        return rows
    code = search.code_of(asked.q)
    exact = rows.filter(code=code) if code else rows.none()
    return exact if code and exact.exists() else rows.filter(search.condition(workspace, asked.q))


def _ids(
    workspace: Workspace, asked: Asked, rows: "QuerySet[Listed]", start: int, end: int | None
) -> list[UUID]:
    rows = rows.filter(state=asked.state) if asked.state else rows
    if asked.sort == "supplier":
        return _by_supplier(workspace, rows, start, end)
    return [*rows.order_by(*ORDERS[asked.sort]).values_list("run_id", flat=True)[start:end]]


def _by_supplier(
    workspace: Workspace, rows: "QuerySet[Listed]", start: int, end: int | None
) -> list[UUID]:
    """By the names in the register, which alone is opened; runs of no supplier come last."""
    counts = dict(rows.values_list("supplier").annotate(n=Count("run")))
    found: list[UUID] = []
    at = 0
    for supplier in sorted(counts, key=_names(workspace)):
        below, count = at, counts[supplier]
        at += count
        if at > start and (end is None or below < end):
            own = rows.filter(supplier=supplier).order_by("-run").values_list("run_id", flat=True)
            found += own[max(0, start - below) : count if end is None else end - below]
    return found


def _names(workspace: Workspace) -> Callable[[UUID | None], tuple[bool, str, str]]:
    """The key of the order: those without a name that can be read are last, by their id."""
    readable = suppliers.readable(workspace)
    names: dict[UUID | None, str] = {each.row.id: plain(each.details.name) for each in readable}
    return lambda each: (each not in names, names.get(each, ""), str(each or "~"))
