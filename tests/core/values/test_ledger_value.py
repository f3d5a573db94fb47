"""The ledger of a log: one value, one sequence of bytes, and what envelopes make of it."""

import random
from collections.abc import Mapping
from hashlib import sha256
from itertools import product
from typing import Any

import pytest

from nanovm_core.agents import RUNNING, STATES, Agent
from nanovm_core.agents import json_of as agent_json
from nanovm_core.core.authority.budget import any_of, name_of
from nanovm_core.core.canonical import Json, decode, encode
from nanovm_core.errors import VerificationError
from nanovm_core.ledger.fold import Fold, after
from nanovm_core.ledger.value import (
    Alert,
    Ledger,
    Used,
    decode_ledger,
    encode_ledger,
    json_of,
    ledger_hash,
    tighter,
)

RUN = "01990000-0000-7000-8000-000000000001"
FULL = Ledger(
    at_ms=7,
    policy="a" * 64,
    limits={"workspace/*": 500, "workspace/USD": 90, "agent/calls@clerk": 3},
    accounts={"workspace/EUR": Used(20, 100)},
    totals={"calls": 4},
    agents={"clerk": Agent(RUNNING)},
    alerts={"ledger": Alert("LOG-011", "It was not sealed.", at_ms=7)},
)

TOLD = json_of(FULL)["alerts"]["ledger"]


def said(run: str = RUN, kind: str = "result", at_ms: int = 1, **more: Any) -> dict[str, Any]:
    """The fields of an envelope that a fold reads."""
    return {"run": run, "kind": kind, "at_ms": at_ms, **more}


def test_it_comes_back_from_its_bytes_and_is_named_by_their_hash() -> None:
    assert decode_ledger(encode_ledger(FULL)) == FULL
    assert decode_ledger(encode_ledger(Ledger())) == Ledger()
    known = decode_ledger(encode_ledger(FULL))
    for parts in product([known, Ledger()], repeat=len(FULL)):
        mixed = Ledger._make(each[place] for place, each in enumerate(parts))
        for _ in range(2):  # the second time from what is kept of its parts
            assert encode_ledger(mixed) == encode(json_of(mixed))
    limits = {"workspace/EUR": 1}
    tighter_now = encode_ledger(Ledger(limits=limits)), limits.update({"workspace/EUR": 0})
    assert encode_ledger(Ledger(limits=limits)) != tighter_now[0]  # nothing is kept of a plain dict
    named = sha256(b"nanovm/ledger/v1\0" + encode_ledger(FULL)).hexdigest()
    assert named == ledger_hash(encode_ledger(FULL)) != ledger_hash(encode_ledger(Ledger()))


def test_each_account_has_the_limit_in_force_for_it() -> None:
    names = ("workspace/EUR", "workspace/USD", "workspace/calls", "agent/calls@clerk")
    assert [FULL.limit(name) for name in names] == [500, 90, None, 3]
    assert (FULL.used("workspace/EUR"), FULL.used("workspace/USD")) == (120, 0)
    assert name_of("agent/EUR", "clerk") == "agent/EUR@clerk"
    assert name_of("workspace/EUR", "clerk") == "workspace/EUR"
    assert any_of("agent/EUR@clerk") == "agent/*@clerk"
    assert any_of("agent/steps@clerk") == "agent/steps@clerk"


def broken() -> Mapping[str, bytes]:
    """Bytes that are no ledger, each by one fault of a good one."""
    good = json_of(FULL)

    def but(**more: Json) -> bytes:
        return encode({**good, **more})

    return {
        "empty": b"",
        "cut off": encode_ledger(FULL)[:-1],
        "not canonical": b" " + encode_ledger(FULL),
        "a list": b"[]",
        "a field less": encode({name: good[name] for name in good if name != "totals"}),
        "a field more": but(more=1),
        "a text for a time": but(at_ms="1"),
        "no policy": but(policy=None),
        "a limit of text": but(limits={"workspace/*": "500"}),
        "a limit of true": but(limits={"workspace/*": True}),
        "accounts in a list": but(accounts=[]),
        "an account of one number": but(accounts={"workspace/EUR": [1]}),
        "an account of texts": but(accounts={"workspace/EUR": ["1", 2]}),
        "an account of true": but(accounts={"workspace/EUR": [True, 2]}),
        "a total of text": but(totals={"calls": "4"}),
        "agents in a list": but(agents=[]),
        "an agent of one field": but(agents={"clerk": {"state": "running"}}),
        "a number for alerts": but(alerts=1),
        "an alert without its time": but(alerts={"ledger": {"rule": "", "text": "", "agent": ""}}),
        "an alert told by true": but(alerts={"ledger": {**TOLD, "told_ms": True}}),
    }


