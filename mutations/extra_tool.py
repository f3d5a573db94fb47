"""What a copy has that the product lacks: the tool that an attacker's call names."""

from dataclasses import replace
from types import MappingProxyType

from mutations.changes import TOOL
from pipeline.steps import adapters
from pipeline.steps.charge import step as charge
from pipeline.steps.work import Answer, Work

MINOR = 100  # cents in a dollar


def register() -> None:
    """Put ``wire_transfer`` among the adapters of this process.

    The product has none, so that without its guards the call would merely fail. With the tool
    in place it is the guards that decide, and nothing else: the whole copy has it too.
    """
    adapters.ADAPTERS = MappingProxyType({**adapters.ADAPTERS, TOOL: wire_transfer})


def wire_transfer(work: Work) -> Answer:
    """Pay what the call says, as an adapter that believes its caller would."""
    args = work.effect.args
    minor = args["amount_minor"] if "amount_minor" in args else int(args["amount"]) * MINOR
    amount = {"amount_minor": minor, "currency": args.get("currency", "USD")}
    named = work.effect._replace(args=MappingProxyType({**args, **amount}))
    return charge.charge(replace(work, effect=named))
