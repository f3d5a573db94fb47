"""The table of adapters: what does the effects of each tool."""

from collections.abc import Callable, Mapping

from engine.work import Answer, Work
from pipeline.steps import advise, extract, receive, seal, vault
from pipeline.steps.charge import payout
from pipeline.steps.charge import step as charge
from pipeline.steps.propose import step as propose

ADAPTERS: Mapping[str, Callable[[Work], Answer]] = {
    "document.receive": receive.receive,
    "invoice.extract": extract.extract_invoice,
    "vault.split": vault.split,
    "advisor.assess": advise.advise,
    "model.propose": propose.ask_model,
    "stripe.create_payment_intent": charge.charge,
    "notify.send_email": seal.send_advice,
    "wire_transfer": payout.wire_transfer,  # granted to nobody
}
# What became of an effect that answered that it is under way, by tool.
ASKED: Mapping[str, Callable[..., Answer]] = {"stripe.create_payment_intent": charge.ask}
