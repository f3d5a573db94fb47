"""Step 4's adapter: the projected invoice goes to the model, its bytes come back untouched."""

from collections.abc import Mapping

from engine.ops import timings
from engine.vault import secret_store
from engine.work import Answer, Work
from nanovm_core.core.events import ProposalReceived
from nanovm_core.core.messages import Scalar
from nanovm_core.core.projection import DeterministicSanitizer
from pipeline.steps.propose import model_adapters


def ask_model(work: Work) -> Answer:
    """Show the model its projection of the invoice; its answer is untrusted bytes."""
    view, planted = view_of(work)
    most = work.program.steps[work.effect.step].tokens_max
    with timings.spent(timings.MODEL):
        answer = model_adapters.ask_once(work.run.model, view, planted, most)
    sealed = work.sealed({"proposal": answer.raw})
    event = ProposalReceived(
        raw=answer.raw,
        secret=sealed["proposal"].commitment,
        key=work.effect.key,
        tokens=answer.tokens,
    )
    return Answer(event=event, secrets=tuple(sealed.values()))


def view_of(work: Work) -> tuple[Mapping[str, Scalar], bytes]:
    """The projection of the invoice, and what a compromised model is to say."""
    refs = {slot: ref for slot, ref in work.slots.items() if work.program.slots[slot].type == "ref"}
    for slot in work.program.advice.slots & refs.keys():
        del refs[slot]  # an advisor's words would mask the same words in what is shown
    values = secret_store.read_all([str(ref) for ref in refs.values()])
    opened = {slot: values[str(ref)] for slot, ref in refs.items() if slot != "document"}
    modes = {name: slot.model for name, slot in work.program.slots.items()}
    planted = opened.get("planted", "").encode()
    return DeterministicSanitizer(modes=modes).for_model(work.slots, opened), planted