@pytest.mark.parametrize("name", broken())
def test_bytes_that_are_no_ledger_are_refused(name: str) -> None:
    with pytest.raises(VerificationError, match="LOG-011"):
        decode_ledger(broken()[name])


def test_what_an_envelope_says_is_added_to_the_accounts_of_its_log() -> None:
    taken = {"reserved": {"workspace/EUR": 50, "run/EUR": 50, "global/EUR": 50}}
    step = {"reserved": {"workspace/steps": 1}, "spent": {"workspace/steps": 1}}
    now = after(FULL, said(budget=taken, at_ms=9))
    now = after(now, said(budget=step, at_ms=8))
    assert now.accounts == {"workspace/EUR": Used(70, 100), "workspace/steps": Used(0, 1)}
    assert now.at_ms == 9
    part = {"spent": {"workspace/EUR": 30}, "released": {"workspace/EUR": 20}}
    assert after(now, said(budget=part)).accounts["workspace/EUR"] == Used(20, 130)
    over = {"reserved": {"workspace/EUR": 25}, "spent": {"workspace/EUR": 75}}
    old = {"released": {"workspace/EUR": -25}, "spent": {"workspace/EUR": 75}}
    for each in (over, old):  # more than was reserved, as this release says it and as others did
        assert after(now, said(budget=each)).accounts["workspace/EUR"] == Used(20, 175)
    shared = after(FULL, said("log", "settlement", budget=taken))
    assert shared.accounts == {**FULL.accounts, "global/EUR": Used(50, 0)}


def test_only_the_log_itself_sets_limits_or_a_whole_ledger() -> None:
    limits = {"workspace/*": 10, "workspace/CHF": 20}
    policy = said("log", "policy", 9, policy="b" * 64, limits=limits)
    now = after(FULL, policy)
    assert now == FULL._replace(at_ms=9, policy="b" * 64, limits={**FULL.limits, **limits})
    assert after(FULL, {**policy, "run": RUN}) is FULL
    assert after(now, {**policy, "at_ms": 12}) is now  # it says what is in force already
    assert after(FULL, {**policy, "at_ms": "12"}).at_ms == FULL.at_ms
    whole = said("log", "alert", ledger=json_of(now))
    assert after(FULL, whole) == now
    assert after(Ledger(), {**whole, "run": RUN}) == Ledger()
    assert after(FULL, said()) is FULL
    for bad in (said("log", "alert", ledger={}), said(budget={"spent": {"workspace/EUR": "1"}})):
        with pytest.raises(VerificationError, match="LOG-011"):
            after(FULL, bad)


def test_an_agent_moves_on_its_own_chain_and_alerts_on_that_of_the_log() -> None:
    halted = Agent("suspended.by_rule", "POL-004", "Too many calls.", "runtime", 9)
    told = {"agent/clerk": {**TOLD, "agent": "clerk"}, "ledger": {}}
    now = after(FULL, said("agent:clerk", "agent", 9, out=agent_json(halted)))
    assert now == FULL._replace(at_ms=9, agents={"clerk": halted})
    assert after(FULL, said("agent:clerk", "agent", 9, outcome="refused")) is FULL
    assert after(FULL, said(kind="agent", out=agent_json(halted))) is FULL
    now = after(FULL, said("log", "alert", 9, alerts=told))
    assert now.alerts == {"agent/clerk": FULL.alerts["ledger"]._replace(agent="clerk")}
    both = said("log", "alert", 9, alerts=told, ledger=json_of(Ledger()))
    assert after(FULL, both) == Ledger(at_ms=9, alerts=now.alerts)
    for bad in (said("agent:clerk", "agent", out={}), said("log", "alert", alerts={"ledger": 1})):
        with pytest.raises(VerificationError, match="LOG-011"):
            after(FULL, bad)


