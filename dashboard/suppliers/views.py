"""The list of suppliers, one of them, and what changes them."""

from dataclasses import asdict, dataclass, replace
from typing import Any
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from dashboard.verdicts.verdict_card import rule_of
from dashboard.web import erasing, workspace
from dashboard.web.downloads import attached
from dashboard.web.idempotency import once
from dashboard.web.pages import own_supplier, page, page_and_form, page_number, posted, see_other
from engine.privacy.certificate import Certificate
from nanovm_core.errors import NanovmError, VerificationError
from pipeline.queries import named, run_list
from pipeline.queries import suppliers as listed
from pipeline.queries.run_list import Asked
from pipeline.queries.suppliers import SupplierLine
from pipeline.register import csv_files, known_text, suppliers
from pipeline.register import erasure as supplier_erasure
from pipeline.register.csv_files import Fault, FaultyFileError
from pipeline.register.details import CHARS_MAX, Details, DetailsError, checked
from pipeline.register.versions import Entry
from pipeline.steps import approvals

HOME = "/suppliers/"
LABELS = {"name": "Name", "tax_id": "Tax id", "iban": "IBAN", "email": "E-mail"}
FAULTS_SHOWN_MAX = 50
INVOICES_SHOWN = 10
CHANGED = "The supplier was changed after you opened this page."


class StaleError(Exception):
    """The form shows older details than the registered ones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """What was not done, and why: the rule says what to do next."""

    title: str
    text: str
    code: str = ""
    status: int = 409

    @property
    def rule(self) -> Any:
        return rule_of(self.code) if self.code else None

    @property
    def fields(self) -> set[str]:
        """The fields that the text names first."""
        named = {each.split(" ", 1)[0] for each in self.text.split("; ")}
        return named & {*LABELS} if self.code == "SUP-001" else set()

    @property
    def said(self) -> str:
        """The text with the fields as the form calls them."""
        return _relabelled(self.text) if self.fields else self.text


@page_and_form
def listing(request: HttpRequest) -> HttpResponse:
    """The visitor's suppliers (GET); register one (POST)."""
    if request.method != "POST":
        return _listed(request)
    typed = _typed(request)
    try:
        checked(Details.of(typed))  # before a workspace is made for it
        return see_other(once(request, HOME, lambda owner: _url(_registered(owner.id, typed))))
    except NanovmError as error:
        return _listed(request, typed=typed, problem=_problem("Not registered.", error))


@posted
def preview_file(request: HttpRequest) -> HttpResponse:
    """Show what a CSV file would register; each faulty line is named, and nothing is stored."""
    sent = request.FILES.get("file")
    if sent is None:
        said = {"title": "Nothing was imported.", "text": "Choose a CSV file first."}
        return _listed(request, import_problem=Problem(**said, status=422))
    owner = workspace.existing(request)
    try:
        table = csv_files.parse(sent.read(csv_files.BYTES_MAX + 1))
    except FaultyFileError as faulty:
        return _faulty(request, faulty.faults)
    if owner and (found := csv_files.registered(owner, table)):
        return _faulty(request, found)
    preview = {"table": table, "rows": csv_files.csv_text(table.suppliers).decode()}
    return _listed(request, preview=preview)


@posted
def import_file(request: HttpRequest) -> HttpResponse:
    """Register the suppliers that were shown: all of them, or none and each faulty line named."""
    data = request.POST.get("rows", "").encode()
    try:
        csv_files.parse(data)  # before a workspace is made for it
        return see_other(once(request, HOME, lambda owner: _imported(owner.id, data)))
    except FaultyFileError as faulty:
        return _faulty(request, faulty.faults)
    except VerificationError as error:
        return _listed(request, import_problem=_problem("Nothing was imported.", error))


def _faulty(request: HttpRequest, found: tuple[Fault, ...]) -> HttpResponse:
    faults = [Fault(each.line, _relabelled(each.text)) for each in found[:FAULTS_SHOWN_MAX]]
    return _listed(request, faults=faults, fault_count=len(found), status=422)


