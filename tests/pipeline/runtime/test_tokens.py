"""What a warrant's token is signed for: the run's own program, and a tool that was granted."""

from types import MappingProxyType

import pytest

from nanovm_core.core.messages import Effect, RunId, Snapshot
from nanovm_core.core.program import Program
from nanovm_core.core.warrants import binding, check, mint
from nanovm_core.errors import RefusedError
from pipeline.runtime import warrants
from pipeline.store import programs

PAY = "stripe.create_payment_intent"
NOW_MS = 1_000


def owed(program: str, tool: str = PAY) -> tuple[Snapshot, Effect]:
    """A run under this program, and a warranted effect of it."""
    effect = Effect("charge", tool, 1, "k" * 64, MappingProxyType({"amount_minor": 1}), NOW_MS)
    bound = binding("run", program, effect)
    warranted = effect._replace(warrant=mint(bound, at_ms=NOW_MS, ttl_ms=9))
    run = RunId("run")
    return Snapshot(run=run, program=program, policy="", state="", step="charge"), warranted


@pytest.fixture
def program() -> Program:
    return programs.current()


def test_the_runs_own_call_is_signed(program: Program) -> None:
    now, effect = owed(program.hash)
    token = warrants.token(program, now, effect)
    bound = binding("run", program.hash, effect)
    check(token, bound, warrants.public_key(), at_ms=NOW_MS)


def test_a_call_that_was_warranted_under_another_program_is_not_signed(program: Program) -> None:
    now, _ = owed("0" * 64)
    _, effect = owed(program.hash)
    with pytest.raises(RefusedError) as refused:
        warrants.token(program, now, effect)
    assert refused.value.code == "CAP-020"


def test_a_call_of_a_tool_that_was_never_granted_is_not_signed(program: Program) -> None:
    now, effect = owed(program.hash, "wire_transfer")
    with pytest.raises(KeyError):
        warrants.token(program, now, effect)
