"""The remittance advice: a proper message, and no control character in any field of it."""

from dataclasses import replace
from datetime import UTC, datetime
from email import message_from_bytes
from email.policy import SMTP

import pytest

from engine.errors import PermanentError
from nanovm_core.core import lifecycle as life
from pipeline.steps import seal, vault
from reader import Extraction
from samples import path
from tests.kit.house import House, bodies, payments, reason

GOOD = {"to": "ar@nordlicht.example", "subject": "Payment of 17", "body": "Dear Q,\n\npaid.\n"}
AT_MS = 1_790_000_000_000


def made(**changed: str) -> bytes:
    """The message of good fields, but for those that are changed."""
    return seal.message(**(GOOD | changed), name="run-1", at_ms=AT_MS)


def test_advice_is_a_message_that_a_mail_server_takes() -> None:
    data = made(
        subject="Zahlung für Rechnung 17 – Größe", body="Grüße\n.\nFrom here\n" + "x" * 2000
    )
    read = message_from_bytes(data, policy=SMTP)
    assert (data.isascii(), b"\n" in data.replace(b"\r\n", b"")) == (True, False)
    assert max(map(len, data.split(b"\r\n"))) <= 998
    assert (read["To"], read["Subject"]) == (GOOD["to"], "Zahlung für Rechnung 17 – Größe")
    assert read["Date"].datetime == datetime.fromtimestamp(AT_MS // 1000, UTC)
    assert [*read.keys()][:5] == ["From", "To", "Subject", "Date", "Message-ID"]
    assert read.get_content().replace("\r\n", "\n").startswith("Grüße\n.\nFrom here\n")
    assert not read.defects


@pytest.mark.parametrize(
    "sign", ["\r", "\n", "\0", "\t", "\x1b", "\x7f", "\x85", "\u2028", "\u2029"]
)
@pytest.mark.parametrize("field", GOOD)
def test_control_character_in_any_field_is_refused(field: str, sign: str) -> None:
    fault = f"{GOOD[field][:3]}{sign}Bcc: thief@evil.example{sign}{GOOD[field][3:]}"
    if (field, sign) == ("body", "\n"):
        assert b"\r\nBcc:" in made(body=fault).partition(b"\r\n\r\n")[2]
        return
    with pytest.raises(PermanentError) as caught:
        made(**{field: fault})
    assert (caught.value.code, f"U+{ord(sign):04X}" in caught.value.text) == ("ADV-001", True)
    assert "evil" not in caught.value.text


@pytest.mark.parametrize("field", GOOD)
def test_encoded_word_that_stands_for_a_header_is_refused(field: str) -> None:
    with pytest.raises(PermanentError, match="ADV-001"):
        made(**{field: f"{GOOD[field]} =?utf-8?q?x=0d=0aBcc:_thief=40evil.example?="})


@pytest.mark.parametrize("to", [
    *("", "nobody", "a@b@c", "Q <a@b.example>", "a@b.example, c@d.example"),
    *("a@müller.example", "a@b.example (c)", "a@b.example "),
])  # fmt: skip
def test_what_is_no_single_address_is_refused(to: str) -> None:
    with pytest.raises(PermanentError, match="ADV-001"):
        made(to=to)


def test_name_that_would_add_lines_fails_before_the_payment(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = vault.personal_values

    def hostile(found: Extraction) -> dict[str, bytes]:
        named = replace(found.fields, seller="Acme\r\nBcc: thief@evil.example")
        return real(replace(found, fields=named))

    monkeypatch.setattr(vault, "personal_values", hostile)
    run = house.run()
    assert (run.state, reason(run), payments(run)) == (life.FAILED, "ADV-001", [])
    assert "evil" not in str(bodies(run))
    assert not [*(house.folder / "mail").glob("*")]


def test_advice_that_is_refused_after_the_payment_writes_nothing(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = vault.personal_values
    broken = {"advice_subject": b"Payment\r\nBcc: thief@evil.example"}
    monkeypatch.setattr(vault, "personal_values", lambda extraction: real(extraction) | broken)
    run = house.run(path("plain").read_bytes())
    assert (run.state, reason(run), len(payments(run))) == (life.FAILED, "ADV-001", 1)
    assert not [*(house.folder / "mail").glob("*")]
