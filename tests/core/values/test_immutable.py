"""Nothing that the kernel gives away can be changed, and nothing that it is given changes it."""

from collections.abc import Callable, Mapping

import pytest

from nanovm_core.core.envelope import decode_snapshot, encode_snapshot
from nanovm_core.core.events import AnswerArrived, ErasureDone, RunStarted
from nanovm_core.core.fsm import begin, quarantine, replay
from nanovm_core.core.messages import Scalar
from nanovm_core.errors import VerificationError
from nanovm_core.vm import Done, ExecutionVM
from tests.core.kit.builders import RUN, START_MS, Play, ref
from tests.core.kit.deployment import deploy, gate, rollback
from tests.core.kit.histories import FILES
from tests.core.loading.test_program import mutable, parts
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
    first = begin(gate(), RUN, {"change": "c"}, [], at_ms=1, actor="x")
    damage = VerificationError("LOG-001", "changed", at=2, expected="a" * 64, found="b" * 64)
    for decision in (first, quarantine(Play().to_charge().now, damage, at_ms=5)):
        assert mutable(decision) == []


def test_a_value_read_from_bytes_or_replayed_is_frozen() -> None:
    for file in FILES[::3]:
        scene, _ = played(file)
        for draft in scene.drafts:
            assert mutable(decode_snapshot(encode_snapshot(draft.after))) == []
        events = [(event, context) for event, context, _ in scene.heard]
        assert mutable(replay(scene.program, scene.first, events)) == []


def test_programs_of_both_kinds_are_frozen_under_their_policies() -> None:
    assert mutable(gate(policy="gate_careful.toml")) == []
    program = gate()
    assert mutable(program.attenuated(program.grants.values())) == []


def test_no_value_of_ours_takes_another_attribute() -> None:
    play = Play().to_charge()
    found = [*parts(play.heard[-1][2], "decision"), *parts(play.program, "program")]
    ours = [value for _, value in found if type(value).__module__.startswith("nanovm_core")]
    assert [value for value in ours if hasattr(value, "__dict__")] == []
    kinds = {type(value).__name__ for value in ours}
    assert kinds >= {"Decision", "Snapshot", "Draft", "Effect", "Warrant", "Reservation", "Program"}
    assert kinds >= {"Step", "Tool", "Grant", "PolicyRule", "Policy", "Limits", "Slot"}


def test_what_an_erasure_was_told_may_change_afterwards() -> None:
    play = Play().to_end()
    destroyed = {"keys": 1}
    gone = ErasureDone(refs=(ref(1),), reason="art17-1-a", destroyed=destroyed)
    (draft,) = play.feed(gone).drafts
    destroyed["keys"] = 0
    assert draft.body["out"] == {"destroyed": {"keys": 1}, "kept": ()}


class Vandal:
    """Tools and a model that spoil all that they get into their hands, or had in them."""

    def __init__(self, healthy: bool) -> None:
        self.seen: list[Mapping[str, object]] = []
        self.held: list[dict[str, Scalar]] = []
        self.asked = 0
        self.answers: dict[str, dict[str, Scalar]] = {
            "ci.build": {"artifact": "v2", "tests_failed": 0},
            "cluster.deploy": {"release": "r-1"},
            "probe.check": {"healthy": healthy},
        }

    def tool(self, name: str) -> Callable[[dict[str, Scalar], str], Done]:
        """A tool that spoils its arguments now, and its answer at the next call."""

        def call(args: dict[str, Scalar], key: str) -> Done:
            self.seen.append(dict(args))
            self.spoil(args, key)
            out = dict(self.answers.get(name, {}))
            self.held.append(out)
            return Done(out=out)

        return call

    def model(self, view: dict[str, Scalar]) -> bytes:
        """A model that spoils what it was shown."""
        self.spoil(view, "")
        self.asked += 1
        return deploy() if self.asked == 1 else rollback()

    def spoil(self, given: dict[str, Scalar], key: str) -> None:
        """Change everything at hand."""
        self.held.append(given)
        for each in self.held:
            each.update(dict.fromkeys(each, "evil"))
            each["artifact"], each["extra"] = "evil", key


@pytest.mark.parametrize("healthy", [True, False])
def test_a_tool_that_changes_what_it_got_changes_nothing(healthy: bool) -> None:
    vandal, clock, program = Vandal(healthy), iter(range(START_MS, START_MS + 10_000)), gate()
    slots: dict[str, Scalar] = {"change": "c-17", "risk": 7, "frozen": False}
    vm = ExecutionVM(
        program,
        run=RUN,
        tools={name: vandal.tool(name) for name in program.tools},
        model=vandal.model,
        slots=slots,
        now_ms=lambda: next(clock),
    )
    slots["change"] = "evil"
    vm.feed(RunStarted())
    key = vm.run().awaits
    vm.answer(AnswerArrived(run=RUN, program=program.hash, key=key))
    ended = vm.run()
    vm.verify()
    assert ended.state == "terminated.completed"
    assert {"artifact": "v2", "region": "eu-1", "replicas": 3} in vandal.seen
    assert ({"artifact": "v2"} in vandal.seen) == (not healthy)
    assert (ended.slots["change"], ended.slots["healthy"]) == ("c-17", healthy)
    assert "evil" not in str(ended)
    assert all(b"evil" not in each.data for each in vm.envelopes)
