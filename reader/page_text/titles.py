"""The names of an invoice in fourteen languages, in folded form: no seller is called so."""

import re
from typing import Final

_INVOICE: Final = (
    r"(?:(?:tax|vat|sales|commercial|service|final|customer|interim) ?-?)*invoice|e-?invoice|bill",
    r"(?:[a-z]+-?)?rechnung|factuur|[a-z]+factuur|facture|fattura|factura|fatura",
    r"(?:[a-z]+)?faktura|faktur|fakturering|(?:danovy )?doklad|regning|rakning|(?:[a-z]+)?lasku",
    r"(?:[a-z]+)?szamla|honorarnote|note d.honoraires|parcella|(?:honorar)?liquidation",
)


def _whole(patterns: tuple[str, ...]) -> re.Pattern[str]:
    """Whole words; a space may be missing, as in text that was set with wide letters."""
    body = "|".join(patterns).replace("(?: ", "(?: ?").replace(" ", " ?")
    return re.compile(rf"(?<![\w@-])(?:{body.replace(' ??', ' ?')})(?!\w|[-.]\w)")


INVOICE_NAME: Final = _whole(_INVOICE)
