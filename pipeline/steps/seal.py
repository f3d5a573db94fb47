"""Step 7: send the supplier a remittance advice; the kernel then seals the end of the run.

The advice is an RFC 5322 message; a control character in any field is refused.
"""

import unicodedata
from datetime import UTC, datetime
from email.headerregistry import Address
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import format_datetime
from pathlib import Path

from django.conf import settings

from engine.clock import now_ms
from engine.errors import PermanentError
from engine.models import Run
from engine.work import Answer, Work, done
from pipeline.register.details import is_address

SENDER = Address("Accounts payable", "accounts-payable", "nanovm.invalid")  # RFC 2606: no such host
ENCODED = "=?"  # begins an encoded word (RFC 2047), which may stand for a line feed
_CONTROL = ("Cc", "Zl", "Zp", "Cs")  # controls, line and paragraph separators, half a pair


def send_advice(work: Work) -> Answer:
    """Write the remittance advice to the supplier: a file, in place of a mail server."""
    to = work.opened("to").decode()
    if "@" not in to:
        return done(work, {"advice": "not_sent"}, {}, outcome="no_address")
    subject, body = work.opened("subject").decode(), work.opened("body").decode()
    name = str(work.run.id)
    mail = message(to, subject, body, name=name, at_ms=now_ms())
    file = advice_file(name)
    file.write_bytes(mail)
    try:
        work.opened("to")
    except PermanentError:  # erased meanwhile: another worker finished the run
        file.unlink(missing_ok=True)
        raise
    return done(work, {"advice": "sent"}, {})


def advice_of_the_erased() -> list[Path]:
    """Advice in the clear, of runs that were erased or that the database does not have."""
    files = sorted((settings.NANOVM_DATA / "mail").glob("*.eml"))
    runs = {str(each) for each in Run.objects.filter(erased_ms=None).values_list("id", flat=True)}
    return [each for each in files if each.stem not in runs]


def advice_file(run_id: str) -> Path:
    """The file of a run's remittance advice, which an erasure deletes."""
    folder: Path = settings.NANOVM_DATA / "mail"
    folder.mkdir(exist_ok=True)
    return folder / f"{run_id}.eml"


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
    """Return if a field is one line of text; else ADV-001 names it and the character alone."""
    if ENCODED in text:
        raise _refused(f"its {field} has an encoded word")
    for char in text:
        if unicodedata.category(char) in _CONTROL:
            raise _refused(f"its {field} has the control character U+{ord(char):04X}")


def _refused(fault: str) -> PermanentError:
    return PermanentError("ADV-001", f"The remittance advice was not written: {fault}.")
