"""``widened_grant``: a holder of delegated authority hands on more than it has."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from engine.clock import now_ms
from engine.entropy import random_bytes
from engine.errors import EffectError
from engine.models import Run
from engine.runtime import warrants
from nanovm_core import delegation
from nanovm_core.core.authority.capabilities import Constraint, Grant
from nanovm_core.core.canonical import Json
from nanovm_core.delegation import blocks
from nanovm_core.errors import RefusedError
from pipeline.application import current
from pipeline.steps.charge import gateway
from sabotage.gallery.kit import fixture
from sabotage.gallery.kit.outcomes import assess_refusal
from sabotage.gallery.kit.scenario import Scenario
from sabotage.kit.code_locations import decided_in
from sabotage.kit.evidence import Evidence
from sabotage.kit.injector import Assessment, Fired, Injector, Target, choice

NAME = "widened_grant"
TOOL = "stripe.create_payment_intent"
GIVEN_MINOR, WANTED_MINOR = 10_000, 900_000
CURRENCY = "EUR"
LIFE_MS = 600_000


class Forged(NamedTuple):
    """A chain with one block too many, and the key of its last holder."""

    chain: bytes
    holder: Ed25519PrivateKey


def inject(target: Target) -> Fired:
    """Present the widened chain with a call that only the last block allows."""
    at_ms = now_ms()
    forged = _widened(str(target.values["how"]), at_ms)
    key = random_bytes(32).hex()
    request: dict[str, Json] = {"run": target.run_id, "tool": TOOL, "amount_minor": WANTED_MINOR}
    request["key"] = key
    shown = delegation.present(forged.chain, request, forged.holder)
    facts: dict[str, object] = {
        "door": "delegation.verify: the kernel's own; the pipeline hands nothing on",
        "how": str(target.values["how"]),
        "given_minor": GIVEN_MINOR,
        "asked_minor": WANTED_MINOR,
        "currency": CURRENCY,
        "chain_bytes": len(forged.chain),
    }
    try:
        _served(target.run, forged.chain, request, shown, key, at_ms)
    except (RefusedError, EffectError) as refused:
        answered = {"refused_by": refused.code, "decided_in": decided_in(refused)}
        return Fired(facts={**facts, **answered})
    return Fired(facts={**facts, "refused_by": "", "decided_in": ""})


def assess(_found: Evidence, fired: Fired) -> Assessment:
    """BLOCKED where the chain was refused before a call was made under it."""
    return assess_refusal(fired)


def _widened(how: str, at_ms: int) -> Forged:
    """A true first block of the runtime's, and behind it one that its holder wrote by hand."""
    holder, accomplice = _key(), _key()
    program = current().hash
    given = {TOOL: Grant(tool=TOOL, where={"amount_minor": Constraint(min=1, max=GIVEN_MINOR)})}
    expires_ms = at_ms + LIFE_MS
    first = delegation.issue(
        given, holder.public_key(), warrants.signing_key(), program=program, expires_ms=expires_ms
    )
    grant, until_ms = WIDER[how], expires_ms + (LIFE_MS if how == LONGER else 0)
    block = blocks.Block(
        prev=blocks.block_id(first[4:]),
        program=program,
        grants=MappingProxyType({TOOL: grant}),
        holder=accomplice.public_key(),
        expires_ms=until_ms,
    )
    data = blocks.write(block, holder)
    return Forged(first + len(data).to_bytes(4, "big") + data, accomplice)


def _served(
    run: Run, chain: bytes, request: Mapping[str, Json], shown: bytes, key: str, at_ms: int
) -> None:
    """What an adapter does that serves delegated agents: verify, hold the call to it, pay."""
    program = current()
    found = delegation.verify(
        chain,
        warrants.public_key(),
        program=program.hash,
        request=request,
        presentation=shown,
        at_ms=at_ms,
    )
    narrowed = program.attenuated(found.grants.values())
    if not _covers(narrowed.grants[TOOL], WANTED_MINOR):
        raise RefusedError("CAP-006", "The grant does not cover this amount.")
    charge = gateway.Charge(
        key=key,
        run=str(run.id),
        code=run.code,
        amount_minor=WANTED_MINOR,
        currency=CURRENCY,
        payment_method="pm_card_visa",
        intent_ms=at_ms,
    )
    gateway.pay(charge, begun_before=False, at_ms=at_ms)


def _covers(grant: Grant, amount_minor: int) -> bool:
    limit = grant.where.get("amount_minor", Constraint())
    return limit.max is None or amount_minor <= limit.max


def _key() -> Ed25519PrivateKey:
    return Ed25519PrivateKey.from_private_bytes(random_bytes(32))


LONGER = "for longer, and ninety times as much"
WIDER: Mapping[str, Grant] = {
    "ninety times as much": Grant(
        tool=TOOL, where={"amount_minor": Constraint(min=1, max=WANTED_MINOR)}
    ),
    "any amount": Grant(tool=TOOL, where={"amount_minor": Constraint(min=1)}),
    LONGER: Grant(tool=TOOL, where={"amount_minor": Constraint(min=1, max=WANTED_MINOR)}),
}

SCENARIO = Scenario(
    injector=Injector(
        name=NAME,
        claim="A delegated right can be narrowed, never widened.",
        wants="Turn a right to pay 100.00 into a right to pay 9,000.00 by signing one more block.",
        stopped_by="The delegation chain: no block may grant more than the block before it.",
        params=(choice("how", "The block gives", tuple(WIDER)),),
        inject=inject,
        assess=assess,
    ),
    make_run=fixture.plain_run,
)
