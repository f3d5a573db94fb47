"""What the register knows of a supplier, and what of it is accepted."""

import json
import unicodedata
from collections.abc import Collection, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from email.errors import MessageError
from email.headerregistry import Address

from stdnum import iban as iban_number

from nanovm_core.errors import NanovmError
from pipeline.register.known_text import NOTHING_KNOWN, KnownText
from reader.known_text.unit import Unit

CHARS_MAX = 200  # of any one field
MARKS_MAX = 4_000  # accepted texts, pictures and drawings of one supplier


class DetailsError(NanovmError):
    """Details that the register does not take; the text names each fault."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Details:
    """A supplier's name, tax id, account and address; empty is unknown.

    ``account`` is its connected account at Stripe, which the runtime creates: one for each set of
    bank details. ``former`` is the one that the bank details before these had. ``known`` is what
    a person accepted of its invoices, ``shared`` the account that a person accepted although
    another supplier has it.
    """

    name: str
    tax_id: str = ""
    iban: str = ""
    email: str = ""
    account: str = ""
    former: str = ""
    shared: str = ""
    known: KnownText = NOTHING_KNOWN

    def to_bytes(self) -> bytes:
        """One JSON object; ``from_bytes`` reads it."""
        return json.dumps(asdict(self), sort_keys=True, separators=(",", ":")).encode()

    @classmethod
    def from_bytes(cls, data: bytes) -> "Details":
        value = json.loads(data)
        known = value.pop("known", None)  # of a supplier that an earlier release registered
        return cls(**value, known=KnownText.from_json(known) if known else NOTHING_KNOWN)

    @classmethod
    def of(cls, texts: Mapping[str, str], known: KnownText = NOTHING_KNOWN) -> "Details":
        return cls(**texts, known=known)

    def texts(self) -> dict[str, str]:
        return {name: text for name, text in asdict(self).items() if isinstance(text, str)}

    def accepting(self, units: Collection[Unit]) -> "Details":
        """With these units of an invoice accepted; SUP-006 for more than are kept."""
        known = self.known.with_units(units)
        if len(known.marks) > MARKS_MAX:
            text = (
                f"The register keeps {MARKS_MAX:,} accepted texts and pictures of a supplier, and"
                " there are more with this invoice. Pay it once, without remembering its text."
            )
            raise DetailsError("SUP-006", text)
        return replace(self, known=known)

    def indexed(self) -> dict[str, str]:
        """What the register finds the supplier by, by kind; several may have one account."""
        return self.identities() | ({"iban": self.iban} if self.iban else {})

    def identities(self) -> dict[str, str]:
        """What identifies the supplier on an invoice, by kind, in one spelling."""
        found = {"tax_id": compact(self.tax_id), "name": plain_name(self.name)}
        return {kind: text for kind, text in found.items() if text}


def checked(details: Details) -> Details:
    """The details, trimmed, with the account in one spelling; SUP-001 names every fault."""
    texts = {name: text.strip() for name, text in details.texts().items()}
    found = Details.of(texts, details.known)
    if faults := "; ".join(_faults(found)):
        raise DetailsError("SUP-001", f"{faults}.")
    return replace(found, iban=compact(found.iban))


def _faults(details: Details) -> Iterator[str]:
    for field, text in details.texts().items():
        if len(text) > CHARS_MAX:
            yield f"{field} has more than {CHARS_MAX} characters"
        elif any(map(_is_control, text)):
            yield f"{field} has a control character"
    if not plain_name(details.name):
        yield "name is missing"
    if details.iban and not iban_number.is_valid(details.iban):
        yield "iban has wrong check digits, or is no IBAN"
    if details.email and not is_address(details.email):
        yield "email is no e-mail address"


def is_address(text: str) -> bool:
    """Whether this is one e-mail address in ASCII, without a display name or a comment."""
    if text.count("@") != 1 or not text.isascii():
        return False
    try:
        address = Address(addr_spec=text)
    except (ValueError, IndexError, MessageError):
        return False
    return bool(address.username and address.domain) and address.addr_spec == text


def is_plain_line(text: str) -> bool:
    """Whether a text is short and has no control character."""
    return len(text) <= CHARS_MAX and not any(map(_is_control, text))


def _is_control(char: str) -> bool:
    return unicodedata.category(char).startswith("C")


def one_line(text: str) -> str:
    """A name on one line, where a document sets it on two, as long ones are."""
    return text.replace("\n", " ")


def compact(text: str) -> str:
    """Letters and digits alone, upper case: a number however it is grouped."""
    return "".join(char for char in folded(text) if char.isalnum())


def folded(text: str) -> str:
    """Upper case, each character in its plain form."""
    return unicodedata.normalize("NFKC", text).upper()


def plain_name(text: str) -> str:
    """A name without case, accents' forms, punctuation and repeated blanks."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    words = "".join(char if char.isalnum() else " " for char in folded).split()
    return " ".join(words)
