"""Whom a payment goes to: the account that the sealed intent names, held to the register."""

from engine.errors import PermanentError
from engine.work import Work, opened
from nanovm_core.core.messages import Effect
from nanovm_core.errors import VerificationError
from pipeline.models import Supplier
from pipeline.register import connected, suppliers

UNKNOWN = "none: Stripe does not know the payee"  # what is sealed in its place


def sealed_form(account: str) -> str:
    """What the vault keeps of a supplier's account, or of its lack."""
    return account or UNKNOWN


def of(effect: Effect) -> str:
    """The account that the sealed intent commits to; empty where it says that there is none.

    Raises:
        PermanentError: STR-008 the intent names none, PII-… what it names does not open.
    """
    if "destination" not in effect.args:
        raise _refused("The authorized call names no account of the payee.")
    sealed = opened(effect, "destination").decode()
    return connected.NONE if sealed == UNKNOWN else sealed


def require_registered(work: Work, account: str) -> None:
    """Return if the register, as it is now, has this account for the run's supplier.

    Raises:
        PermanentError: STR-008 another account, blocked or erased since; PII-002 where the
            register is not as the log says.
    """
    try:
        entry = suppliers.named(work.run.workspace, str(work.slots.get("supplier", "")))
    except (Supplier.DoesNotExist, ValueError) as error:
        raise _refused("The supplier is not in the register any more.") from error
    except VerificationError as error:
        raise PermanentError(error.code, error.text) from error
    if entry.row.state != suppliers.ACTIVE or entry.details is None:
        raise _refused(f"The supplier was {entry.row.state} after the invoice was read.")
    if entry.details.account != account:
        raise _refused("The register has another account for the supplier than the sealed intent.")


def _refused(text: str) -> PermanentError:
    return PermanentError("STR-008", f"{text} Nothing was sent to Stripe.")
