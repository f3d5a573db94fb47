"""``resurrected_pii``: restores erased values from a copy, or submits them again."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from engine.clock import now_ms
from engine.models import Run, Secret
from engine.privacy.erasure import erase_run
from engine.runtime import api
from engine.vault import secret_store
from nanovm_core.core.events import EffectDone
from sabotage.doors import tamper_db
from sabotage.gallery.kit import fixture
from sabotage.gallery.kit.scenario import Scenario
from sabotage.kit.assessment import assess_events
from sabotage.kit.code_locations import place
from sabotage.kit.evidence import Evidence
from sabotage.kit.injector import Assessment, Fired, Injector, Target, choice

NAME = "resurrected_pii"
ACTOR = f"attacker:{NAME}"
REASON = "art17-1-a"
NO_KEY = "PII-002"


@dataclass(frozen=True, slots=True)
class Copied:
    """What an attacker took home before the erasure: rows, sealed files, and one value in words."""

    rows: tuple[Secret, ...]
    files: Mapping[str, bytes]
    words: bytes


def inject(target: Target) -> Fired:
    """Have the run paid and erased, then bring its values back in the chosen way."""
    fixture.start(target.run)
    copied = _copied(target.run)
    certificate = erase_run(target.run_id, REASON, fixture.OPERATOR)
    event = WAYS[str(target.values["how"])](target, copied)
    living = Secret.objects.filter(run=target.run, erased_ms=None).count()
    readable = sorted(secret_store.openings([row.ref for row in copied.rows]))
    new = living - _put_back(target, copied)
    if not event:
        _taken_out(target, copied)
    return Fired(
        facts={
            "how": str(target.values["how"]),
            "certificate": certificate.state,
            "copied": len(copied.rows),
            "readable_before": len(copied.rows),
            "readable_again": len(readable),
            "new_secrets": new,
            "answered_as": event,
        }
    )


def assess(found: Evidence, fired: Fired) -> Assessment:
    """BLOCKED where the restored ciphertext has no key, IGNORED where the text was not kept."""
    again = int(str(fired.facts["readable_again"])) + int(str(fired.facts["new_secrets"]))
    text = f"{again} erased values can be read again."
    if again:
        return Assessment(verdict="ACCEPTED", rule="", where="", breaches=(text,))
    if fired.facts["answered_as"]:
        return assess_events(found, fired, events={str(fired.facts["answered_as"])}, actor=ACTOR)
    done = next((each.number for each in found.sealed if each.kind == "erasure_done"), None)
    at = place(secret_store.openings, NO_KEY)
    return Assessment(verdict="BLOCKED", rule=NO_KEY, where=at, event=done)


def _put_rows_back(target: Target, copied: Copied) -> str:
    """The database rows and the sealed files, as they were."""
    for row in copied.rows:
        columns = {"ciphertext": row.ciphertext, "erased_ms": None, "file": row.file}
        tamper_db.change_secret(target.run, row.ref, columns)
    for name, data in copied.files.items():
        (secret_store.media() / name).write_bytes(data)
    return ""


def _taken_out(target: Target, copied: Copied) -> None:
    """Leave the vault as the erasure left it: what was put back is ciphertext that has no key."""
    for row in copied.rows:
        columns = {"ciphertext": None, "erased_ms": now_ms(), "file": row.file}
        tamper_db.change_secret(target.run, row.ref, columns)
    for name in copied.files:
        (secret_store.media() / name).unlink(missing_ok=True)


def _say_it_again(target: Target, copied: Copied) -> str:
    """One of the values, as words of the model."""
    api.propose(target.run_id, copied.words, actor=target.actor)
    return "ProposalReceived"


def _answer_late(target: Target, copied: Copied) -> str:
    """One of the values, as a late answer of the step that read the invoice."""
    origin = fixture.reloaded(target.run).workspace.origin
    sealed = secret_store.seal_values(target.run_id, origin, {"seller": copied.words})["seller"]
    event = EffectDone(key="0" * 64, out={"seller": sealed.ref}, secrets=(sealed.commitment,))
    api.submit(target.run_id, [event], actor=target.actor, secrets=[sealed])
    return "EffectDone"


WAYS: Mapping[str, Callable[[Target, Copied], str]] = {
    "put the database rows and files back": _put_rows_back,
    "have the model say it again": _say_it_again,
    "have a late answer bring it again": _answer_late,
}


def _copied(run: Run) -> Copied:
    rows = tuple(Secret.objects.filter(run=run, erased_ms=None).order_by("ref"))
    files = {row.file: (secret_store.media() / row.file).read_bytes() for row in rows if row.file}
    seller = next(row.ref for row in rows if row.slot == "seller")
    return Copied(rows, files, secret_store.read_bytes([seller])[seller] or b"")


def _put_back(target: Target, copied: Copied) -> int:
    """How many rows of the copy say now that they were never erased."""
    refs = [row.ref for row in copied.rows]
    return Secret.objects.filter(run=target.run, ref__in=refs, erased_ms=None).count()


SCENARIO = Scenario(
    injector=Injector(
        name=NAME,
        claim="Erased data stays erased, even if an old copy of the database is restored.",
        wants="Read the seller's name and account after they were erased.",
        stopped_by="The keys: stored elsewhere and destroyed. An ended run stores no new text.",
        params=(choice("how", "Bring it back", tuple(WAYS)),),
        inject=inject,
        assess=assess,
    ),
    make_run=fixture.plain_run,
)
