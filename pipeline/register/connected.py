"""A supplier's account at Stripe, as the register knows it: put down once, and sealed."""

from dataclasses import replace

from django.db import transaction

from engine.store import records
from pipeline.register import suppliers
from pipeline.register.details import DetailsError
from pipeline.register.versions import Entry

NONE = ""  # the payment provider makes no accounts for others: it does not know the payee


def connect(entry: Entry, account: str) -> Entry:
    """Put down the account that was made at Stripe for a supplier's bank details.

    Again, or where another run did it meanwhile: nothing is sealed.

    Raises:
        DetailsError: SUP-003 erased meanwhile, SUP-005 changed otherwise meanwhile.
    """
    with transaction.atomic():
        workspace = records.lock_log(entry.row.workspace_id)
        now = suppliers.named(workspace, entry.id)
        details = now.details
        if details is None:
            raise DetailsError("SUP-003", "The supplier was erased. Register it again.")
        if details.account == account:
            return now
        if details != entry.details or now.row.state != entry.row.state:
            text = "The supplier was changed while its account was made. Run the invoice again."
            raise DetailsError("SUP-005", text)
        new = replace(details, account=account)
        return suppliers.change(now, new, actor="runtime", event=suppliers.CONNECTED)
