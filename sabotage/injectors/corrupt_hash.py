"""``corrupt_hash``: changes stored bytes, hashes or the snapshot, or data in transit."""

from collections.abc import Callable, Mapping
from hashlib import sha256

from engine.models import Run
from engine.runtime import api
from engine.store import records
from nanovm_core.core.envelope import last_segment
from sabotage.doors import tamper_db, tamper_transit
from sabotage.doors.redeliver import deliver
from sabotage.kit.assessment import assess_events
from sabotage.kit.code_locations import where
from sabotage.kit.evidence import Evidence, SealedEnvelope, is_answered, is_driven, sealed_since
from sabotage.kit.injector import Assessment, Fired, InjectionError, Injector, Param, Target, choice
from sabotage.kit.waiting import wait_until

NAME = "corrupt_hash"
ANY = 0  # the byte that this injector chooses: a digit of the envelope's time, else the first
MOVED = "Only the newest part of a quarantined run is still checked, so the last event was changed."
MISSED = (
    "A hash chain alone cannot detect that all of it was rewritten. Once a signed checkpoint "
    "covers the event, the bundle contains the proof, and the same attack is detected."
)
UNSIGNED = "An adapter accepted a warrant that was changed after it was signed."


def inject(target: Target) -> Fired:
    """Change one stored value with raw SQL, or one value in transit, as chosen."""
    return WAYS[str(target.values["what"])](target)


def assess(found: Evidence, fired: Fired) -> Assessment:
    """DETECTED where the damage was named, BLOCKED where a bad hash was refused."""
    what = str(fired.facts["what"])
    if what == QUEUE:
        queued = fired.facts["door"] == "queue"
        return assess_events(
            found, fired, events={"DeliveryReceived"}, actor="queue", queued=queued
        )
    if "found_by" in fired.facts:
        verdict, rule = str(fired.facts["verdict"]), str(fired.facts["rule"])
        acted = verdict == "ACCEPTED" and what == WARRANT
        out = (UNSIGNED,) if acted else ()
        return Assessment(
            verdict=verdict, rule=rule, where=str(fired.facts["found_by"]), breaches=out
        )
    return _assess_stored(found, fired)


def _assess_stored(found: Evidence, fired: Fired) -> Assessment:
    """DETECTED where the runtime sealed what it found, ACCEPTED where nothing was noticed."""
    others = Run.objects.filter(workspace_id=found.run.workspace_id).exclude(id=found.run.id)
    facts: dict[str, object] = {
        "quarantined": found.after.quarantined,
        "other_runs": others.count(),
        "other_runs_quarantined_since": _others_quarantined(found.run)
        - int(str(fired.facts["others_quarantined_before"])),
    }
    damage = next((each for each in found.sealed if _names(each, fired)), None)
    if damage is None:
        return Assessment(verdict="ACCEPTED", rule="", where="", facts=facts)
    facts |= {"position": damage.at, "expected": damage.expected, "found": damage.found}
    return Assessment(
        verdict="DETECTED",
        rule=damage.rule,
        where=where(damage.rule),
        event=damage.number,
        facts=facts,
    )


def _names(sealed: SealedEnvelope, fired: Fired) -> bool:
    """Whether an envelope seals this damage, and not an older one."""
    hit = fired.facts["what"] == "snapshot" or sealed.at == fired.facts["hit"]
    return sealed.kind == "integrity" and hit


# --- stored ----------------------------------------------------------------------------------


def _stored(target: Target) -> Fired:
    """Change what is stored; then let the runtime look, or find it by itself."""
    what = str(target.values["what"])
    others = _others_quarantined(target.run)
    facts = _snapshot_changed(target) if what == "snapshot" else _envelope_changed(target, what)
    wait_until(lambda: _found_by_itself(target) or not is_driven(target.run_id))
    if not _found_by_itself(target):
        api.check(target.run_id)
    return Fired(facts={"what": what, **facts, "others_quarantined_before": others})


def _envelope_changed(target: Target, what: str) -> dict[str, object]:
    envelopes = records.stored_envelopes(target.run_id)
    aimed = _aimed(target, len(envelopes))
    start = last_segment(envelopes)
    hit = aimed if aimed >= start else len(envelopes) - 1
    stored = envelopes[hit]
    if what == "bytes":
        place = _byte(target, stored.data, digit=True)
        dropped = tamper_db.change_envelope(target.run, stored.n, what, _other(stored.data, place))
    else:
        place = _byte(target, stored.hash.encode())
        dropped = tamper_db.change_envelope(
            target.run, stored.n, what, _other_nibble(stored.hash, place)
        )
    facts: dict[str, object] = {
        "hit": stored.n,
        "byte": place + 1,
        "triggers_dropped_and_restored": list(dropped),
    }
    return facts if hit == aimed else {**facts, "note": MOVED}


def _snapshot_changed(target: Target) -> dict[str, object]:
    data = bytes(target.run.snapshot)
    if target.values["byte"] != ANY:
        place = _byte(target, data)
        tamper_db.change_run(target.run, {"snapshot": _other(data, place)})
        return {"hit": target.run.length - 1, "byte": place + 1}
    forged = data.replace(b'"attempt":', b'"attempt":1', 1)  # attempt 1 becomes 11
    tamper_db.change_run(target.run, {"snapshot": forged if forged != data else data + b" "})
    return {"hit": target.run.length - 1}


