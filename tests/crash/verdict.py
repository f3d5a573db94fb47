"""What must hold once everything is over, whatever crashed: all of it is recomputed."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

from engine.evidence import signer
from engine.evidence.fsck.audit import audit
from engine.evidence.signer import keys
from engine.models import Checkpoint, Envelope, Run, Secret, Workspace
from engine.store import ledgers, state_file
from engine.vault.key_store import keystore
from engine.vault.secret_store import media
from nanovm_core.core import lifecycle as life
from nanovm_core.core.canonical import decode
from nanovm_core.core.envelope import decode_snapshot
from nanovm_core.ledger.value import Ledger, Used
from nanovm_core.proof import notes
from pipeline.models import Register, Supplier
from tests.crash.sim import Sim, World

SHARED_MONEY = re.compile(r"^workspace/[A-Z]{3}$")
PAY = "stripe.create_payment_intent"
NAMED = {*life.TERMINAL, life.APPROVAL}


def faults(sim: Sim) -> list[str]:
    """Everything that does not hold; empty: all holds."""
    return [
        *(f"fsck: {damage}" for damage in audit().damage),
        *(fault for run in Run.objects.all() for fault in _run_faults(run, sim.world)),
        *_money(sim.world),
        *_accounts(sim.world),
        *(fault for log in Workspace.objects.all() for fault in _unsigned(log, sim.world)),
        *_left_over(sim.folder),
    ]


def _accounts(world: World) -> Iterator[str]:
    """A supplier has one account at the far side, wherever the process died while it was made."""
    suppliers = [each["metadata"]["supplier"] for each in world.accounts.values()]
    if len(suppliers) != len({*suppliers}):
        yield f"{len(suppliers)} accounts for {len({*suppliers})} suppliers"


def _run_faults(run: Run, world: World) -> Iterator[str]:
    """A run stands where it may stand, and was paid for as often as that says."""
    if run.state not in NAMED:
        yield f"the run stands at {run.state}"
    if run.state in life.TERMINAL and (run.owed_key or run.due_ms is not None):
        yield "the run ended and owes an effect"
    if run.holder and run.until_ms > world.now_ms:
        yield "the run ended and its lease is held"
    authorized = _authorized(run)
    paid = world.succeeded(str(run.id))
    made = [(e["metadata"]["key"], e["amount"], e["currency"].upper()) for e in paid]
    yield from (f"not authorized: {each}" for each in made if each not in authorized)
    if len(made) > 1 or (run.state == life.COMPLETED and len(made) != 1):
        yield f"{len(made)} payments for a run that is {run.state}"
    keys_posted = {each for each in world.posts if each in {key for key, _, _ in authorized}}
    if len(keys_posted) > 1:
        yield f"{len(keys_posted)} keys were sent for one payment"


def _authorized(run: Run) -> set[tuple[str, int, str]]:
    """Key, amount and currency of each payment whose intent is sealed with its warrant."""
    found = set()
    for data in Envelope.objects.filter(run=str(run.id), kind="intent").values_list("bytes"):
        body: Any = decode(bytes(data[0]))
        if body.get("tool") == PAY and body.get("warrant"):
            given = body["in"]
            found.add((body["idempotency_key"], given["amount_minor"], given["currency"]))
    return found


def _accounts_of_money() -> Iterator[tuple[tuple[UUID, str], Used]]:
    for log in Workspace.objects.all():
        for name, account in (ledgers.stored(log) or Ledger()).accounts.items():
            if SHARED_MONEY.fullmatch(name):
                yield (log.id, name), account


def _money(world: World) -> Iterator[str]:
    """Budgets say what was paid and what is frozen, and the far side was asked by us alone."""
    runs = {str(each): log for each, log in Run.objects.values_list("id", "workspace_id")}
    strangers = [each for each in world.intents if each["metadata"]["run"] not in runs]
    if strangers:
        yield f"payments of nobody: {strangers}"
        return
    frozen: dict[tuple[UUID, str], int] = {}
    waiting: dict[str, dict[str, int]] = {}
    for run in Run.objects.exclude(state__in=life.TERMINAL):
        kept = waiting.setdefault(str(run.id), {})
        for each in decode_snapshot(bytes(run.snapshot)).reserved:
            if SHARED_MONEY.fullmatch(each.account):
                owned = (run.workspace_id, each.account)
                frozen[owned] = frozen.get(owned, 0) + each.reserved
                kept[each.account] = kept.get(each.account, 0) + each.reserved
    spent: dict[tuple[UUID, str], int] = {}
    for intent in world.succeeded():
        log, account = runs[intent["metadata"]["run"]], f"workspace/{intent['currency'].upper()}"
        if intent["metadata"]["run"] not in waiting:
            spent[log, account] = spent.get((log, account), 0) + intent["amount"]
        elif waiting[intent["metadata"]["run"]].get(account, 0) < intent["amount"]:
            yield f"a payment of unknown outcome is not reserved: {intent}"
    for owned, row in _accounts_of_money():
        if (row.spent, row.reserved) != (spent.pop(owned, 0), frozen.pop(owned, 0)):
            yield f"the budget {owned[1]} says {row.spent} spent and {row.reserved} reserved"
    yield from (f"no budget for {each}" for each in (*spent, *frozen))


def _unsigned(log: Workspace, world: World) -> Iterator[str]:
    """fsck recomputed the tree; what the signer remembers must be the whole of it."""
    memory_file = keys.logs() / state_file.file_name(log.origin)
    known = [*{*signer.verifiers(log.origin), *world.kept.get("verifiers", ())}]
    notes_of = Checkpoint.objects.filter(workspace=log).values_list("note", flat=True)
    signed = [memory_file.read_bytes(), *map(bytes, notes_of)]
    heads = [notes.open_checkpoint(each, known)[0] for each in signed]
    if max(head.size for head in heads) != Envelope.objects.filter(workspace=log).count():
        yield "the whole log is not signed"


def _left_over(folder: Path) -> Iterator[str]:
    """Nothing is kept of runs that were never stored."""
    known = {str(each) for each in Run.objects.values_list("id", flat=True)}
    known |= {f"register-{each}" for each in Register.objects.values_list("pk", flat=True)}
    known |= {f"supplier-{each}" for each in Supplier.objects.values_list("id", flat=True)}
    strangers = set(keystore().subjects()) - known
    yield from (f"keys of nobody: {each}" for each in strangers)
    named = set(Secret.objects.exclude(file="").values_list("file", flat=True))
    documents = {each.name for each in media().glob("*")}
    yield from (f"a document of nobody: {each}" for each in documents - named)
    refusals = folder / "refusals.json"
    if refusals.exists() and json.loads(refusals.read_bytes()):
        yield f"the signer refuses: {refusals.read_text()}"
