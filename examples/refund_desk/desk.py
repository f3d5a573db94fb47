"""The outside of the refund desk: orders, a bank, a model that anybody can talk into things."""

import json
from collections.abc import Mapping
from pathlib import Path

from nanovm_core import (
    Answer,
    Done,
    ExecutionVM,
    Failed,
    InMemoryLedger,
    Program,
    RunStarted,
    Said,
    Scalar,
    Waiting,
    load_policy,
    load_program,
)

FOLDER = Path(__file__).parent
START_MS = 1_700_000_000_000
TICK_MS = 10

ORDERS: Mapping[str, Mapping[str, Scalar]] = {
    "A-1": {"paid_minor": 4_500, "currency": "EUR", "age_days": 3, "refunded": False},
    "A-2": {"paid_minor": 9_000, "currency": "EUR", "age_days": 10, "refunded": False},
    "A-3": {"paid_minor": 15_000, "currency": "EUR", "age_days": 2, "refunded": False},
    "A-4": {"paid_minor": 2_000, "currency": "EUR", "age_days": 200, "refunded": False},
    "A-5": {"paid_minor": 9_000, "currency": "EUR", "age_days": 11, "refunded": False},
    "A-6": {"paid_minor": 9_000, "currency": "EUR", "age_days": 12, "refunded": False},
}


def desk() -> Program:
    """The program under the policy that it names."""
    program = load_program((FOLDER / "program.toml").read_bytes())
    policy = (FOLDER / program.policy_file).read_bytes()
    return program.under(load_policy(policy, program))


class Clock:
    """A clock that goes on when somebody looks, so that a run can be repeated to the byte."""

    def __init__(self) -> None:
        self.at_ms = START_MS

    def __call__(self) -> int:
        self.at_ms += TICK_MS
        return self.at_ms


class Bank:
    """It refunds an order once per key. ``says`` is what it tells of each refund."""

    def __init__(self, says: str = "") -> None:
        self.says = says
        self.refunds: dict[str, str] = {}  # key → receipt
        self.asked = 0

    def issue(self, args: Mapping[str, Scalar], key: str) -> Answer:
        """Refund ``amount_minor``; the same key is the same refund."""
        self.asked += 1
        if self.says == "later":
            return Waiting()
        if self.says == "no":
            return Failed(code="BANK-1", text="The account is closed.")
        receipt = self.refunds.setdefault(key, self.says or f"re_{args['order']}")
        return Done(out={"receipt": receipt})


class Orders:
    """The orders' database; ``busy`` is how many times it fails before it answers."""

    def __init__(self, busy: int = 0) -> None:
        self.busy = busy

    def look_up(self, args: Mapping[str, Scalar], _key: str) -> Answer:
        """What was paid for an order, and when."""
        if self.busy:
            self.busy -= 1
            return Failed(code="ORD-BUSY", text="The orders' database is busy.", retry=True)
        order = ORDERS.get(str(args["order"]))
        if order is None:
            return Failed(code="ORD-NONE", text="There is no such order.")
        return Done(out=order)


def apologise(_args: Mapping[str, Scalar], _key: str) -> Answer:
    """Write to the customer that a person will look."""
    return Done()


def clerk(view: Mapping[str, Scalar]) -> Said:
    """A model that proposes the refund, unless the customer's message orders something else."""
    message = str(view["message"])
    honest = {
        "tool": "refund.issue",
        "args": {
            "order": view["order"],
            "amount_minor": view["paid_minor"],
            "currency": view["currency"],
        },
    }
    ordered = message[message.index("{") :] if "{" in message else json.dumps(honest)
    return Said(raw=ordered.encode(), tokens=len(message) + len(ordered))


def opened(
    order: str,
    message: str = "Please pay it back.",
    *,
    run: str = "run-1",
    program: Program | None = None,
    agent: str = "",
    ledger: InMemoryLedger | None = None,
    bank: Bank | None = None,
    orders: Orders | None = None,
    clock: Clock | None = None,
) -> ExecutionVM:
    """A run for an order and a customer's message, started and driven as far as it goes."""
    now_ms = clock or Clock()
    vm = ExecutionVM(
        program or desk(),
        run=run,
        agent=agent,
        slots={"order": order, "message": message},
        tools={
            "orders.look_up": (orders or Orders()).look_up,
            "refund.issue": (bank or Bank()).issue,
            "mail.apologise": apologise,
        },
        model=clerk,
        now_ms=now_ms,
        ledger=ledger,
    )
    vm.feed(RunStarted(), actor="customer")
    vm.run()
    return vm