def _found_by_itself(target: Target) -> bool:
    sealed = sealed_since(target.run, target.before.length)
    return any(each.kind == "integrity" for each in sealed)


def _others_quarantined(run: Run) -> int:
    others = Run.objects.filter(workspace_id=run.workspace_id, quarantined=True)
    return others.exclude(id=run.id).count()


# --- in transit ------------------------------------------------------------------------------


def _served(target: Target) -> Fired:
    """Alter an envelope of the record that is served, and have the stranger's verifier read it."""
    what = str(target.values["what"])
    envelopes = records.stored_envelopes(target.run_id)
    hit = _aimed(target, len(envelopes))
    place = _byte(target, envelopes[hit].data, digit=True)
    rewritten = what == REWRITTEN
    sent = tamper_transit.served(
        target.run, hit, lambda data: _other(data, place), rewritten=rewritten
    )
    missed = sent.altered.holds
    facts: dict[str, object] = {
        "what": what,
        "hit": hit,
        "byte": place + 1,
        "carrier": sent.carrier,
        "verifier_on_the_honest_one": f"{sent.honest.word}: {sent.honest.text}",
        "verifier": f"{sent.altered.word}: {sent.altered.text}",
        "verdict": "ACCEPTED" if missed else "DETECTED",
        "rule": "" if missed else "LOG-006" if rewritten else "LOG-002",
        "found_by": sent.altered.where,
        "expected": sent.expected,
        "found": sent.found,
    }
    return Fired(facts=facts | ({"note": MISSED} if missed else {}))


def _message(target: Target) -> Fired:
    """Deliver the run's queue message with another digit in its program's hash."""
    sealed = target.run.program_hash
    place = _byte(target, sealed.encode())
    altered = _other_nibble(sealed, place)
    door = deliver(target.run_id, altered, 1)
    wait_until(lambda: is_answered(target.run, target.before, "DeliveryReceived"))
    facts = {"what": QUEUE, "door": door, "byte": place + 1, "expected": sealed, "found": altered}
    return Fired(facts=facts)


def _warrant(target: Target) -> Fired:
    """Bring the adapter the call that is owed, under its warrant with one byte altered."""
    work, effect = tamper_transit.warranted(target.run)
    place = _byte(target, work.token)
    altered = _other(work.token, place)
    rule, found_by = tamper_transit.shown_to_the_adapter(work, altered)
    facts = {
        "what": WARRANT,
        "byte": place + 1,
        "tool": effect.tool,
        "verdict": "BLOCKED" if rule else "ACCEPTED",
        "rule": rule,
        "found_by": found_by,
        "expected": sha256(work.token).hexdigest(),
        "found": sha256(altered).hexdigest(),
    }
    return Fired(facts=facts)


# --- which envelope, which byte --------------------------------------------------------------


def _aimed(target: Target, length: int) -> int:
    aimed = int(target.values["envelope"])
    if not 0 <= aimed < length:
        raise InjectionError(f"Enter a number from 0 to {length - 1}: the events of this run.")
    return aimed


def _byte(target: Target, data: bytes, *, digit: bool = False) -> int:
    """Which byte is altered: the one that was chosen, else the last digit of ``at_ms``."""
    chosen = int(target.values["byte"])
    if chosen > len(data):
        raise InjectionError(f"Enter a byte from 1 to {len(data)}, or 0.")
    if chosen != ANY:
        return chosen - 1
    return _last_digit(data) if digit else 0


def _last_digit(data: bytes) -> int:
    """The place of the last digit of ``at_ms``: changed, the bytes are still canonical JSON."""
    start = data.find(b'"at_ms":') + len(b'"at_ms":')
    return (
        next((i for i in range(start, len(data)) if not data[i : i + 1].isdigit()), len(data)) - 1
    )


def _other(data: bytes, place: int) -> bytes:
    """The bytes with the one at ``place`` another; a digit stays a digit."""
    return data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :]


def _other_nibble(digest: str, place: int) -> str:
    return digest[:place] + ("0" if digest[place] != "0" else "1") + digest[place + 1 :]


QUEUE, WARRANT = "queue message in flight", "warrant in flight"
REWRITTEN = "rewritten record in flight"
WAYS: Mapping[str, Callable[[Target], Fired]] = {
    "bytes": _stored,
    "hash": _stored,
    "snapshot": _stored,
    "record in flight": _served,
    REWRITTEN: _served,
    QUEUE: _message,
    WARRANT: _warrant,
}

INJECTOR = Injector(
    name=NAME,
    claim="A changed event is always detected: each event contains the hash of the one before.",
    wants="Rewrite the record of a run without being detected.",
    stopped_by="The hash chain, recomputed at each transition and verification.",
    params=(
        Param(name="envelope", label="Event (0 is event #1)", kind="int", default=0),
        choice("what", "Change its", WAYS),
        Param(name="byte", label="Byte (0: a digit of its time)", kind="int", default=ANY),
    ),
    inject=inject,
    assess=assess,
)
