"""Delegation: whoever wrote the blocks, what verifies lets nothing pass that the root did not."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import event, given, settings
from hypothesis import strategies as st

from nanovm_core.core.authority.capabilities import Constraint, Grant
from nanovm_core.core.messages import Scalar
from nanovm_core.delegation import blocks, delegate, inspect, issue
from nanovm_core.delegation.blocks import Block
from nanovm_core.errors import RefusedError
from tests.core.delegation.test_delegation import split
from tests.core.gate.gate_oracle import allowed as within
from tests.core.kit.builders import within_grant

KEYS = [Ed25519PrivateKey.from_private_bytes(bytes([n]) * 32) for n in range(1, 9)]
ROOT_PUBLIC = KEYS[0].public_key()
PROGRAM = "9" * 64

TOOLS, NAMES, SLOTS = ("t", "u"), ("a", "b"), ("s", "z")
VALUES: Sequence[Scalar] = (0, 1, 2, 3, True, False, "", "x", "xy", "xyz", "y")
VALUE = st.sampled_from(VALUES)
BOUNDS: Mapping[str, st.SearchStrategy[object]] = {
    "one_of": st.lists(VALUE, max_size=5).map(tuple),
    "min": st.integers(0, 3),
    "max": st.integers(0, 3),
    "prefix": st.sampled_from(("", "x", "xy")),
    "equals_slot": st.sampled_from(SLOTS),
}


class Asked(NamedTuple):
    """A call that somebody might make, the slots it is made over, and when."""

    tool: str
    args: Mapping[str, Scalar]
    slots: Mapping[str, Scalar]
    at_ms: int


def fresh(draw: st.DrawFn) -> Constraint:
    """Any constraint, mostly of one bound or two."""
    names = draw(st.sets(st.sampled_from(sorted(BOUNDS)), max_size=2))
    return replace(Constraint(), **{name: draw(BOUNDS[name]) for name in sorted(names)})  # type: ignore[arg-type]


def tightened(draw: st.DrawFn, outer: Constraint) -> Constraint:
    """The constraint with one bound added or replaced: often a narrower one."""
    name = draw(st.sampled_from(sorted(BOUNDS)))
    return replace(outer, **{name: draw(BOUNDS[name])})  # type: ignore[arg-type]


@st.composite
def wishes(draw: st.DrawFn, outer: Mapping[str, Grant]) -> dict[str, Grant]:
    """Grants that a holder would like to hand on: what they have, less, or something else."""
    given: dict[str, Grant] = {}
    for tool in draw(st.sets(st.sampled_from(TOOLS))):
        grant = outer.get(tool, Grant(tool=tool))
        where = dict(grant.where)
        for name in draw(st.sets(st.sampled_from(NAMES))):
            old = where.get(name)
            where[name] = tightened(draw, old) if old and draw(st.booleans()) else fresh(draw)
        given[tool] = Grant(tool=tool, where=where, expires_ms=draw(st.integers(0, 9)))
    return given


CALLS = st.builds(
    Asked,
    tool=st.sampled_from(TOOLS),
    args=st.fixed_dictionaries(dict.fromkeys(NAMES, VALUE)),
    slots=st.dictionaries(st.sampled_from(SLOTS), VALUE),
    at_ms=st.integers(0, 9),
)


def allowed(grants: Mapping[str, Grant], expires_ms: int, asked: Asked) -> bool:
    """Whether grants that end at this time let a call pass."""
    grant = grants.get(asked.tool)
    if grant is None or asked.at_ms >= expires_ms or asked.at_ms >= (grant.expires_ms or 99):
        return False
    return all(within(limit, asked.args[n], asked.slots) for n, limit in grant.where.items())


def gives(chain: bytes, asked: Asked) -> bool:
    """Whether the chain's authority lets a call pass, asked as the runtime asks it."""
    try:
        authority = inspect(chain, ROOT_PUBLIC, program=PROGRAM, at_ms=asked.at_ms)
    except RefusedError as error:
        if error.code != "CAP-007":
            raise
        return False
    grant = authority.grants.get(asked.tool)
    if grant is None or asked.at_ms >= grant.expires_ms:
        return False
    return within_grant(grant, asked.args, asked.slots)


@settings(max_examples=30)
@given(data=st.data())
def test_chain_that_verifies_gives_a_part_of_its_root(data: st.DataObject) -> None:
    granted, ends_ms = data.draw(wishes({})), data.draw(st.integers(4, 9))
    levels = [(granted, ends_ms)]
    chain = issue(granted, KEYS[1].public_key(), KEYS[0], program=PROGRAM, expires_ms=ends_ms)
    for _ in range(data.draw(st.integers(0, 5))):
        wish, until_ms = data.draw(wishes(levels[-1][0])), data.draw(st.integers(2, 9))
        longer = _handed_on(chain, wish, until_ms, len(levels))
        if longer is not None:
            event("a block was taken")
            chain, levels = longer, [*levels, (wish, until_ms)]
        else:
            event("a block was refused")
    for asked in data.draw(st.lists(CALLS, min_size=5, max_size=20)):
        by_all = [allowed(grants, until_ms, asked) for grants, until_ms in levels]
        assert gives(chain, asked) == by_all[-1]
        assert by_all == sorted(by_all, reverse=True)  # nothing comes back that was taken away
        event(f"the last block lets it pass: {by_all[-1]}")


def _handed_on(chain: bytes, wish: Mapping[str, Grant], until_ms: int, place: int) -> bytes | None:
    """The longer chain or None; an honest writer's checks and the reader's say the same."""
    holder = KEYS[place + 1].public_key()
    last = blocks.block_id(split(chain)[-1])
    data = blocks.write(Block(last, PROGRAM, wish, holder, until_ms), KEYS[place])
    forced = chain + len(data).to_bytes(4, "big") + data
    try:
        asked = delegate(chain, wish, holder, KEYS[place], ROOT_PUBLIC, expires_ms=until_ms)
    except RefusedError as error:
        wider = error.code
    else:
        wider = ""
        assert asked == forced
    try:
        inspect(forced, ROOT_PUBLIC, program=PROGRAM, at_ms=0)
    except RefusedError as error:
        found = error.code
    else:
        found = ""
    assert wider == found
    assert found in {"", "CAP-030"}
    return None if found else forced
