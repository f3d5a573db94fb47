"""The remittance advice as an RFC 5322 message; a control character in any field is refused."""

import unicodedata
from datetime import UTC, datetime
from email.headerregistry import Address
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import format_datetime

from engine.errors import PermanentError
from pipeline.register.details import is_address

SENDER = Address("Accounts payable", "accounts-payable", "nanovm.invalid")  # RFC 2606: no such host
ENCODED = "=?"  # begins an encoded word (RFC 2047), which may stand for a line feed
_CONTROL = ("Cc", "Zl", "Zp", "Cs")  # controls, line and paragraph separators, half a pair


def message(to: str, subject: str, body: str, *, name: str, at_ms: int) -> bytes:
    """The advice, ready for a mail server: CRLF line ends, headers in ASCII.

    ``to`` is one address, ``body`` may have line feeds and no other control character, ``name``
    makes the message's id: the same run's message has the same one.

    Raises:
        PermanentError: ADV-001, where a field has a control character or an encoded word, or ``to``
            is no address.
    """
    require_line("address", to)
    if not is_address(to):
        raise _refused("its address is not one e-mail address")
    require_line("subject", subject)
    for line in body.split("\n"):
        require_line("text", line)
    mail = EmailMessage(policy=SMTP.clone(utf8=False))
    mail["From"] = SENDER
    mail["To"] = Address(addr_spec=to)
    mail["Subject"] = subject
    mail["Date"] = format_datetime(datetime.fromtimestamp(at_ms // 1000, UTC))
    mail["Message-ID"] = f"<{name}@{SENDER.domain}>"
    mail.set_content(body)
    return mail.as_bytes()


def require_line(field: str, text: str) -> None:
    """Return if a field of the advice is one line of text.

    Raises:
        PermanentError: ADV-001, naming the field and the character, not the text.
    """
    if ENCODED in text:
        raise _refused(f"its {field} has an encoded word")
    for char in text:
        if unicodedata.category(char) in _CONTROL:
            raise _refused(f"its {field} has the control character U+{ord(char):04X}")


def _refused(fault: str) -> PermanentError:
    return PermanentError("ADV-001", f"The remittance advice was not written: {fault}.")
