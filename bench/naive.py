"""What people write first: the text of a PDF, a pattern for its total, a payment. No promises."""

import re
import sys
import time
from pathlib import Path

import pypdfium2
import stripe

from bench.kit.held import answer

TOTAL = re.compile(r"Amount due\s+([A-Z]{3})\s+([\d,]+\.\d\d)")


def pay(client: stripe.StripeClient, document: bytes) -> str:
    """Pay the amount due, to no named payee; return the payment's state."""
    pdf = pypdfium2.PdfDocument(document)
    found = TOTAL.search("\n".join(page.get_textpage().get_text_bounded() for page in pdf))
    if found is None:
        raise ValueError("The document names no amount due; pay another one.")
    return client.v1.payment_intents.create(
        {
            "amount": int(re.sub(r"\D", "", found[2])),
            "currency": found[1].lower(),
            "confirm": True,
            "payment_method": "pm_card_visa",
            "automatic_payment_methods": {"enabled": True, "allow_redirects": "never"},
        }
    ).status


def hold(key: str, api_base: str) -> None:
    """Pay the file of each line of standard input; say nanoseconds, and those of the processor."""
    client = stripe.StripeClient(key, base_addresses={"api": api_base})

    def turn(path: str) -> list[int]:
        began, cpu = time.perf_counter_ns(), time.process_time_ns()
        if (state := pay(client, Path(path).read_bytes())) != "succeeded":
            raise RuntimeError(f"{path} was not paid: the payment is {state}.")
        return [time.perf_counter_ns() - began, time.process_time_ns() - cpu]

    answer(turn)


if __name__ == "__main__":
    hold(*sys.argv[1:])
