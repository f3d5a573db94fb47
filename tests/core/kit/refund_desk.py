"""The refund desk of ``examples/``, its files changed in places, and runs of it in memory."""

import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from examples.refund_desk.desk import FOLDER, ORDERS, Clock, Orders, apologise, clerk
from nanovm_core.core.canonical import decode
from nanovm_core.core.events import AnswerArrived, Approved, Event, RunStarted
from nanovm_core.core.messages import Effect, Scalar
from nanovm_core.core.program import Program
from nanovm_core.ledger.memory import InMemoryLedger
from nanovm_core.loading import load_policy, load_program
from nanovm_core.vm import Answer, Done, ExecutionVM, Model, Tool
from tests.core.kit.builders import meant

PROGRAM = (FOLDER / "program.toml").read_text(encoding="utf-8")
POLICY = (FOLDER / "policy.toml").read_text(encoding="utf-8")
TOOL = "refund.issue"
NOWHERE: Mapping[str, str] = MappingProxyType({})


def desk_with(*edits: tuple[str, str], more: str = "", policy: str = POLICY) -> Program:
    """The desk with these texts exchanged, in its program or in its policy, and more rules."""
    program, rules = PROGRAM, policy + more
    for old, new in edits:
        assert program.count(old) + rules.count(old) == 1, f"{old!r} is not there once"
        program, rules = program.replace(old, new), rules.replace(old, new)
    loaded = load_program(program.encode())
    return loaded.under(load_policy(rules.encode(), loaded))


DESK = desk_with()


def slots_of(order: str = "A-1", **changes: Scalar) -> dict[str, Scalar]:
    """What the desk's own steps produce for an order."""
    return {"order": order, **ORDERS[order], **changes}


def args_of(order: str = "A-1", **changes: object) -> dict[str, object]:
    """The faithful arguments for an order; None leaves one out."""
    known = ORDERS[order]
    good = {"order": order, "amount_minor": known["paid_minor"], "currency": known["currency"]}
    return {name: value for name, value in {**good, **changes}.items() if value is not None}


def call_of(order: str = "A-1", tool: str = TOOL, **changes: object) -> bytes:
    """What a model says that proposes this."""
    return json.dumps({"tool": tool, "args": args_of(order, **changes)}).encode()


class Till:
    """A refund tool that answers what it is told to, and keeps what it was asked."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.asked: list[tuple[dict[str, Scalar], str]] = []

    def __call__(self, args: dict[str, Scalar], key: str) -> Answer:
        self.asked.append((args, key))
        answer = self.answers.pop(0) if self.answers else Done(out={"receipt": "re"})
        if isinstance(answer, Exception):
            raise answer
        return answer  # nonsense too


class Run(ExecutionVM):
    """A run of the refund desk, with the parts that a test looks at."""

    def __init__(
        self,
        till: Till | None = None,
        program: Program | None = None,
        *,
        order: str = "A-1",
        model: Model = clerk,
        orders: Tool | None = None,
        ledger: InMemoryLedger | None = None,
        agent: str = "",
        run: str = "run",
        origins: Mapping[str, str] = NOWHERE,
    ) -> None:
        self.till, self.clock = till or Till(), Clock()
        tools: dict[str, Tool] = {TOOL: self.till, "mail.apologise": apologise}
        tools["orders.look_up"] = orders or Orders().look_up
        super().__init__(
            program or DESK,
            run=run,
            slots={"order": order, "message": "please"},
            tools=tools,
            model=model,
            now_ms=self.clock,
            ledger=ledger,
            agent=agent,
            origins=origins,
        )

    def go(self) -> "Run":
        """Start it and do what is owed."""
        self.tell(RunStarted)
        self.run()
        return self

    def tell(self, kind: type[Event], **fields: Any) -> str:
        """Feed an event now; the code with which it was refused, or nothing."""
        refusal = self.feed(meant(self.snapshot, kind(**fields))).refusal
        return refusal.code if refusal else ""

    def awaited(self, **fields: Any) -> AnswerArrived:
        """The answer that is awaited, as it comes in: nobody vouches for it yet."""
        now = self.snapshot
        named = {"run": now.run, "program": self.program.hash, "key": now.awaits}
        return AnswerArrived(**{**named, **fields})

    def answered(self, **fields: Any) -> str:
        """Answer what is awaited; the code with which it was refused, or nothing."""
        refusal = self.answer(self.awaited(**fields)).refusal
        return refusal.code if refusal else ""

    @property
    def stands(self) -> str:
        """State, step, and the code of why."""
        why = self.snapshot.reason[0] if self.snapshot.reason else ""
        return f"{self.snapshot.state.partition('.')[2]} {self.snapshot.step} {why}".strip()

    @property
    def money(self) -> int:
        """What the workspace has left of its 250.00."""
        return self.ledger.left(self.program, "desk", ["EUR"])["workspace/EUR"]

    @property
    def owed(self) -> Effect:
        assert self.snapshot.owed is not None
        return self.snapshot.owed

    def bodies(self) -> list[Any]:
        return [decode(stored.data) for stored in self.envelopes]

    def kinds(self) -> list[str]:
        return [body["kind"] for body in self.bodies()]


def held(program: Program | None = None, till: Till | None = None) -> Run:
    """A run that a person just approved: its call is owed, and no tool was asked yet."""
    run = Run(till, program, order="A-4").go()
    assert run.stands == "awaiting_approval judge POL-020"
    assert run.tell(Approved) == ""
    assert (run.owed.tool, run.till.asked) == (TOOL, [])
    return run
