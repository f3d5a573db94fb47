"""Tokens of an agent: reserved, spent in full or given back, as a model of its account says."""

import json
from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nanovm_core.core import events
from nanovm_core.core import lifecycle as life
from nanovm_core.core.authority.budget import TOKENS_USED_MAX
from nanovm_core.core.messages import Decision, Reservation, RunId, Snapshot, Suspension
from nanovm_core.ledger import fold
from nanovm_core.ledger.value import Ledger, Used, decode_ledger, encode_ledger
from tests.core.kit.builders import Scene, event_and_known
from tests.core.kit.refund_runs import BUYER, FUNDS, ORDER, PROGRAM, Refund

ASK, LIMIT, ACCOUNT = 8_192, 20_000, "agent/tokens"
AGENTS = ("ann", "ann", "bob")  # whose the runs are
TOKENS = st.sampled_from([-5, 0, 300, ASK - 1, ASK, ASK + 1, 11_808, 10 * ASK, 10**12, 2**80])
WHATS = st.sampled_from([*["ask", "answer"] * 3, "refuse", "refuse", "fail", "kill", "raise"])
HOLDER = st.sampled_from([True, True, True, False])
GOOD = {"tool": "money.refund", "args": {"amount_minor": 3_000, "to": BUYER.ref}}


class Account:
    """An agent's tokens, kept as on paper."""

    def __init__(self) -> None:
        self.limit, self.spent, self.asleep = LIMIT, 0, False
        self.frozen: Counter[str] = Counter()

    @property
    def left(self) -> int:
        return self.limit - self.spent - self.frozen.total()

    def pays(self, run: str, tokens: int, holder: bool) -> None:
        """What an answer used is gone: all of it; all that was frozen, where nobody can tell."""
        frozen = self.frozen.pop(run)
        is_known = holder and tokens < 2**53 - 1
        self.spent += min(max(tokens, 0), TOKENS_USED_MAX) if is_known else frozen
        self.asleep |= self.left < 0 or self.spent == self.limit


class Desk(Refund):
    """A run whose shared account is what the envelopes of all runs fold to."""

    def __init__(self, shop: "Shop", agent: str, number: int) -> None:
        Scene.__init__(self, PROGRAM, {}, [ORDER], agent=agent, run=RunId(f"r{number}"))
        self.shop = shop

    @property
    def asks(self) -> str:
        """The key of its question to the model, if it owes one."""
        return self.key if self.now.owed is not None and self.now.step == "ask" else ""

    def feed(self, event: Any, **known: Any) -> Decision:
        if isinstance(event, type):
            event, known = event_and_known(event, known)
        shop, before, asked, agent = self.shop, self.now, self.asks, self.now.agent
        account, was_asleep = shop.accounts[agent], shop.accounts[agent].asleep
        reserved, spent = shop.ledger.accounts.get(f"{ACCOUNT}@{agent}", Used())
        self.ledger = {**FUNDS, ACCOUNT: account.limit - reserved - spent}
        self.halted = {agent: life.EXHAUSTED} if was_asleep else {}
        decision = super().feed(event, frozen=reserved, **known)
        for draft in decision.drafts:
            said = {**draft.body, "run": before.run, "kind": draft.kind, "at_ms": draft.at_ms}
            shop.ledger = fold.after(shop.ledger, said)
        if asked and asked != self.asks:
            if isinstance(event, events.ProposalReceived):
                account.pays(before.run, event.tokens, known.get("by_holder", True))
            else:
                del account.frozen[before.run]
        self.follow(before, asked, account)
        told = {each.agent for each in decision.commands if each.account == ACCOUNT}
        assert told <= ({agent} if account.asleep else set())
        assert told or account.asleep == was_asleep
        assert not (account.asleep and decision.effects)
        shop.check()
        return decision

    def follow(self, before: Snapshot, asked: str, account: Account) -> None:
        """Nothing is asked that the account does not cover; what it does not, stops the agent."""
        if self.asks and asked != self.asks:
            assert account.left >= ASK
            assert not account.asleep
            account.frozen[before.run] = ASK
        exhausted = self.now.state == life.EXHAUSTED != before.state
        if exhausted and self.why == "BUD-004" and self.now.used.get("tokens", 0) + ASK <= LIMIT:
            assert account.left - (ASK if asked else 0) < ASK  # it comes back with the decision
            account.asleep = True


