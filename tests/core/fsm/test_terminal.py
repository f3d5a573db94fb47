"""What is sealed of an erasure that a law forbids for now."""

from nanovm_core.core.events import ErasureRefused
from tests.core.kit.builders import Play, ref


def test_refused_erasure_is_sealed_in_any_state_and_changes_none() -> None:
    refused = ErasureRefused(refs=(ref(1),), reason="art17-1-a", ground="art17-3-b", until_ms=9)
    for play in (Play().to_propose(), Play().to_end()):
        before = play.now
        sealed = play.feed(refused).drafts[-1]
        assert (sealed.kind, sealed.body["rule"]) == ("erasure_refused", "PII-012")
        assert sealed.body["out"] == {"ground": "art17-3-b", "until_ms": 9}
        assert play.now == before
