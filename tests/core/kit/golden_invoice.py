"""The plays behind the golden histories of a payment; ``write_histories`` writes them."""

from collections.abc import Callable, Mapping

from nanovm_core.core.events import (
    DamageFound,
    EffectDone,
    ErasureDone,
    ErasureRequested,
    ProgramRefused,
    ResumeRequested,
)
from tests.core.kit.builders import FACTS, Play, proposal, ref, secret

OVER = 2_000_000
ERASED = (ref(1),)


def paid(play: Play) -> None:
    """The happy way: an open invoice within the limit is paid."""
    play.to_end()


def paid_after_two_refusals(play: Play) -> None:
    """The third answer of the model is the invoice."""
    play.to_propose()
    play.say(b"Of course! I will pay it now.", tokens=40)
    play.say(proposal(urgent=True), tokens=90)
    play.say(proposal(), tokens=90)
    play.pay()
    play.done({"advice": "sent"})


def refused_thrice(play: Play) -> None:
    """Three proposals of a compromised model are refused; the run fails, and absorbs the rest."""
    play.to_propose()
    play.propose(proposal("wire_transfer"))
    play.propose(proposal(payee="Mirage Holdings"))
    play.propose(proposal(amount_minor=12_845_000))
    play.propose(key="0" * 64)
    play.kill()


def declined_card(play: Play) -> None:
    """A known failure gives the reservation back and ends the run."""
    play.to_charge()
    play.failed("STR-001", retry=True)
    play.failed("STR-001")


def outcome_unknown(play: Play) -> None:
    """Nobody knows whether it was paid: a person lets the same key be asked again."""
    play.to_charge()
    play.kill()
    play.propose(proposal("wire_transfer"))
    play.unknown()
    play.pause()
    play.approve()
    play.pay()
    play.done({"advice": "sent"})


def given_up(play: Play) -> None:
    """Nobody knows whether it was paid, and a person gives up: the money stays reserved."""
    play.to_charge()
    play.unknown()
    play.decline()
    play.done({"payment_status": "succeeded"})


def held_and_approved(play: Play) -> None:
    """Over the limit: pausing does not lead around the hold, an approval does."""
    play.to_propose(amount_minor=OVER)
    play.propose(proposal(amount_minor=OVER))
    play.pause()
    play.resume()
    play.approve()
    play.pay()
    play.done({"advice": "sent"})


def held_and_declined(play: Play) -> None:
    """Over the limit and declined; an approval that comes late is absorbed."""
    play.to_propose(amount_minor=OVER)
    play.propose(proposal(amount_minor=OVER))
    play.decline()
    play.approve()
    play.approve()


def not_payable(play: Play) -> None:
    """An invoice that is not open is held for good: by a hard rule, whatever the policy."""
    play.to_propose(pay_status="paid")
    play.approve()
    play.propose(key="0" * 64)
    play.kill()


def budget_exhausted(play: Play) -> None:
    """One unit is missing; it goes on when it is there."""
    play.to_propose()
    play.ledger = {"workspace/EUR": 128_449}
    play.propose()
    play.resume()
    play.ledger = {"workspace/EUR": 128_450}
    play.resume()
    play.pay()
    play.ledger = {"workspace/EUR": 0}
    play.done({"advice": "sent"})


def no_account(play: Play) -> None:
    """Money of a currency that no account covers is not there."""
    play.to_propose(currency="USD")
    play.propose(proposal(currency="USD"))
    play.resume()


def paused_stepped_killed_erased(play: Play) -> None:
    """Paused, stepped, stopped, erased."""
    play.start()
    play.pause()
    play.done({"size_bytes": 1})
    play.step()
    play.done({"pages": 1, "source": "text"}, "staging")
    play.pause()
    play.kill()
    asked = {"refs": ERASED, "reason": "art17-1-a"}
    play.feed(ErasureRequested(**asked), at_ms=play.tick(), actor="visitor")  # type: ignore[arg-type]
    gone = {"destroyed": {"keys": 1}, "kept": ("envelopes",)}
    play.feed(ErasureDone(**asked, **gone))  # type: ignore[arg-type]


def steps_skipped_and_forged(play: Play) -> None:
    """Results of later steps, foreign keys, wrong types, foreign programs: all refused."""
    play.start()
    succeeded = {"payment_status": "succeeded"}
    play.feed(EffectDone(key="0" * 64, out=succeeded))
    play.done(succeeded)
    play.done({"size_bytes": True})
    play.done({"size_bytes": 1})
    play.done({"staging": "Acme Tools Ltd"})
    play.start()
    play.feed(ResumeRequested(program="0" * 64))
    play.feed(ProgramRefused(found="0" * 64))
    play.feed(ErasureRequested(refs=ERASED, reason="art17-1-a"))
    play.feed(DamageFound())
    play.kill()


# --- the last event must be refused ----------------------------------------------------------


def stopped_under_way(play: Play) -> None:
    """Nobody stops a run while its payment is under way."""
    play.to_charge()
    play.kill()


def forged_result(play: Play) -> None:
    """A result that does not come from the worker on the effect."""
    play.to_charge()
    secrets = (secret("payment", 9),)
    out = {"payment_status": "succeeded", "payment": ref(9)}
    forged = EffectDone(key=play.key, out=out, secrets=secrets)
    play.feed(forged, by_holder=False)


def other_amount(play: Play) -> None:
    """A proposal of another amount than the invoice's."""
    play.to_propose()
    play.propose(proposal(amount_minor=int(str(FACTS["amount_minor"])) + 1))


PLAYS: Mapping[str, Callable[[Play], None]] = {
    play.__name__: play
    for play in (
        paid,
        paid_after_two_refusals,
        refused_thrice,
        declined_card,
        outcome_unknown,
        given_up,
        held_and_approved,
        held_and_declined,
        not_payable,
        budget_exhausted,
        no_account,
        paused_stepped_killed_erased,
        steps_skipped_and_forged,
    )
}
REFUSED: Mapping[str, tuple[str, Callable[[Play], None]]] = {
    play.__name__: (code, play)
    for code, play in (
        ("FSM-009", stopped_under_way),
        ("FSM-012", forged_result),
        ("POL-010", other_amount),
    )
}
