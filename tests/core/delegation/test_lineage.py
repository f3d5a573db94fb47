"""A grant falls with every grant and every block on its way from the program to the run."""

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from nanovm_core.core.capabilities import Constraint, Grant, attenuate, grant_id
from nanovm_core.core.program import Program
from nanovm_core.delegation import Authority, delegate, inspect, issue
from tests.core.kit.refund_desk import DESK, TOOL, held

ROOT, FIRST, SECOND = (Ed25519PrivateKey.from_private_bytes(bytes([n]) * 32) for n in (1, 2, 3))
ENDS_MS = 2**45
EUR = {"currency": Constraint(one_of=("EUR",))}
GIVEN = Grant(tool=TOOL, where=EUR, expires_ms=ENDS_MS)
HANDED = Grant(tool=TOOL, where={**EUR, "amount_minor": Constraint(min=1, max=10**9)}, expires_ms=ENDS_MS)  # fmt: skip # noqa: E501


def authority() -> Authority:
    """What two blocks hand on: the second one less than the first."""
    public = ROOT.public_key()
    chain = issue({TOOL: GIVEN}, FIRST.public_key(), ROOT, program=DESK.hash, expires_ms=ENDS_MS)
    chain = delegate(chain, {TOOL: HANDED}, SECOND.public_key(), FIRST, public, expires_ms=ENDS_MS)
    return inspect(chain, public, program=DESK.hash, at_ms=0)


def handed_on() -> Program:
    """The desk under what a chain gives, and narrowed once more by whoever runs it."""
    program = DESK.attenuated(authority().grants.values())
    return program.attenuated([Grant(tool=TOOL, where=HANDED.where, expires_ms=ENDS_MS - 1)])


ORIGINS = {
    "the program's": lambda: grant_id(DESK.grants[TOOL]),
    "the first block's": lambda: grant_id(GIVEN),
    "the second block's": lambda: grant_id(HANDED),
    "the run's": lambda: grant_id(handed_on().grants[TOOL]),
    "the first block": lambda: authority().ids[0],
    "the second block": lambda: authority().ids[1],
}


@pytest.mark.parametrize("origin", ORIGINS)
def test_call_falls_with_whatever_its_grant_rests_on(origin: str) -> None:
    program = handed_on()
    run = held(program)
    run.ledger.revoke(ORIGINS[origin]())
    run.run()
    assert (run.stands, run.till.asked) == ("awaiting_approval issue CAP-008", [])


def test_grant_that_is_narrowed_keeps_what_it_was_narrowed_from() -> None:
    own, outer = ("a" * 64, "b" * 64), Grant(tool="t", narrowed_from=("c" * 64, "a" * 64))
    inner = Grant(tool="t", narrowed_from=own)
    found = attenuate({"t": outer}, [inner])["t"].narrowed_from
    assert found == ("c" * 64, "a" * 64, grant_id(outer), "b" * 64)
