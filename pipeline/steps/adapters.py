"""The table of adapters, and the one way to use it: ``perform``."""

from collections.abc import Callable, Mapping

from nanovm_core.errors import RefusedError
from pipeline.errors import FailedForNowError, OutcomeUnknownError, PermanentError
from pipeline.steps import authorize, receive, seal, vault
from pipeline.steps.charge import payout
from pipeline.steps.charge import step as charge
from pipeline.steps.extract import ExtractionError
from pipeline.steps.extract import step as extract
from pipeline.steps.propose import step as propose
from pipeline.steps.work import Answer, Work, failed

TOO_SLOW = "DOC-007"  # on a machine that is busy now; the same document may be read later

ADAPTERS: Mapping[str, Callable[[Work], Answer]] = {
    "document.receive": receive.receive,
    "invoice.extract": extract.extract_invoice,
    "vault.split": vault.split,
    "model.propose": propose.ask_model,
    "stripe.create_payment_intent": charge.charge,
    "notify.send_email": seal.send_advice,
    "wire_transfer": payout.wire_transfer,  # granted to nobody
}


# What became of an effect that answered that it is under way, by tool.
ASKED: Mapping[str, Callable[..., Answer]] = {"stripe.create_payment_intent": charge.ask}


def ask(work: Work, *, is_late: bool) -> Answer | None:
    """Ask the far side what became of an effect that is under way; None where nobody can be asked.

    Nothing is done there, so it needs no warrant; ``is_late``: an effect that is still under way
    is taken back.

    Raises:
        TransientError, OutcomeUnknownError: from an adapter; the effect stays under way.
    """
    asked = ASKED.get(work.effect.tool)
    return asked(work, is_late=is_late) if asked else None


def perform(work: Work) -> Answer:
    """Do one effect; a known failure is an answer, not an exception.

    A granted tool is used only under a warrant that covers exactly this call.

    Raises:
        TransientError, OutcomeUnknownError: from an adapter; the effect stays owed.
    """
    try:
        if work.effect.tool in work.program.grants:
            authorize.check_warrant(work)
        return ADAPTERS[work.effect.tool](work)
    except FailedForNowError as error:
        return failed(work, error.code, error.text, retry=True)
    except (PermanentError, ExtractionError) as error:
        return failed(work, error.code, error.text, retry=error.code == TOO_SLOW)
    except RefusedError as error:  # another attempt would have another key, and might pay twice
        text = f"{error.text} Approve it to authorize the same call again, under the same key."
        raise OutcomeUnknownError(error.code, text) from error
