"""Every injector at every moment of a run: the verdicts as they must be, written down before.

The moments: before the start, at each of the seven steps, paused, after success, after failure.
At a step, a run owes its effect and nobody has begun it; at ``authorize``, which is no effect, it
waits for a person's approval.
"""

from collections.abc import Iterator, Mapping

import pytest
from django.conf import settings

from engine.models import Envelope, Run, Workspace
from engine.runtime import api
from engine.worker.drive import drive_patiently
from nanovm_core.core import lifecycle as life
from nanovm_core.core.envelope import canonical_hash
from pipeline.application import STEPS
from sabotage.ablation.guards import claim_of
from sabotage.fire import look_again
from sabotage.injectors import INJECTORS
from sabotage.injectors.corrupt_hash import MISSED, QUEUE, REWRITTEN, WARRANT
from sabotage.injectors.reorder_steps import ORDERS
from sabotage.injectors.reorder_steps import WAYS as HOW
from sabotage.injectors.skip_step import WAYS as SKIPS
from sabotage.kit.injector import InjectionError
from sabotage.kit.moments import MOMENTS as MOMENTS_OF
from sabotage.models import Attack
from tests.sabotage import runs
from tests.sabotage.runs import VISITOR, at, let_go, now, owing, rows_hash, run_hash, shoot

pytestmark = pytest.mark.usefixtures("runtime_here")

MOMENTS = ("ready", *STEPS, "paused", "succeeded", "failed")
EFFECTS = tuple(step for step in STEPS if step != "authorize")
ENDED = ("succeeded", "failed")
NOTHING = "nothing to attack"
Shot = tuple[str, tuple[tuple[str, str], ...]]


def shot(injector: str, **params: str) -> Shot:
    return injector, tuple(params.items())


def row(usual: str, ended: str = "IGNORED FSM-003", **other: str) -> Mapping[str, str]:
    """What must come of a shot at each moment: the usual, but for these."""
    return {**dict.fromkeys(MOMENTS, usual), **dict.fromkeys(ENDED, ended), **other}


def claim(step: str) -> Mapping[str, str]:
    """A result is out of place, or not the worker's own where that very effect is owed."""
    own = {step: "BLOCKED FSM-012"} if step in EFFECTS else {}
    return row("BLOCKED FSM-001", ready="BLOCKED FSM-002", authorize="BLOCKED FSM-002", **own)


# the chosen step and the chosen order differ from moment to moment: each has its turn
CLAIM, SWAP = shot("skip_step", skip="result of a step"), shot("reorder_steps", order="*")
LEFT_ALONE: Mapping[Shot, Mapping[str, str]] = {
    shot("skip_step", skip="seal without charge"): claim("seal"),
    shot("skip_step", skip="charge without authorize"): claim("charge"),
    CLAIM: {**claim("authorize"), **dict.fromkeys(EFFECTS, "BLOCKED FSM-012")},
    shot("reorder_steps", how="results in the reverse order"): claim("seal"),
    SWAP: row("BLOCKED PRG-011"),
    shot("reorder_steps", how="resume under a permuted program"): row("BLOCKED PRG-010"),
    shot("reorder_steps", how="queue message of a permuted program"): row("BLOCKED PRG-010"),
    shot("corrupt_hash", what="record in flight"): row("DETECTED LOG-002", "DETECTED LOG-002"),
    # a chain alone cannot see that all of it was rewritten: a known miss, and said so
    shot("corrupt_hash", what=REWRITTEN): row("ACCEPTED ", "ACCEPTED "),
    shot("corrupt_hash", what=QUEUE): row("BLOCKED PRG-010"),
    # a granted call goes with a warrant: the payment, and the advice mail
    shot("corrupt_hash", what=WARRANT): row(
        NOTHING, NOTHING, charge="BLOCKED CAP-022", seal="BLOCKED CAP-022"
    ),
    # last, for at `propose` each is an answer of the model's, and changes its key
    shot("tool_injection"): row("BLOCKED CAP-001"),
    shot("tool_injection", by="gullible"): row("BLOCKED CAP-001"),
}
# these deliver a queue message, and so have the run driven where it owes something
FORGED = shot("skip_step", skip="forged intent in the outbox")
DOUBLE = shot("double_exec", redeliveries="6")
DELIVERED: Mapping[Shot, Mapping[str, str]] = {
    FORGED: row("BLOCKED FSM-001"),
    # A copy meets the lease, or comes when the step is done, after the last one when the run has
    # ended: which one, the threads decide.
    DOUBLE: row(
        "IGNORED FSM-011",
        **dict.fromkeys(EFFECTS, "IGNORED FSM-008 or FSM-011")
        | {"seal": "IGNORED FSM-008 or FSM-011 or FSM-003"},
    ),
}
CORRUPTED = {"bytes": "LOG-001", "hash": "LOG-001", "snapshot": "LOG-003"}
# what `make test` damages of them all
DAMAGED = (("ready", "bytes"), ("charge", "hash"), ("succeeded", "snapshot"))
SEALED = {"BLOCKED": "refused", "IGNORED": "ignored", "DETECTED": "integrity"}
ALWAYS = {"before", "after", "calls", "calls_since", "payments", "far_side", "breaches",
          "length_before", "length_after", "head_before", "head_after", "sealed_since"}  # fmt: skip