class Shop:
    """Runs of two agents, each with an account."""

    def __init__(self) -> None:
        self.accounts = {"ann": Account(), "bob": Account()}
        self.ledger, self.runs = Ledger(), list[Desk]()

    def does(self, what: str, place: int, tokens: int, holder: bool) -> None:
        agent = AGENTS[place % 3]
        if what == "raise":
            account = self.accounts[agent]
            account.limit, account.asleep = max(account.limit, account.spent) + LIMIT, False
            for run in self.runs:
                if run.now.agent == agent and run.now.state in life.SUSPENDED:
                    run.resume()
        if what == "ask" and len(self.runs) < 12:
            self.runs.append(run := Desk(self, agent, len(self.runs)))
            run.start()
            if run.now.owed is not None:
                run.look_up()
        asking = [run for run in self.runs if run.asks]
        if not asking:
            return
        run = asking[place % len(asking)]
        if what in ("answer", "refuse"):
            raw = json.dumps(GOOD).encode() if what == "answer" else b"no"
            event = events.ProposalReceived(raw=raw, key=run.key, tokens=tokens)
            run.feed(event, by_holder=holder)
        elif what == "fail":
            run.fail(retry=False)
        elif what == "kill":
            run.feed(events.KillRequested(), under_way=False)

    def check(self) -> None:
        """The ledger is the model's, to the token, and is stored and read as it is."""
        for name, account in self.accounts.items():
            found = self.ledger.accounts.get(f"{ACCOUNT}@{name}", Used())
            assert found == Used(account.frozen.total(), account.spent)
        assert decode_ledger(encode_ledger(self.ledger)) == self.ledger


@settings(derandomize=True, max_examples=60, deadline=None)
@given(st.lists(st.tuples(WHATS, st.integers(0, 9), TOKENS, HOLDER), max_size=25))
def test_what_was_used_is_booked_in_full_and_an_agent_without_tokens_begins_nothing(
    ops: list[tuple[str, int, int, bool]],
) -> None:
    shop = Shop()
    for op in ops:
        shop.does(*op)


def answer(left: int, tokens: int, *, frozen: int = ASK, raw: bytes = b"") -> tuple[Refund, Any]:
    """A run whose model answered, where the account had so much left beside its reservation."""
    run = Refund().to_ask()
    run.ledger = {**FUNDS, ACCOUNT: left}
    event = events.ProposalReceived(
        raw=raw or json.dumps(GOOD).encode(), key=run.key, tokens=tokens
    )
    return run, run.feed(event, frozen=frozen)


@pytest.mark.parametrize("raw", [b"", b"no"], ids=["accepted", "refused"])
def test_an_overdrawn_account_suspends_its_agent_in_the_commit_that_books_it(raw: bytes) -> None:
    run, decision = answer(100, ASK + 101, raw=raw)
    assert Reservation(ACCOUNT, -ASK, ASK + 101) in decision.budgets
    said = "The account agent/tokens is overdrawn by 1: an answer took 8293 of 8192 reserved."
    assert decision.commands == (Suspension("refund-runs", "BUD-004", said, ACCOUNT),)
    assert (run.now.state, run.why, decision.effects) == (life.PAUSED, "CAP-040", ())
    name = f"{ACCOUNT}@refund-runs"
    booked = {"spent": {name: ASK + 101}, "reserved": {name: 101}, "left": {name: -1}}
    assert decision.drafts[0].body["budget"] == booked
    assert "budget" not in decision.drafts[-1].body


def test_an_account_is_used_up_once_all_is_spent_and_not_while_others_hold_the_rest() -> None:
    for left, frozen, stops in ((0, ASK, True), (0, 2 * ASK, False), (1, ASK, False)):
        run, decision = answer(left, ASK, frozen=frozen)
        assert bool(decision.commands) == stops
        assert (run.now.state == life.PAUSED) == stops
    _, decision = answer(100, ASK + 101, frozen=2 * ASK)
    assert decision.commands


def test_what_an_answer_took_is_gone_for_the_next_question_of_the_same_decision() -> None:
    run, decision = answer(ASK, ASK + 1, raw=b"no")
    assert (run.now.state, run.why, decision.effects) == (life.EXHAUSTED, "BUD-004", ())
    run, decision = answer(ASK, ASK, raw=b"no")
    assert run.key
    assert decision.drafts[-1].body["budget"]["left"] == {f"{ACCOUNT}@refund-runs": 0}