@page
def export(request: HttpRequest) -> HttpResponse:
    """The details of every supplier that can be read, as a CSV file that can be imported."""
    owner = workspace.existing(request)
    found = suppliers.readable(owner) if owner else []
    theirs = [each for each in found if each.row.state != suppliers.OWN]
    data = csv_files.csv_text(each.details for each in theirs)
    return attached(HttpResponse(data, content_type="text/csv; charset=utf-8"), "suppliers.csv")


@page_and_form
def one(request: HttpRequest, supplier_id: UUID) -> HttpResponse:
    """A supplier (GET); give it other details (POST)."""
    line = own_supplier(request, supplier_id, or_company=True)
    if request.method != "POST":
        return _page(request, line)
    typed = _typed(request)
    seen = request.POST.get("seen", "")
    try:
        return see_other(once(request, _url(line.row.id), lambda _: _changed(line, typed, seen)))
    except StaleError:
        problem = Problem(title="Not changed.", text=CHANGED)
    except NanovmError as error:
        problem = _problem("Not changed.", error)
    return _page(request, line, typed=typed, problem=problem)


@posted
def block(request: HttpRequest, supplier_id: UUID, event: str) -> HttpResponse:
    """Block payments to a supplier, or unblock them."""
    line = own_supplier(request, supplier_id)
    act = {"block": suppliers.block, "unblock": suppliers.unblock}[event]

    def done(_: object) -> str:
        act(_entry(line), actor="visitor")
        approvals.judge_all_again(line.row.workspace_id)
        return _url(line.row.id)

    try:
        return see_other(once(request, _url(line.row.id), done))
    except NanovmError as error:
        return _page(request, line, problem=_problem(f"Not {event}ed.", error))


@posted
def fix(request: HttpRequest, supplier_id: UUID) -> HttpResponse:
    """Stop a text from varying, or forget all that was accepted, from the next invoice on."""
    line, mark = own_supplier(request, supplier_id), request.POST.get("mark", "")

    def done(_: object) -> str:
        entry = _entry(line)
        known = entry.details.known
        known = known_text.NOTHING_KNOWN if mark == "all" else known.without_varying(mark)
        details = replace(entry.details, known=known)
        suppliers.change(entry, details, actor="visitor", event=suppliers.ACCEPTED)
        return _url(line.row.id)

    try:
        return see_other(once(request, _url(line.row.id), done))
    except NanovmError as error:
        return _page(request, line, problem=_problem("Not changed.", error))


@page_and_form
def erase(request: HttpRequest, supplier_id: UUID) -> HttpResponse:
    """What an erasure destroys and keeps (GET); erase (POST, with the typed confirmation)."""
    row = own_supplier(request, supplier_id).row

    def act(reason: str) -> Certificate:
        return supplier_erasure.erase_supplier(row, reason, "visitor")

    def show(errors: erasing.Words, status: int) -> HttpResponse:
        line = own_supplier(request, supplier_id)
        at = f"/suppliers/{row.id}/"
        context = {
            "line": line,
            "certificate": supplier_erasure.newest(line.row),
            "unfinished": supplier_erasure.is_unfinished(line.row),
            "kept": supplier_erasure.KEPT,
            **erasing.form_of(request, row.code, f"{at}erase/", at, errors),
        }
        return render(request, "suppliers/erase.html", context, status=status)

    if request.method != "POST":
        return show({}, 200)
    return erasing.erase(request, row.code, f"/suppliers/{row.id}/certificate/", act, show)


@page
def certificate(request: HttpRequest, supplier_id: UUID) -> HttpResponse:
    """The newest certificate of a supplier's erasure, as a page or as JSON."""
    line = own_supplier(request, supplier_id)
    made, name = supplier_erasure.newest(line.row), f"erasure-supplier-{line.row.code}"
    at = f"/suppliers/{line.row.id}/erase/"
    return erasing.certificate(request, made, at, name, {"line": line})


