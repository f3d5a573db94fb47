"""``corrupt_hash``: stored bytes, hashes or the snapshot are changed behind the runtime's back."""

from nanovm_core.envelope import last_segment
from pipeline import records, runtime
from pipeline.models import Run
from sabotage import raw
from sabotage.deciders import where
from sabotage.evidence import Found, is_driven, sealed_since
from sabotage.shape import Fired, InjectionError, Injector, Judgement, Param, Target
from sabotage.waiting import wait_until

NAME = "corrupt_hash"
WHAT = ("bytes", "hash", "snapshot")
MOVED = "Only the newest segment of a quarantined run is still checked, so its end was hit instead."


def inject(target: Target) -> Fired:
    """Change one stored thing with raw SQL; then let the runtime look, or find it by itself."""
    what, aimed = str(target.values["what"]), int(target.values["envelope"])
    others = _others_quarantined(target.run)
    if what == "snapshot":
        facts = _snapshot_changed(target.run)
    else:
        facts = _envelope_changed(target, what, aimed)
    wait_until(lambda: _found_by_itself(target) or not is_driven(target.run_id))
    if not _found_by_itself(target):
        runtime.check(target.run_id)
    return Fired(facts={"what": what, **facts, "others_quarantined_before": others})


def judge(found: Found, fired: Fired) -> Judgement:
    """DETECTED where the runtime sealed what it found, ACCEPTED where nothing was noticed."""
    others = Run.objects.filter(workspace_id=found.run.workspace_id).exclude(id=found.run.id)
    facts: dict[str, object] = {
        "quarantined": found.after.quarantined,
        "other_runs": others.count(),
        "other_runs_quarantined_since": _others_quarantined(found.run)
        - int(str(fired.facts["others_quarantined_before"])),
    }
    damage = next((each for each in found.sealed if each.kind == "integrity"), None)
    if damage is None:
        return Judgement(verdict="ACCEPTED", rule="", where="", facts=facts)
    facts |= {"position": damage.at, "expected": damage.expected, "found": damage.found}
    return Judgement(
        verdict="DETECTED",
        rule=damage.rule,
        where=where(damage.rule),
        event=damage.number,
        facts=facts,
    )


def _envelope_changed(target: Target, what: str, aimed: int) -> dict[str, object]:
    envelopes = records.stored(target.run_id)
    if not 0 <= aimed < len(envelopes):
        last = len(envelopes) - 1
        raise InjectionError(f"This run has the envelopes 0 to {last}; name one of them.")
    start = last_segment(envelopes)
    hit = aimed if aimed >= start else len(envelopes) - 1
    stored = envelopes[hit]
    forged = _other_digit(stored.data) if what == "bytes" else _other_nibble(stored.hash)
    dropped = raw.change_envelope(target.run, stored.n, what, forged)
    facts: dict[str, object] = {"hit": stored.n, "triggers_dropped_and_restored": list(dropped)}
    return facts if hit == aimed else {**facts, "note": MOVED}


def _snapshot_changed(run: Run) -> dict[str, object]:
    data = bytes(run.snapshot)
    forged = data.replace(b'"attempt":', b'"attempt":1', 1)  # attempt 1 becomes 11
    raw.change_run(run, "snapshot", forged if forged != data else data + b" ")
    return {"hit": run.length - 1}


def _other_digit(data: bytes) -> bytes:
    """The bytes with the last digit of ``at_ms`` another: still whole, canonical JSON."""
    start = data.find(b'"at_ms":') + len(b'"at_ms":')
    end = next((i for i in range(start, len(data)) if not data[i : i + 1].isdigit()), len(data))
    last = data[end - 1 : end]
    return data[: end - 1] + (b"1" if last != b"1" else b"2") + data[end:]


def _other_nibble(digest: str) -> str:
    return ("0" if digest[0] != "0" else "1") + digest[1:]


def _found_by_itself(target: Target) -> bool:
    sealed = sealed_since(target.run, target.before.length)
    return any(each.kind == "integrity" for each in sealed)


def _others_quarantined(run: Run) -> int:
    others = Run.objects.filter(workspace_id=run.workspace_id, quarantined=True)
    return others.exclude(id=run.id).count()


INJECTOR = Injector(
    name=NAME,
    claim="What was sealed cannot be changed unseen: each envelope names its predecessor's hash.",
    wants="Rewrite the record of a run without anybody noticing.",
    stopped_by="The chain: stored bytes are hashed again at each transition and verification.",
    params=(
        Param(name="envelope", label="Envelope n (event #n+1)", kind="int", default=0),
        Param(name="what", label="Change its", kind="choice", default="bytes", choices=WHAT),
    ),
    inject=inject,
    judge=judge,
)