@pytest.fixture(scope="module")
def neighbour(database: None, stripe_url: str) -> Workspace:
    """Somebody else's workspace, with a run of each kind."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(settings.STRIPE, "api_base", stripe_url)
        workspace = at("charge").workspace
        shoot(at("succeeded", workspace), "tool_injection")
        at("ready", workspace)
    return workspace


@pytest.fixture
def sibling(neighbour: Workspace, runtime_here: None) -> Iterator[Run]:
    """Another run in the attacked run's own workspace; neither it nor a neighbour is touched."""
    run = at("propose")
    before = rows_hash(neighbour), run_hash(run)
    yield run
    assert (rows_hash(neighbour), run_hash(run)) == before


def turn(moment: str, shot: Shot) -> dict[str, str]:
    """The parameters of a shot at a moment, with the step or the order whose turn it is."""
    if shot == SWAP:
        orders = tuple(ORDERS)
        return {"order": orders[MOMENTS.index(moment) % len(orders)]}
    if shot == CLAIM and moment in STEPS:
        return {**dict(shot[1]), "step": moment}
    return dict(shot[1])


def fired(run: Run, moment: str, shot: Shot) -> Attack | None:
    """The attack; None where there is nothing to attack."""
    length = now(run).length
    try:
        return shoot(run, shot[0], **turn(moment, shot))
    except InjectionError:
        assert now(run).length == length
        return None


def salvo(run: Run, moment: str, shots: Mapping[Shot, Mapping[str, str]]) -> list[Attack]:
    """Fire all of these, and hold each to its cell."""
    attacks = {each: fired(run, moment, each) for each in shots}
    answers = {each: said(attack) for each, attack in attacks.items()}
    assert answers == {each: cells[moment] for each, cells in shots.items()}, moment
    made = [attack for attack in attacks.values() if attack is not None]
    for attack in made:
        complete(attack)
        claim = claim_of(attack.injector, attack.params)
        if claim is not None and moment == MOMENTS_OF[claim.moment].step:
            runs.names_its_guard(attack)
    return made


def said(attack: Attack | None) -> str:
    return NOTHING if attack is None else f"{attack.verdict} {attack.rule}"


def complete(attack: Attack) -> None:
    """Evidence for every field of the verdict, and nothing that nobody authorized."""
    evidence, served = attack.evidence, "found_by" in attack.evidence
    assert evidence.keys() >= ALWAYS
    assert (attack.integrity, evidence["calls"], evidence["breaches"]) == ("HELD", 0, [])
    assert evidence["far_side"]["reachable"]
    if attack.verdict == "ACCEPTED":
        assert (evidence["note"], attack.rule) == (MISSED, "")
        return
    assert attack.rule
    assert ".py:" in attack.where
    assert served == (attack.params.get("what") in ("record in flight", WARRANT))
    if "event" in evidence:
        number = evidence["event"]
        row = Envelope.objects.get(run=str(attack.run_id), n=number - 1)
        assert row.kind == SEALED[attack.verdict]
        named = {each["number"]: each["hash"] for each in evidence["sealed_since"]}
        assert named[number] == canonical_hash(bytes(row.bytes))
    else:  # nothing reached the runtime, or it came again and is only counted
        assert served or attack.verdict == "IGNORED"
    if attack.injector in ("corrupt_hash", "reorder_steps"):
        assert len(evidence["expected"]) == len(evidence["found"]) == 64
        assert evidence["expected"] != evidence["found"]
    if attack.injector in ("skip_step", "reorder_steps"):
        assert evidence["proposed"] != evidence["granted"]
    if attack.injector == "tool_injection":
        assert "wire_transfer" not in evidence["granted"]
        assert ("proposal" in evidence) == (attack.verdict == "BLOCKED")


def walked(run: Run) -> Iterator[str]:
    """Lead a run from step to step; it stands at each, owing its effect, when that is yielded."""
    run_id = str(run.id)
    api.start(run_id, VISITOR)
    for step in EFFECTS:
        assert (now(run).state, now(run).step) == (life.ACTIVE, step)
        yield step
        drive_patiently(run_id)
        while now(run).state == life.PAUSED:  # the pure step asks nobody, and pauses again
            api.step(run_id, VISITOR)


