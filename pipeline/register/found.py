"""What finds a run: a narrow row that lists sort and sum, and the keyed words of its secrets.

Both are written in the commit in which the run learns its values. The words are hashes under a key
of the workspace, so that neither the database nor a copy of it says any; an erasure deletes them.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import NamedTuple
from uuid import UUID

from engine.models import Run, Workspace
from engine.queries.runs import UUID_FORM, group_of, logs_of
from engine.queries.secrets import DAMAGED, opened_all
from engine.store import programs, sql
from engine.vault.key_store import keystore
from nanovm_core.core.envelope import decode_snapshot
from nanovm_core.core.messages import Snapshot
from nanovm_core.core.vault import TOMBSTONE
from nanovm_core.errors import VerificationError
from pipeline.models import Found, Listed
from pipeline.register import index
from pipeline.register.bills import one_spelling
from pipeline.register.details import compact, one_line, plain_name
from pipeline.register.versions import ERASED, GONE
from reader.currencies import AMOUNT_MINOR_MAX, DECIMALS

NAMES, ACCOUNT = ("payee", "seller"), "iban"  # by which a supplier finds runs that name it
SEARCHED = (*NAMES, "invoice_number", "payment")
WORDS_MAX, WORD_CHARS_MAX = 16, 24  # of a name, and of a word of it; the rest finds nothing
BEGINNING_CHARS = 3  # of the shortest beginning of a word that finds it
PAID = "succeeded"
CHUNK_ROWS = 500
_LIST = (
    "INSERT INTO pipeline_listed (workspace_id, run_id, code, state, supplier, amount_minor,"
    " currency, paid) VALUES (%s, %s, %s, %s, %s, %s, %s, %s)"
    " ON CONFLICT (workspace_id, run_id) DO UPDATE SET state = excluded.state,"
    " supplier = excluded.supplier, amount_minor = excluded.amount_minor,"
    " currency = excluded.currency, paid = excluded.paid"
)
_FOUND = "INSERT INTO pipeline_found (workspace_id, run_id, word) VALUES"
_SHOWN = (*SEARCHED, ACCOUNT, "supplier", "amount_minor", "currency", "payment_status")


class Listing(NamedTuple):
    """What a run's row in lists says beside its code."""

    state: str
    supplier: UUID | None
    amount_minor: int | None
    currency: str
    paid: bool


def listing_of(now: Snapshot) -> Listing:
    """The row of a run with this value; what is no supplier, amount or currency is left out."""
    slots = now.slots
    supplier, amount = str(slots.get("supplier") or ""), slots.get("amount_minor")
    currency = str(slots.get("currency") or "")
    is_amount = type(amount) is int and 0 <= amount <= AMOUNT_MINOR_MAX and currency in DECIMALS
    return Listing(
        state=group_of(now.state),
        supplier=UUID(supplier) if UUID_FORM.fullmatch(supplier) else None,
        amount_minor=amount if is_amount and isinstance(amount, int) else None,
        currency=currency if is_amount else "",
        paid=bool(is_amount) and slots.get("payment_status") == PAID,
    )


def record(run: Run, before: Snapshot | None, now: Snapshot) -> None:
    """Keep the rows of a run equal to its value, in the commit that stores it.

    ``before``: the value that the rows say already; None where they say none. A call of a foreign
    agent has no row: the gate lists those.
    """
    if (before is not None and _shown(before) == _shown(now)) or is_call(run):
        return
    listing = listing_of(now)
    if before is None or listing_of(before) != listing:
        whose = (sql.key(run.workspace_id), sql.key(run.id), run.code)
        supplier = sql.key(listing.supplier) if listing.supplier else None
        sql.later(_LIST, (*whose, listing.state, supplier, *listing[2:]))
    refs, former = _refs(now), _refs(before) if before else {}
    if former.items() - refs.items():  # a value became another one
        Found.objects.filter(run=run).delete()
    if refs != former:
        _add(run, now)


def _shown(now: Snapshot) -> list[object]:
    """All of a run's value that its rows depend on."""
    return [now.state, *map(now.slots.get, _SHOWN)]


def is_call(run: Run) -> bool:
    """Whether a run is a call of a foreign agent, and no invoice."""
    return programs.is_gate(programs.shape_of(run))


