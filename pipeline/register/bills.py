"""The same invoice twice: a run claims its invoice, and a later claim finds the earlier one.

An invoice is known by keyed marks alone. The key is the supplier's in the key store, so erasing the
supplier leaves marks that lead nowhere. A run's claim is made once: asked again, it is the same.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from itertools import groupby
from typing import NamedTuple
from uuid import UUID

from django.db import IntegrityError, transaction
from django.db.models import Q

from engine.models import Run
from engine.vault.key_store import keystore
from nanovm_core.errors import VerificationError
from pipeline.models import Bill, Supplier
from pipeline.register import index, versions
from pipeline.register.details import compact, folded

NUMBER, DOCUMENT, SIMILAR = "number", "document", "similar"
NUMBER_CHARS_MAX = 64  # of a number in one spelling: as much as ``near`` has room for
NEAR_HEX = 16  # compared only where supplier and total are the same already
_VERSION = b"nanovm/bill/v1\0"


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What of an invoice tells it from another one of the same supplier."""

    number: str  # empty where it has none
    document: bytes
    amount_minor: int | None
    currency: str
    issued: str


class Marks(NamedTuple):
    """The keyed marks of an invoice; an empty one matches nothing."""

    number: str
    document: str
    total: str
    near: str


class Claim(NamedTuple):
    """Whether an invoice was here before: the earlier run's id and how it is known, or neither.

    ``sealed``: a hash of the row that claims it, for the run's own record; empty without a claim.
    """

    duplicate_of: str = ""
    matched: str = ""
    sealed: str = ""


def claim(run: Run, supplier: Supplier, facts: Facts) -> Claim:
    """Claim an invoice for a run, inside a transaction that holds the log's lock.

    The run that claims it first is the original, whatever becomes of that run; the claim of any
    later run names it. A repeat finds the run's own claim, and changes nothing.

    Raises:
        VerificationError: PII-002, where the key of the supplier's marks is gone.
    """
    marks = marks_of(_key(supplier), facts)
    try:
        made = _own(run) or _made(run, supplier, marks)
    except IntegrityError:  # the lock did not hold, and another run claimed it meanwhile
        made = _own(run) or _made(run, supplier, marks)
    return Claim(str(made.duplicate_of_id or ""), made.matched, digest(made))


def look_up(run: Run, supplier: Supplier, facts: Facts) -> Claim:
    """What ``claim`` would say of an invoice; nothing is claimed."""
    found = _earlier(run, supplier, marks_of(_key(supplier), facts))
    return Claim(str(found[0]), found[1]) if found else Claim()


def digest(bill: Bill) -> str:
    """A hash of everything that a claim says, 64 hex digits: the run's own record seals it."""
    ids = (bill.run_id, bill.supplier_id, bill.duplicate_of_id or "")
    marks = (bill.number, bill.document, bill.total, bill.near, bill.matched)
    return sha256(_VERSION + "\0".join(map(str, (*ids, *marks))).encode()).hexdigest()


def marks_of(key: bytes, facts: Facts) -> Marks:
    """The marks of an invoice under its supplier's key."""
    number = one_spelling(facts.number)
    total = f"{facts.amount_minor} {facts.currency} {facts.issued}"
    numbers = {*variants(number), compact(facts.number)[:NUMBER_CHARS_MAX]} if number else ()
    near = {index.blind(key, "near", f"{total}\0{each}")[:NEAR_HEX] for each in numbers}
    return Marks(
        number=index.blind(key, "number", number) if number else "",
        document=index.blind(key, "document", sha256(facts.document).hexdigest()),
        total=index.blind(key, "total", total) if facts.amount_minor else "",
        near=" ".join(sorted(near)),
    )


def one_spelling(number: str) -> str:
    """An invoice number in upper case, without separators and the leading zeros of its groups.

    ``RE-2026/0042``, ``re 2026 42`` and ``RE2026-42`` are one number.
    """
    groups = groupby(folded(number), lambda char: "0" if char.isdigit() else char.isalpha() and "A")
    parts = ((kind, "".join(chars)) for kind, chars in groups if kind)
    spelled = "".join(part.lstrip("0") or "0" if kind == "0" else part for kind, part in parts)
    return spelled[:NUMBER_CHARS_MAX]


def variants(number: str) -> Iterator[str]:
    """A number, and it without each one of its characters.

    Two numbers have one in common where a character was added, left out, mistyped or moved.
    """
    yield number
    yield from (number[:at] + number[at + 1 :] for at in range(len(number)))


def _own(run: Run) -> Bill | None:
    return Bill.objects.filter(run=run).first()


def _made(run: Run, supplier: Supplier, marks: Marks) -> Bill:
    earlier, matched = _earlier(run, supplier, marks) or (None, "")
    with transaction.atomic():
        return Bill.objects.create(
            run=run,
            workspace_id=run.workspace_id,
            supplier=supplier,
            duplicate_of_id=earlier,
            matched=matched,
            **marks._asdict(),
        )


def _earlier(run: Run, supplier: Supplier, marks: Marks) -> tuple[UUID, str] | None:
    """The first run with this invoice, and how it is known; else the first with one like it."""
    known = Bill.objects.filter(workspace_id=run.workspace_id, supplier=supplier)
    rows = known.exclude(run=run).order_by("id")
    same = Q(document=marks.document) | (Q(number=marks.number) & ~Q(number=""))
    first = rows.filter(same).first()
    if first is not None:
        return first.run_id, DOCUMENT if first.document == marks.document else NUMBER
    near = {*marks.near.split()}
    for each in rows.filter(Q(total=marks.total) & ~Q(total="")).iterator():
        theirs = {*each.near.split()}
        if near & theirs or not near or not theirs:
            return each.run_id, SIMILAR
    return None


def _key(supplier: Supplier) -> bytes:
    """The key of a supplier's marks, made at first use; the caller holds the log's lock."""
    ref = f"{index.PREFIX}bills-{supplier.id}"
    key = keystore().keys([ref]).get(ref)
    if key is None:
        if Bill.objects.filter(supplier=supplier).exists():
            text = "The key by which this supplier's earlier invoices are found is gone."
            raise VerificationError("PII-002", text, at=-1)
        key = keystore().new_keys(versions.subject(supplier.id), [ref])[ref]
    return key
