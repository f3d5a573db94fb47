"""The same invoice twice: a run claims its invoice, and a later claim finds the earlier one.

An invoice is known by keyed marks alone: within a supplier under its key, which its erasure
destroys, and across suppliers under a key of the workspace; then they are emptied.
A run's claim is made once: asked again, it is the same.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import chain
from typing import NamedTuple
from uuid import UUID

from django.db import IntegrityError, transaction

from engine.models import Run
from engine.store import sql
from engine.vault.key_store import keystore
from nanovm_core.errors import VerificationError
from pipeline.models import Bill, Supplier
from pipeline.register import index, versions
from pipeline.register.details import folded

SIMILAR = "similar"  # how it is known by these two; by every other mark, as that is called
MATCHED = {"like": SIMILAR, "joined": SIMILAR}
ACROSS = ("pair", "account", "tax")  # the marks that compare across suppliers
SURE = (("document", "number"), ("like", "joined"), ("total",), ACROSS)
NUMBER_CHARS_MAX = 64  # of a number in one spelling
LOOKS = str.maketrans("OILBS", "01185")  # letters that are read for digits, and digits for them
_USED = "SELECT 1 FROM pipeline_bill WHERE"
_OTHERS = "WHERE workspace_id = %s AND run_id <> %s AND"
_VERSION, _FORMER = b"nanovm/bill/v2\0", b"nanovm/bill/v1\0"


@dataclass(frozen=True, slots=True, kw_only=True)
class InvoiceFacts:
    """What identifies an invoice; unknown values are empty or None."""

    number: str
    document: bytes
    amount_minor: int | None
    currency: str
    issued: str
    account: str = ""  # the IBAN to which it is to be paid
    tax_id: str = ""  # the supplier's


class EarlierUse(NamedTuple):
    """An earlier use of an invoice: that run's id and how it is known, or neither.

    ``sealed``: a hash of the row that claims it, for the run's own record; empty without a claim.
    """

    duplicate_of: str = ""
    matched: str = ""
    sealed: str = ""


def claim(run: Run, supplier: Supplier, facts: InvoiceFacts) -> EarlierUse:
    """Claim an invoice for a run, inside a transaction that holds the log's lock.

    The run that claims it first is the original, whatever becomes of that run; the claim of any
    later run names it. A repeat finds the run's own claim; it claims anew what was read otherwise.

    Raises:
        VerificationError: PII-002, where a key of the marks is gone.
    """
    marks, former = _marks(run, supplier, facts)
    made = claim_of(run)
    due = {"supplier_id": supplier.id, **marks}
    # What it claimed before a person said what the invoice says; not of an earlier release.
    if made and made.across and due.items() - vars(made).items():
        made.delete()
        made = None
    try:
        made = made or _new_bill(run, supplier, marks, former)
    except IntegrityError:  # the lock did not hold, and another run claimed it meanwhile
        made = claim_of(run) or _new_bill(run, supplier, marks, former)
    return EarlierUse(str(made.duplicate_of_id or ""), made.matched, digest(made))


def look_up(run: Run, supplier: Supplier, facts: InvoiceFacts) -> EarlierUse:
    """What ``claim`` would say of an invoice; nothing is claimed."""
    found = _earlier(run, *_marks(run, supplier, facts))
    return EarlierUse(str(found[0]), found[1]) if found else EarlierUse()


def digest(bill: Bill) -> str:
    """A hash of everything that a claim says, 64 hex digits: the run's own record seals it.

    Of the marks across suppliers it has ``across``, which ``is_whole`` compares.
    """
    ids = (bill.run_id, bill.supplier_id, bill.duplicate_of_id or "")
    marks = (bill.number, bill.document, bill.total, bill.near, bill.matched)
    more = (bill.like, bill.joined, bill.across) if bill.across else ()
    text = "\0".join(map(str, (*ids, *marks, *more)))
    return sha256((_VERSION if more else _FORMER) + text.encode()).hexdigest()


def is_whole(bill: Bill, sealed: str, keys: Callable[..., Mapping[str, bytes]]) -> bool:
    """Whether a claim is the sealed one; the marks across suppliers may be emptied with its own."""
    marks = {each: getattr(bill, each) for each in ACROSS}
    if digest(bill) != sealed:
        return False
    if not bill.across or sql.execute(versions.GONE, (sql.key(bill.supplier_id), versions.ERASED)):
        return not any(marks.values())
    key = keys([_ref(bill.supplier_id)]).get(_ref(bill.supplier_id))
    return key is not None and _across(key, marks) == bill.across


def one_spelling(number: str) -> str:
    """An invoice number in upper case, without separators and the leading zeros of its groups.

    ``RE-2026/0042``, ``re 2026 42`` and ``RE2026-42`` are one number.
    """
    return re.sub(r"(?<!\d)0+(?=\d)", "", _groups(number)).replace("-", "")[:NUMBER_CHARS_MAX]


def normal_forms(number: str) -> tuple[str, str]:
    """A number as others write or read it: two forms, of which two alike have one in common.

    Letters that look like digits are digits. In the first form the letters at both ends are
    dropped, and the leading zeros of each group: ``INV-7700`` and ``7700-A`` are ``7700``. In the
    second one those at the ends that look like digits stay, without separators and leading zeros:
    ``INV77OO`` is ``7700``, and ``2026-00l`` is ``2026001``.
    """
    plain = _groups(number)
    core = re.sub(r"^\D+|\D+$", "", plain) or plain
    joined = re.sub(r"^[^\W\d]*[^\W\dOILBS](?=[OILBS]*\d)", "", plain.replace("-", ""))
    joined = re.sub(r"(?<=\d)([OILBS]*)[^\W\dOILBS][^\W\d]*$", r"\1", joined).translate(LOOKS)
    return one_spelling(core.translate(LOOKS)), joined.lstrip("0")[:NUMBER_CHARS_MAX] or joined[:1]


def _groups(number: str) -> str:
    return "-".join(re.findall(r"[^\W_]+", folded(number)))


def claim_of(run: Run) -> Bill | None:
    return next(iter(sql.rows(Bill, "WHERE run_id = %s", (sql.key(run.id),))), None)


def _new_bill(run: Run, supplier: Supplier, marks: Mapping[str, str], former: str) -> Bill:
    earlier, matched = _earlier(run, marks, former) or (None, "")
    with transaction.atomic():
        whose = {"run": run, "workspace_id": run.workspace_id, "supplier": supplier, "near": ""}
        return Bill.objects.create(**whose, duplicate_of_id=earlier, matched=matched, **marks)


def _earlier(run: Run, marks: Mapping[str, str], former: str) -> tuple[UUID, str] | None:
    """The first run with this invoice, and how it is known: by one of the surest marks it shares.

    ``former``: the number's mark as an earlier release made it.
    """
    same = {mark: marks[mark] for mark in chain(*SURE) if marks[mark]}
    older = [("(number = %s AND across = '')", former)] if former else []
    if not _first(run, [(f'"{mark}" = %s', same[mark]) for mark in same] + older):
        return None  # as of most invoices
    for together in SURE:
        given = [mark for mark in together if mark in same]
        asked = [(f'"{mark}" = %s', same[mark]) for mark in given]
        first = _first(run, asked + (older if "like" in together else []))
        if first is not None:
            by = next((mark for mark in given if getattr(first, mark) == marks[mark]), "like")
            return first.run_id, MATCHED.get(by, by)
    return None


def _first(run: Run, asked: Sequence[tuple[str, str]]) -> Bill | None:
    """The first bill of another run of its log that is as one of these clauses says."""
    any_of = " OR ".join(clause for clause, _ in asked) or "FALSE"
    given = (sql.key(run.workspace_id), sql.key(run.id), *(value for _, value in asked))
    return next(iter(sql.rows(Bill, f"{_OTHERS} ({any_of}) ORDER BY id LIMIT 1", given)), None)


def _marks(run: Run, supplier: Supplier, facts: InvoiceFacts) -> tuple[dict[str, str], str]:
    """The marks of an invoice by name, empty for none; and ``former``."""
    used = ("supplier_id = %s", sql.key(supplier.id))
    key = _key(_ref(supplier.id), versions.subject(supplier.id), *used)
    used = ("workspace_id = %s AND across <> ''", sql.key(run.workspace_id))
    claims_key = _key(*index.lasting(run.workspace, index.CLAIMS), *used)
    like, joined = normal_forms(facts.number)
    money = f"{facts.amount_minor} {facts.currency}" if facts.amount_minor else ""
    total = f"{money} {facts.issued}" if money and facts.issued else ""
    within = {
        "document": sha256(facts.document).hexdigest(),
        "number": "".join(folded(facts.number).split()) if like else "",
        "like": like,
        "joined": joined,
        "total": total,
    }
    across = {
        "pair": f"{money}\0{like}" if money and like else "",
        "account": f"{total}\0{facts.account}" if total and facts.account else "",
        "tax": f"{total}\0{facts.tax_id}" if total and facts.tax_id else "",
    }
    marks = {name: text and index.blind(key, name, text) for name, text in within.items()}
    marks |= {name: text and index.blind(claims_key, name, text) for name, text in across.items()}
    former = index.blind(key, "number", one_spelling(facts.number)) if like else ""
    return {**marks, "across": _across(key, marks)}, former


def _across(key: bytes, marks: Mapping[str, str]) -> str:
    return index.blind(key, "across", "\0".join(marks[each] for each in ACROSS))


def _ref(supplier_id: UUID) -> str:
    return f"{index.PREFIX}bills-{supplier_id}"


def _key(ref: str, subject: str, used: str, by: str) -> bytes:
    """The key of marks, made before a bill uses it; the caller holds the log's lock."""
    key = keystore().keys([ref]).get(ref)
    if key is None:
        if sql.execute(f"{_USED} {used} LIMIT 1", (by,)):
            text = "The key by which earlier invoices are found is gone."
            raise VerificationError("PII-002", text, at=-1)
        key = keystore().new_keys(subject, [ref])[ref]
    return key