def texts_of(now: Snapshot) -> Mapping[str, str]:
    """The values that find a run, by slot: none once all of them, or its supplier, are erased."""
    refs = _refs(now)
    opened = opened_all([*refs.values()]) if refs else {}
    texts = {slot: opened[ref] for slot, ref in refs.items() if opened[ref] != DAMAGED}
    supplier = listing_of(now).supplier
    gone = supplier and sql.execute(GONE, (sql.key(supplier), ERASED))
    return {} if gone or {*texts.values()} == {TOMBSTONE} else texts


def words_of(key: bytes, texts: Mapping[str, str]) -> set[str]:
    """The keyed words of a run's values.

    Once a searched one is erased no search finds the run; its supplier does, by what is left.
    """
    left = {slot: text for slot, text in texts.items() if text != TOMBSTONE}
    names = [left[slot] for slot in NAMES if slot in left]
    found = naming(key, names, left.get(ACCOUNT, ""))
    if any(slot not in left for slot in texts if slot in SEARCHED):
        return found
    found |= {mark(key, "word", each) for name in names for each in _with_beginnings(name)}
    if number := one_spelling(texts.get("invoice_number", "")):
        found.add(mark(key, "number", number))
    if payment := texts.get("payment", ""):
        found.add(mark(key, "payment", plain(payment)))
    return found


def plain(text: str) -> str:
    """A text without case, accents, the width of its characters, and control characters."""
    apart = unicodedata.normalize("NFKD", unicodedata.normalize("NFKC", text).casefold())
    kept = (char for char in apart if unicodedata.category(char)[0] != "C")
    return "".join(char for char in kept if not unicodedata.combining(char))


def words(text: str) -> list[str]:
    """The words of a name or a search in one spelling, each cut to what is indexed of one."""
    return [each[:WORD_CHARS_MAX] for each in re.findall(r"[^\W_]+", plain(text))]


def naming(key: bytes, names: Iterable[str], account: str) -> set[str]:
    """The keyed words of whole names and an account, in the register's one spelling of each."""
    found = {mark(key, "name", plain_name(one_line(each))) for each in names}
    return found | {mark(key, "iban", compact(each)) for each in [account] if each}


def mark(key: bytes, kind: str, text: str) -> str:
    """A keyed word: the first 96 bits of its hash, which two texts of a workspace never share."""
    return index.blind(key, f"found-{kind}", text)[:24]


def key_of(workspace: Workspace) -> bytes | None:
    """The key of a workspace's words; None where none was made, or it is gone."""
    ref, _ = index.lasting(workspace, index.WORDS)
    return keystore().keys([ref]).get(ref)


def forget_run(run: Run) -> None:
    """Delete the words of a run of which values are erased, in that transaction."""
    Found.objects.filter(run=run).delete()
    if now := value_of(run):
        _add(run, now)


def forget_supplier(workspace: Workspace, supplier_id: UUID) -> None:
    """Delete the words of a supplier's runs, also of those in logs that a restore closed."""
    logs = logs_of(workspace.id)
    runs = Listed.objects.filter(workspace_id__in=logs, supplier=supplier_id).values("run")
    Found.objects.filter(run__in=runs).delete()


def fill() -> None:
    """Make the rows of all runs, after an upgrade from a release that had none."""
    for run in Run.objects.select_related("workspace").order_by("id").iterator(CHUNK_ROWS):
        if now := value_of(run):
            record(run, None, now)


def value_of(run: Run) -> Snapshot | None:
    """A run's stored value; None where it is damaged, which the audit of the run names."""
    try:
        return decode_snapshot(bytes(run.snapshot))
    except VerificationError:
        return None


def key_made(workspace: Workspace) -> bytes:
    """The key of a workspace's words, made at first use; the caller holds the log's lock."""
    ref, subject = index.lasting(workspace, index.WORDS)
    return keystore().keys([ref]).get(ref) or keystore().new_keys(subject, [ref])[ref]


def _add(run: Run, now: Snapshot) -> None:
    if texts := texts_of(now):
        words, ids = words_of(key_made(run.workspace), texts), (run.workspace_id, run.id)
        rows = [(*map(sql.key, ids), each) for each in sorted(words)]
        if marks := ", ".join(map(sql.marks, rows)):
            sql.later(f"{_FOUND} {marks} ON CONFLICT DO NOTHING", [*chain(*rows)])


def _refs(now: Snapshot) -> Mapping[str, str]:
    slots = now.slots
    return {slot: str(slots[slot]) for slot in (*SEARCHED, ACCOUNT) if slots.get(slot)}


def _with_beginnings(name: str) -> Iterator[str]:
    for word in words(name)[:WORDS_MAX]:
        yield word
        yield from (word[:count] for count in range(BEGINNING_CHARS, len(word)))
