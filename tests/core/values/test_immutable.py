"""Nothing that the kernel gives away can be changed, and nothing that it is given changes it."""

from nanovm_core.core.envelope import encode_snapshot
from nanovm_core.core.events import ErasureDone
from nanovm_core.core.fsm import begin, quarantine
from nanovm_core.core.messages import Scalar
from nanovm_core.core.snapshots import _decoded
from nanovm_core.errors import VerificationError
from tests.core.kit.builders import RUN, Play, ref, replay
from tests.core.kit.histories import FILES
from tests.core.kit.refund_desk import DESK
from tests.core.loading.test_program import mutable
from tests.core.values.test_histories import played


def test_whatever_comes_out_of_a_transition_is_frozen_to_its_last_field() -> None:
    seen = set()
    for file in FILES:
        scene, _ = played(file)
        assert mutable(tuple(decision for _, _, decision in scene.heard)) == []
        assert mutable(scene.drafts[0]) == []
        seen |= {draft.kind for draft in scene.drafts}
    assert seen >= {"intent", "result", "refused", "failed", "suspended", "resumed", "terminal"}
    assert seen >= {"ignored", "erasure_requested", "erasure_done"}


def test_a_new_run_and_a_damaged_one_are_frozen() -> None:
    slots: dict[str, Scalar] = {"order": "A-1"}
    first = begin(DESK, RUN, slots, [], at_ms=1, actor="x")
    slots["order"] = "evil"
    assert dict(first.snapshot.slots) == {"order": "A-1"}
    damage = VerificationError("LOG-001", "changed", at=2, expected="a" * 64, found="b" * 64)
    for decision in (first, quarantine(Play().to_charge().now, damage, at_ms=5)):
        assert mutable(decision) == []


def test_a_value_read_from_bytes_or_replayed_is_frozen() -> None:
    for file in FILES[::3]:
        scene, _ = played(file)
        for draft in scene.drafts:
            assert mutable(_decoded(encode_snapshot(draft.after))) == []
        events = [(event, context) for event, context, _ in scene.heard]
        assert mutable(replay(scene.program, scene.first, events)) == []


def test_a_program_is_frozen_under_narrowed_grants() -> None:
    assert mutable(DESK.attenuated(DESK.grants.values())) == []


def test_what_an_erasure_was_told_may_change_afterwards() -> None:
    play = Play().to_end()
    destroyed = {"keys": 1}
    gone = ErasureDone(refs=(ref(1),), reason="art17-1-a", destroyed=destroyed)
    (draft,) = play.feed(gone).drafts
    destroyed["keys"] = 0
    assert draft.body["out"] == {"destroyed": {"keys": 1}, "kept": ()}
