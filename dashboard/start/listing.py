"""The list of runs: its filters and search, its pages, and the same as a CSV file."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.core.paginator import Paginator
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import render
from django.utils.http import urlencode

from dashboard.start import calls as start_calls
from dashboard.templatetags.show import moment
from dashboard.verdicts import cards
from dashboard.web import workspace
from dashboard.web.downloads import attached, streamed
from dashboard.web.pages import page, page_number, unknown
from engine.models import Workspace
from engine.privacy import expiry
from engine.queries import runs
from nanovm_core.errors import VerificationError
from pipeline.queries import named, run_list, search, suppliers
from pipeline.queries.run_list import Asked, RunList
from pipeline.register import csv_files
from reader.currencies import DECIMALS, decimal_text

FIELDS = ("state", "attack", "supplier", "q", "sort")
SORTS = {
    "newest": "Newest first",
    "oldest": "Oldest first",
    "amount": "Largest amount",
    "supplier": "Supplier, A to Z",
    "state": "State",
}
COLUMNS = ("run", "supplier", "invoice_number", "amount", "currency", "state", "started_utc")


@dataclass(frozen=True, slots=True, kw_only=True)
class Typed:
    """What an address asks for, as text; ``wrong`` is the sentence where it asks for nothing."""

    texts: Mapping[str, str]
    asked: Asked
    supplier: str = ""  # its name, where the list is narrowed to one
    wrong: str = ""

    @property
    def query(self) -> str:
        """The address without the number of the page."""
        return urlencode({name: value for name, value in self.texts.items() if value})

    @property
    def filters(self) -> str:
        """What it is narrowed to, in words."""
        said = {"state": "state", "attack": "attacked by", "q": "search"}
        shown = [f"{said[each]} “{self.texts[each]}”" for each in said if self.texts[each]]
        return ", ".join(shown + [f"supplier “{self.supplier}”"] * bool(self.supplier))


def shown(request: HttpRequest) -> HttpResponse:
    """The page of the list that an address asks for."""
    owner = workspace.existing(request)
    typed = typed_in(request, owner)
    found, wrong = _found(owner, typed)
    pages = Paginator(range(found.pages), 1)
    calls = _call(owner, typed.asked.q)
    if not wrong and typed.asked.q and not (found.total or calls):
        wrong = search.nothing_found(typed.asked.q)
    context = {
        "typed": typed,
        "wrong": wrong,
        "page": found,
        "rows": rows(found.runs),
        "calls": calls,
        "lines": [] if typed.query or found.page > 1 else start_calls.newest(owner),
        "numbers": pages.get_elided_page_range(found.page, on_each_side=2, on_ends=1),
        "states": [(each, each.upper(), found.states.get(each, 0)) for each in runs.FILTERS],
        "all": sum(found.states.values()),
        "injectors": (*cards.INJECTORS,),
        "sorts": SORTS,
        "expiry": expiry.of(owner.id if owner else None),
    }
    return render(request, "start/runs.html", context)


def _call(owner: Workspace | None, q: str) -> list[Any]:
    """The foreign agent's call that a run code names, as a row; else nothing."""
    run = runs.by_code(owner.id, search.code_of(q)) if owner and search.code_of(q) else None
    return start_calls.rows([run]) if run else []


@page
def csv_file(request: HttpRequest) -> HttpResponseBase:
    """All runs that the same address as a page would list, in its order."""
    owner = workspace.existing(request)
    typed = typed_in(request, owner)
    if typed.wrong:
        raise Http404(typed.wrong)
    parts = _csv(owner, typed.asked)
    return attached(streamed(request, parts, "text/csv; charset=utf-8"), "runs.csv")


def rows(found: tuple[runs.RunHead, ...]) -> list[dict[str, Any]]:
    """Runs with what people call them, and how often each was attacked."""
    counts = cards.attacked(run_id__in=[run.id for run in found])
    names = named.of_runs(found)
    return [{"run": run, "named": names[run.id], "attacks": counts.get(run.id, 0)} for run in found]


def typed_in(request: HttpRequest, owner: Workspace | None) -> Typed:
    """What an address asks for; an unknown value is named with those that there are."""
    most = {"q": search.CHARS_MAX + 1}
    given = {name: search.cleaned(request.GET.get(name, "")) for name in FIELDS}
    texts = {name: text[: most.get(name, 40)] for name, text in given.items()}
    number, not_one = page_number(request)
    line = _supplier(owner, texts["supplier"])
    wrong = (
        unknown("State", texts["state"], runs.FILTERS)
        or unknown("Attacked by", texts["attack"], cards.INJECTORS)
        or unknown("Sort by", texts["sort"], SORTS)
        or not_one
        or ("You have no such supplier. Open it from the register." if line == "" else "")
        or search.fault(texts["q"])
    )
    attacks = {"run__workspace": owner, "injector": texts["attack"]}
    asked = Asked(
        state=texts["state"],
        supplier=UUID(texts["supplier"]) if line else None,
        runs=[*cards.attacked(**attacks)] if texts["attack"] else None,
        q=texts["q"],
        sort=texts["sort"] or "newest",
        page=number,
    )
    return Typed(texts=texts, asked=asked, supplier=line or "", wrong=wrong)


def _supplier(owner: Workspace | None, text: str) -> str | None:
    """The name of the supplier that an address names; empty for none of yours, None for no name."""
    if not text:
        return None
    line = suppliers.line(owner, UUID(text)) if runs.UUID_FORM.fullmatch(text) else None
    if line is None:
        return ""
    return line.details.name if line.details else line.row.code


def _found(owner: Workspace | None, typed: Typed) -> tuple[RunList, str]:
    """The page of the list, and the sentence where there is none."""
    if typed.wrong:
        return RunList(), typed.wrong
    try:
        return run_list.page(owner, typed.asked), ""
    except VerificationError as error:
        return RunList(), f"{error.text} Ask the operator to run manage.py fsck."


def _csv(owner: Workspace | None, asked: Asked) -> Iterator[bytes]:
    yield csv_files.line(COLUMNS)
    for some in run_list.every(owner, asked) if owner else ():
        names = named.of_runs(some)
        for run in some:
            yield csv_files.line(_cells(run, names[run.id]))


def _cells(run: runs.RunHead, name: named.Named) -> tuple[str, ...]:
    """A line of the file; the amount in plain digits, as spreadsheets add it up."""
    amount, currency = run.slots.get("amount_minor"), str(run.slots.get("currency", ""))
    is_amount = type(amount) is int and currency in DECIMALS
    digits = decimal_text(int(amount), currency) if is_amount and amount is not None else ""
    began = moment(run.created_ms)
    started = f"{began:%Y-%m-%d %H:%M:%S}" if began else ""
    return (run.code, name.supplier, name.number, digits, currency, run.label, started)
