"""What is altered on its way is refused or found, and what is stored stays as it was."""

import pytest

from nanovm_core.core import lifecycle as life
from nanovm_core.core import warrants
from pipeline.evidence import signer
from pipeline.runtime import api
from sabotage.injectors.corrupt_hash import MISSED, QUEUE, REWRITTEN, WARRANT
from sabotage.kit.injector import InjectionError
from tests.sabotage.runs import at, let_go, now, owing, run_hash, shoot

pytestmark = pytest.mark.usefixtures("runtime_here")


def test_a_rewritten_record_is_missed_by_its_chain_and_found_under_a_checkpoint() -> None:
    run = at("succeeded")
    early = shoot(run, "corrupt_hash", what=REWRITTEN, envelope="3")
    assert (early.verdict, early.evidence["carrier"], early.evidence["note"]) == (
        "ACCEPTED", "export", MISSED,
    )  # fmt: skip
    signer.checkpoint(run.workspace_id)
    before = run_hash(run)
    for what in (REWRITTEN, "record in flight"):
        late = shoot(run, "corrupt_hash", what=what, envelope="3")
        assert (late.verdict, late.evidence["carrier"]) == ("DETECTED", "bundle")
        assert late.evidence["verifier"].startswith("INVALID")
        assert not late.evidence["verifier_on_the_honest_one"].startswith("INVALID")
        assert late.evidence["expected"] != late.evidence["found"]
        assert late.where.startswith("nanovm_core/verify.py:")
    assert run_hash(run) == before


@pytest.mark.parametrize("envelope", ["0", "5"])
def test_any_byte_of_a_record_may_be_altered(envelope: str) -> None:
    run = at("succeeded")
    for byte in ("1", "40", "200"):
        attack = shoot(run, "corrupt_hash", what="record in flight", envelope=envelope, byte=byte)
        assert (attack.verdict, attack.evidence["byte"]) == ("DETECTED", int(byte))
    assert api.check(str(run.id)) is None


def test_the_chosen_byte_of_what_is_stored_is_the_one_that_is_altered() -> None:
    run = at("succeeded")
    attack = shoot(run, "corrupt_hash", what="hash", envelope="2", byte="64")
    assert (attack.verdict, attack.rule, attack.evidence["byte"]) == ("DETECTED", "LOG-001", 64)
    assert attack.evidence["expected"][:63] == attack.evidence["found"][:63]


@pytest.mark.parametrize("what", ["bytes", "hash", "snapshot", "record in flight", QUEUE])
def test_a_byte_that_is_not_there_is_said_so(what: str) -> None:
    run = at("ready")
    with pytest.raises(InjectionError, match="There are the bytes 1 to"):
        shoot(run, "corrupt_hash", what=what, byte="2000000000")
    assert now(run).length == run.length


@pytest.mark.parametrize("byte", ["1", "64", "65", "200"])
def test_a_warrant_with_any_byte_altered_buys_nothing(byte: str) -> None:
    run = owing("charge")
    attack = shoot(run, "corrupt_hash", what=WARRANT, byte=byte)
    assert (attack.verdict, attack.rule) == ("BLOCKED", "CAP-022")
    assert attack.evidence["far_side"]["succeeded"] == 0
    assert let_go(run).state == life.COMPLETED


def test_an_adapter_that_checks_no_warrant_would_pay(monkeypatch: pytest.MonkeyPatch) -> None:
    run = owing("charge")
    with monkeypatch.context() as patched:
        patched.setattr(warrants, "check", lambda *_, **__: None)
        attack = shoot(run, "corrupt_hash", what=WARRANT)
    assert (attack.verdict, attack.rule) == ("ACCEPTED", "")
    assert attack.evidence["far_side"]["succeeded"] == 1


def test_without_the_hash_in_the_message_an_altered_one_is_taken_for_a_wake_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from nanovm_core.core.fsm import drafts

    monkeypatch.setattr(drafts, "expect_program", lambda now, named: None)
    attack = shoot(at("charge"), "corrupt_hash", what=QUEUE)
    assert (attack.verdict, attack.rule) == ("IGNORED", "FSM-011")
