"""The words that invoices use, in folded form (see ``fold``), by what they mean: ``words.toml``."""

import re
import tomllib
from pathlib import Path
from typing import Final

_WORDS: Final = tomllib.loads(Path(__file__).with_name("words.toml").read_text("utf-8"))


def words(name: str) -> str:
    """A pattern for every word of a meaning."""
    return "|".join(_WORDS[name])


DUE: Final = re.compile(words("due"))
EXCLUDING: Final = re.compile(words("excluding"))
NET: Final = re.compile(words("net"))
GROSS: Final = re.compile(words("gross"))
TAX: Final = re.compile(words("tax"))
DISCOUNT: Final = re.compile(words("discount"))
ADJUSTMENT: Final = re.compile(f"{words('discount')}|{words('charge')}")
OTHER: Final = re.compile(words("other"))
ROUNDING: Final = re.compile(words("rounding"))
TOTAL: Final = re.compile(words("total"))
TAKEN_OFF: Final = re.compile(words("taken_off"))
EARLIER: Final = re.compile(words("earlier"))
SUMS: Final = (ADJUSTMENT, TAX, NET, GROSS, DUE, ROUNDING, TOTAL)  # in the order to look
CARRIED: Final = re.compile(words("carried"))
CONDITIONAL: Final = re.compile(words("conditional"))
ASKS: Final = re.compile(words("asks"))
INVOICE: Final = re.compile(words("invoice"))
# Whole words; a space may be missing, as in text that was set with wide letters.
_TITLES: Final = words("title").replace("(?: ", "(?: ?").replace(" ", " ?").replace(" ??", " ?")
INVOICE_NAME: Final = re.compile(rf"(?<![\w@-])(?:{_TITLES})(?!\w|[-.]\w)")
LABEL_LIKE: Final = re.compile(r"[a-z]\.?[a-z]")
