"""Step 4's adapter: the projected invoice goes to the model, its bytes come back untouched."""

from engine.ops import timings
from engine.vault import secret_store
from engine.work import Answer, Work
from nanovm_core.core.events import ProposalReceived
from nanovm_core.core.projection import DeterministicSanitizer
from pipeline.steps.propose import model_adapters


def ask_model(work: Work) -> Answer:
    """Show the model its projection of the invoice; its answer is untrusted bytes."""
    refs = {slot: ref for slot, ref in work.slots.items() if work.program.slots[slot].type == "ref"}
    values = secret_store.read_all([str(ref) for ref in refs.values()])
    opened = {slot: values[str(ref)] for slot, ref in refs.items() if slot != "document"}
    modes = {name: slot.model for name, slot in work.program.slots.items()}
    planted = opened.get("planted", "").encode()
    view = DeterministicSanitizer(modes=modes).for_model(work.slots, opened)
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