def _listed(request: HttpRequest, *, status: int = 200, **said: Any) -> HttpResponse:
    problem = said.get("problem") or said.get("import_problem")
    owner, (number, wrong) = workspace.existing(request), page_number(request)
    context = {
        "wrong": wrong,
        "page": listed.page(owner, number),
        "company": listed.company(owner),
        "fields": _fields(said),
        "columns": ", ".join(csv_files.COLUMNS),
    }
    status = problem.status if problem else status
    return render(request, "suppliers/list.html", {**context, **said}, status=status)


def _page(request: HttpRequest, line: SupplierLine, **said: Any) -> HttpResponse:
    fields = _fields(said, line.details)
    if line.is_company:  # nobody pays it here
        fields = [each for each in fields if each["name"] in ("name", "tax_id")]
    found = run_list.page(workspace.existing(request), Asked(supplier=line.row.id), INVOICES_SHOWN)
    invoices = [
        (each, names[each.id]) for names in [named.of_runs(found.runs)] for each in found.runs
    ]
    context = {"line": line, "fields": fields, "found": found, "invoices": invoices}
    status = said["problem"].status if "problem" in said else 200
    return render(request, "suppliers/supplier.html", {**context, **said}, status=status)


def _fields(said: dict[str, Any], now: Details | None = None) -> list[dict[str, Any]]:
    """The fields of the form: what is registered, what was typed, and whether that is at fault."""
    registered = asdict(now) if now else {}
    typed = said.get("typed") or registered
    wrong = said["problem"].fields if said.get("problem") else set()
    return [
        {
            "name": name,
            "label": label,
            "now": registered.get(name, ""),
            "value": typed.get(name, ""),
            "wrong": name in wrong,
        }
        for name, label in LABELS.items()
    ]


def _typed(request: HttpRequest) -> dict[str, str]:
    return {name: request.POST.get(name, "")[: CHARS_MAX + 1] for name in LABELS}


def _registered(workspace_id: UUID, typed: dict[str, str]) -> UUID:
    (entry,) = suppliers.register(workspace_id, [Details.of(typed)], actor="visitor")
    approvals.judge_all_again(workspace_id)
    return entry.row.id


def _imported(workspace_id: UUID, data: bytes) -> str:
    csv_files.import_csv(workspace_id, data, actor="visitor")
    approvals.judge_all_again(workspace_id)
    return HOME


def _changed(line: SupplierLine, typed: dict[str, str], seen: str) -> str:
    entry = _entry(line)
    if line.is_erased:
        raise DetailsError("SUP-003", "The supplier was erased; register it anew.")
    if seen != str(line.row.sealed_n):
        raise StaleError
    new = Details.of({**entry.details.texts(), **typed}, entry.details.known)
    suppliers.change(entry, new, actor="visitor")
    approvals.judge_all_again(line.row.workspace_id)
    return _url(line.row.id)


def _entry(line: SupplierLine) -> Entry:
    """The supplier to change; SUP-003 or PII-002 where its details cannot be read."""
    if line.is_damaged:
        text = "The supplier's row is not what the audit log says."
        raise VerificationError("PII-002", text, at=-1)
    return Entry(row=line.row, details=line.details or Details(name=""))


def _url(supplier_id: UUID) -> str:
    return f"{HOME}{supplier_id}/"


def _problem(title: str, error: NanovmError) -> Problem:
    typed = isinstance(error, DetailsError) and error.code != "SUP-003"
    return Problem(title=title, text=error.text, code=error.code, status=422 if typed else 409)


def _relabelled(text: str) -> str:
    """A fault of the register's, with the fields as the form calls them."""
    return "; ".join(map(_labelled, text.split("; ")))


def _labelled(part: str) -> str:
    name, _, rest = part.partition(" ")
    label = LABELS.get(name.lower())
    return f"{label} {rest}" if label else part