def drawn(seed: int) -> list[dict[str, Any]]:
    """A log: envelopes of runs and of its own, each of which seals the ledger after it."""
    draw, now, log = random.Random(seed), Ledger(), []  # noqa: S311 - seeded
    for place in range(40):
        account, amount = draw.choice(("workspace/EUR", "agent/calls@a")), draw.randrange(1, 99)
        part = draw.choice(("reserved", "spent", "released"))
        one = said(at_ms=place, budget={part: {account: amount}})
        if draw.random() < 0.2:
            limits = {"workspace/*": amount}
            one = said("log", "policy", place, policy=f"{seed:064x}", limits=limits)
        now = after(now, one)
        given = {"ledger": ledger_hash(encode_ledger(now))} if draw.random() < 0.7 else {}
        log.append({**one, "given": given} if given else one)
    log.append(said(at_ms=99, given={"ledger": ledger_hash(encode_ledger(now))}))
    return log


@pytest.mark.parametrize("seed", range(20))
def test_a_fold_is_what_the_envelopes_made_and_sees_one_that_sealed_another(seed: int) -> None:
    log, fold = drawn(seed), Fold()
    assert all(map(fold.take, log))
    assert fold.sure
    assert fold.hash == log[-1]["given"]["ledger"]
    changes = [place for place, each in enumerate(log) if "budget" in each]
    for place in changes[::5]:
        fold = Fold()
        left = [*log[:place], *log[place + 1 :]]
        assert [fold.take(each) for each in left].count(False) == 1
        assert not fold.sure


def test_after_damage_a_fold_is_not_sure_until_a_whole_ledger_comes() -> None:
    other: dict[str, Any] = {"given": {"ledger": "0" * 64}}
    for damage in (None, {"kind": "result"}, said(budget={"spent": 1})):
        fold = Fold()
        assert (fold.take(damage), fold.sure) == (True, False)
        assert fold.take(said(**other))  # nothing is known that it could be held to
        whole = said("log", "alert", ledger=json_of(FULL))
        assert (fold.take(whole), fold.sure) == (True, True)
        assert fold.value == FULL
        assert not fold.take(said(**other))
    fold = Fold()
    assert not fold.take(said("log", "alert", ledger={}, **other)) or not fold.sure


def test_of_two_ledgers_the_smaller_limits_and_the_larger_use_count() -> None:
    other = Ledger(
        limits={"workspace/*": 400, "workspace/CHF": 5},
        accounts={"workspace/EUR": Used(10, 300), "agent/calls@clerk": Used(0, 1)},
        totals={"calls": 9, "failures": 1},
    )
    for found in (tighter(FULL, other), tighter(other, FULL)):
        assert found.limits == {**FULL.limits, "workspace/*": 400, "workspace/CHF": 5}
        assert found.accounts == {"workspace/EUR": Used(20, 300), "agent/calls@clerk": Used(0, 1)}
        assert found.totals == {"calls": 9, "failures": 1}
    assert tighter(FULL, other).policy == FULL.policy
    assert tighter(other, FULL).agents == FULL.agents
    tightness = {"running": 0, "initializing": 1, "suspended": 2, "terminated": 3}
    for one, two in product(STATES, STATES):
        left, right = (FULL._replace(agents={"clerk": Agent(state)}) for state in (one, two))
        most = max((one, two), key=lambda state: tightness[state.partition(".")[0]])
        kept = tighter(left, right).agents["clerk"].state
        assert tightness[kept.partition(".")[0]] == tightness[most.partition(".")[0]]
    assert {*tighter(FULL, FULL._replace(alerts={"x": Alert("", "")})).alerts} == {"ledger", "x"}
    assert decode(encode_ledger(tighter(FULL, other)))
