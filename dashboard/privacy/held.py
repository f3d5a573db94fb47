"""What is held of a supplier: the answer to a request for access (Art. 15 GDPR)."""

import json
from base64 import b64encode
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any

from engine.application import label_of
from engine.application import why_kept as why_kept
from engine.clock import now_ms
from engine.models import Envelope, Run, Secret
from engine.privacy import erasable, retention
from engine.queries.runs import RunHead, body_of, head_of
from engine.queries.secrets import DAMAGED
from engine.store import records
from engine.vault import secret_store
from nanovm_core.core.envelope import LOG_RUN
from nanovm_core.core.vault import PREFIX, TOMBSTONE
from nanovm_core.errors import VerificationError
from pipeline.labels import CHARGE, CLEAR
from pipeline.models import Bill
from pipeline.queries.suppliers import SupplierLine
from pipeline.register import erasure, its_runs
from pipeline.steps.propose.model_adapters import ENDPOINT
from pipeline.steps.seal import advice_file

FORM = "nanovm-access/1"
PREVIEW_CHARS = 120
FILES = ("document", "crops")  # values that no person reads as text
FORMER = "Details that were changed are not held: the key of a former version is destroyed."
RECIPIENTS = {
    CHARGE: "Stripe: amount, currency, run code, key and the supplier's reference; no name",
    "notify.send_email": "the supplier: the remittance advice, a file in the mail folder here",
}
ENDPOINTS = {"model.propose": "model", "advisor.assess": "advisor"}
AT_ENDPOINT = "the {}'s endpoint: amounts, dates and the document's notes"


def of_supplier(line: SupplierLine) -> dict[str, Any]:
    """All but its runs: the registered details, and each event of the log that names it."""
    row = line.row
    details = line.details.texts() if line.details else {}
    known = asdict(line.details.known) if line.details else {}
    unread = TOMBSTONE if line.is_erased else DAMAGED
    return {
        "v": FORM,
        "made_ms": now_ms(),
        "log": row.workspace.origin,
        "supplier": {
            "id": str(row.id),
            "code": row.code,
            "state": row.state,
            "registered_by": row.registered_by,
            "created_ms": row.created_ms,
            "changed_ms": row.changed_ms,
            "details": details or unread,
            "accepted_marks": len(known.get("marks", ())),  # hashes of texts of its invoices
            "former_versions": FORMER,
        },
        "events": _events(line),
        "kept_after_erasure": {each: why_kept(each) for each in erasure.SupplierAndRuns.kept},
    }


def of_run(run: Run, *, whole: bool) -> dict[str, Any]:
    """What a run holds; ``whole``: documents too, and no text is shortened."""
    head, kept = head_of(run), retention.of(run.name)
    return {
        "run": run.name,
        "code": run.code,
        "state": head.label,
        "created_ms": run.created_ms,
        "erased_ms": run.erased_ms,
        "values": _values(run, whole),
        "in_clear": {CLEAR[slot]: head.slots[slot] for slot in CLEAR if slot in head.slots},
        "events": run.length,  # 1 to this number, at /runs/<code>/audit/
        "remittance_advice": advice_file(run.name).exists(),
        "claim": Bill.objects.filter(run=run).exists(),  # keyed marks of the invoice
        "recipients": _recipients(run, dict(head.slots)),
        "document_kept_by_law_until_ms": kept.until_ms if kept else None,
    }


def in_clear(run: RunHead) -> list[str]:
    """The arguments of a foreign agent's call that log or database have in clear, by name."""
    told = Envelope.objects.filter(run=run.id, kind="intent") if run.is_call else ()
    found = [records.part_of(records.body_of(each.bytes), "in") for each in told]
    call = body_of(Run.objects.get(id=run.id).snapshot).get("call") if run.is_call else None
    parts = [*found, *(call if isinstance(call, list) else ())]
    args = [item for each in parts if isinstance(each, dict) for item in each.items()]
    return sorted({name for name, value in args if not str(value).startswith(PREFIX)})


def export(line: SupplierLine) -> Iterator[bytes]:
    """All of it as one JSON object, a run at a time."""
    yield _json(of_supplier(line))[:-1] + b',\n"runs": [\n'
    for place, run in enumerate(its_runs.of_supplier(line.row)):
        yield (b",\n" if place else b"") + _json(of_run(run, whole=True))
    yield b"\n]}\n"


def _json(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "replace")


def _events(line: SupplierLine) -> list[dict[str, Any]]:
    """The events of the log's own chain that name it: registered, changed, erased."""
    name, workspace = str(line.row.id), line.row.workspace
    logs = [workspace.id, *workspace.predecessors.values_list("id", flat=True)]
    rows = Envelope.objects.filter(workspace__in=logs, run=LOG_RUN, kind="supplier")
    found = [each for each in rows.iterator() if name in _named_in(each)]
    kinds = ("erasure_requested", "erasure_done")
    for of in (erasure.KIND, erasure.WITH_RUNS):
        found += erasable.on_the_logs_chain(workspace.id, kinds, **{of: name})
    return [_event(each) for each in sorted(found, key=lambda each: (each.workspace_id, each.n))]


def _named_in(each: Envelope) -> Mapping[str, Any]:
    """The suppliers of whom an event says something, by id."""
    given = records.part_of(records.body_of(each.bytes), "in")
    return records.part_of(given, "suppliers")


def _event(each: Envelope) -> dict[str, Any]:
    body = records.body_of(each.bytes)
    what = records.part_of(body, "state").get("event", each.kind)
    said = {"log": body.get("log"), "n": each.n, "hash": each.hash, "event": what}
    return {**said, "at_ms": body.get("at_ms"), "actor": body.get("actor")}


def _values(run: Run, whole: bool) -> list[dict[str, Any]]:
    rows = Secret.objects.filter(run=run).order_by("created_ms", "ref")
    return [
        {
            "label": label_of(each.slot),
            "ref": each.ref,
            "commitment": each.commitment,
            "place": "encrypted file" if each.file else "database, encrypted",
            "erased_ms": each.erased_ms,
            **_value(each, whole),
        }
        for each in rows
    ]


def _value(row: Secret, whole: bool) -> dict[str, str]:
    if row.erased_ms is not None:
        return {"value": TOMBSTONE}
    if not whole and row.slot in FILES:
        return {"value": "in the JSON file"}
    try:
        data = secret_store.read_bytes([row.ref])[row.ref] or b""
    except VerificationError:
        return {"value": DAMAGED}
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return {"value_base64": b64encode(data).decode()}
    return {"value": text if whole or len(text) <= PREVIEW_CHARS else text[:PREVIEW_CHARS] + "…"}


def _recipients(run: Run, slots: dict[str, Any]) -> list[str]:
    """Who was sent something of a run, by the requests that its log names."""
    rows = Envelope.objects.filter(run=run.name, kind="intent").order_by("n")
    tools = dict.fromkeys(str(records.body_of(each.bytes).get("tool")) for each in rows)
    asked = {"model": run.model, "advisor": str(slots.get("advisor", ""))}
    found = [RECIPIENTS[tool] for tool in tools if tool in RECIPIENTS]
    named = [ENDPOINTS[tool] for tool in tools if tool in ENDPOINTS]
    return [*found, *(AT_ENDPOINT.format(who) for who in named if asked[who] == ENDPOINT)]