def paid_once(run: Run, attacks: list[Attack]) -> None:
    """The run is whole, and the far side holds its one payment: whatever was fired at it."""
    assert now(run).state == life.COMPLETED
    assert api.check(str(run.id)) is None
    for attack in attacks:
        last = look_again(attack)
        assert (last.integrity, last.evidence["far_side"]["succeeded"]) == ("HELD", 1)


def test_every_injector_has_its_rows() -> None:
    assert {injector for injector, _ in (*LEFT_ALONE, *DELIVERED)} == set(INJECTORS)
    params = [param for _, given in (*LEFT_ALONE, *DELIVERED) for param in given]
    assert {value for name, value in params if name == "skip"} == set(SKIPS)
    usual = "swap the stored program"  # it goes with each order
    assert {value for name, value in params if name == "how"} == set(HOW) - {usual}
    assert {turn(moment, SWAP)["order"] for moment in MOMENTS} == set(ORDERS)
    whats = {value for name, value in params if name == "what"}
    assert whats | set(CORRUPTED) == set(INJECTORS["corrupt_hash"].params[1].choices)
    assert all(set(cells) == set(MOMENTS) for cells in (*LEFT_ALONE.values(), *DELIVERED.values()))


def part(moment: str, every: int) -> Mapping[Shot, Mapping[str, str]]:
    """One of ``every`` shots, another part at each moment; in their order."""
    first = MOMENTS.index(moment) % every
    return {shot: LEFT_ALONE[shot] for shot in (*LEFT_ALONE,)[first::every]}


@pytest.mark.parametrize("every", [4, pytest.param(1, marks=pytest.mark.soak)])
def test_at_each_step_what_changes_nothing_is_held(every: int, sibling: Run) -> None:
    run = at("stepped", sibling.workspace)
    attacks = [each for step in walked(run) for each in salvo(run, step, part(step, every))]
    paid_once(run, attacks[-6:])
    salvo(run, "succeeded", part("succeeded", every))


def test_every_shot_is_fired_at_some_step_in_each_run_of_the_tests() -> None:
    assert {shot for step in EFFECTS for shot in part(step, 4)} == {*LEFT_ALONE}


@pytest.mark.parametrize("attack", DELIVERED, ids=["forged", "double"])
def test_at_each_step_a_delivery_does_the_step_once(attack: Shot, sibling: Run) -> None:
    run = at("stepped", sibling.workspace)
    attacks = []
    for step in walked(run):
        made = fired(run, step, attack)
        assert made is not None
        verdict, _, rules = DELIVERED[attack][step].partition(" ")
        assert (made.verdict, made.rule in rules.split(" or ")) == (verdict, True), step
        complete(made)
        attacks.append(made)
    paid_once(run, attacks)
    assert all(not each.evidence.get("effects_done_twice") for each in attacks)
    salvo(run, "succeeded", {attack: DELIVERED[attack]})


@pytest.mark.parametrize("every", [8, pytest.param(1, marks=pytest.mark.soak)])
@pytest.mark.parametrize("moment", ["ready", "authorize", "paused", "failed"])
def test_what_stands_still_holds_and_goes_on(moment: str, every: int, sibling: Run) -> None:
    run = standing(moment, sibling.workspace)
    before = run.state
    attacks = salvo(run, moment, {**DELIVERED, **part(moment, every)})
    assert now(run).state == before
    let_go(run)
    if moment != "failed":
        paid_once(run, attacks[-2:])


@pytest.mark.parametrize(
    ("moment", "what"),
    [
        pytest.param(moment, what, marks=() if (moment, what) in DAMAGED else pytest.mark.soak)
        for moment in MOMENTS
        for what in CORRUPTED
    ],
)
def test_damage_is_found_at_every_moment(moment: str, what: str, sibling: Run) -> None:
    run = standing(moment, sibling.workspace)
    ended = run.state in life.TERMINAL
    attack = shoot(run, "corrupt_hash", what=what, envelope="0")
    assert (attack.verdict, attack.rule) == ("DETECTED", CORRUPTED[what])
    complete(attack)
    evidence, after = attack.evidence, now(run)
    assert evidence["position"] == evidence["hit"]
    assert evidence["other_runs_quarantined_since"] == 0
    assert after.state == (run.state if ended else life.FAILED)
    assert after.quarantined
    assert after.shown_head == evidence["head_after"] == "0" * 64
    assert let_go(run).state == after.state


def standing(moment: str, workspace: Workspace) -> Run:
    """A fresh run at a moment of the matrix."""
    if moment in EFFECTS:
        return owing(moment, workspace)
    return at({"authorize": "held", "paused": "charge"}.get(moment, moment), workspace)
