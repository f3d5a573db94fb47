"""The measured program: a payment, a policy of five rules, and a run of it."""

from collections.abc import Mapping
from pathlib import Path

from nanovm_core.core.messages import Commitment, RunId, Scalar
from nanovm_core.core.program import Program
from nanovm_core.loading import load_policy, load_program

FOLDER = Path(__file__).parent
RUN = RunId("01990000-0000-7000-8000-000000000001")
START_MS = 1_700_000_000_000

POLICY = (FOLDER / "five_rules.toml").read_bytes()
PROGRAM = (FOLDER / "payment.toml").read_bytes()
ARGS: Mapping[str, Scalar] = {
    "amount_minor": 128_450,
    "currency": "EUR",
    "payee": "ACME Tools GmbH",
    "memo": "Invoice 2023-117",
}
FACTS: Mapping[str, Scalar] = {**ARGS, "pay_status": "open", "payee_blocked": False}
DOCUMENT = Commitment(
    slot="document", ref="vault://secret/00000000-0000-4000-8000-000000000001", c="1" * 64
)


def program() -> Program:
    """The payment program under the five rules."""
    return load_program(PROGRAM).under(load_policy(POLICY))
