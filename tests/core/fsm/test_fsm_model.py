"""Runs that share accounts, authority and a clock, under random events, held to a model."""

import json
from collections import Counter
from collections.abc import Sequence
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from nanovm_core.core import events
from nanovm_core.core import lifecycle as life
from nanovm_core.core.authority.budget import name_of
from nanovm_core.core.authority.capabilities import grant_id
from nanovm_core.core.envelope import check_chain
from nanovm_core.core.events import AnswerArrived, EffectDone, EffectFailed, Event, TimePassed
from nanovm_core.core.messages import Decision, Effect, RunId, Snapshot
from nanovm_core.core.warrants import authorize, binding
from nanovm_core.ledger import fold
from nanovm_core.ledger.value import Ledger
from tests.core.fsm.test_lifecycle import check
from tests.core.kit import hand_overs
from tests.core.kit.builders import START_MS, Scene, replay
from tests.core.kit.chain import comes_back, sealed
from tests.core.kit.refund_runs import BUYER, GRANT_ENDS_MS, ORDER, PROGRAM, RECEIPT, Refund

REFUND, ASK_TOKENS, LARGE, MINUTE_MS = "money.refund", 8_192, 4_000, 60_000
LIMITS = PROGRAM.limits
AGENTS = ("ann", "ann", "bob")  # whose the runs are
SHARED = {"workspace/EUR": 9_000, "workspace/steps": 16, "agent/tokens": 20_000}
GOES_ON = (events.RunStarted, events.ResumeRequested, events.StepRequested, events.Approved)
NAMED = (events.ResumeRequested, events.StepRequested, events.DeliveryReceived)
PLAIN = (events.RunStarted, events.PauseRequested, events.Approved, events.Declined, TimePassed)
NEVER = (events.DamageFound, events.ForeignIntent)  # what nobody says in an event
ERASURE = events.ErasureRequested(refs=(RECEIPT.ref,), reason="art17-1-a")
BAD_OUTS: tuple[dict[str, Any], ...] = (
    {"out": {"receipt": RECEIPT.ref}},
    {"out": {"receipt": "Jane Doe"}, "secrets": (RECEIPT._replace(ref="Jane Doe"),)},
    {"out": {"amount_minor": True}},
)
BAD_CALLS: tuple[dict[str, Any], ...] = (
    *({"tool": "wire_transfer"}, {"now": True}, {"amount_minor": "100"}, {"amount_minor": 1}),
    {"to": ORDER.ref},
)
BOOLS, RUNS = st.booleans(), st.integers(0, len(AGENTS) - 1)
SELDOM = st.sampled_from([False, False, False, True])
AMOUNTS = st.sampled_from([1_000, 3_000, 4_500, 8_500])  # held over 4,000, granted up to 8,000
LEAPS = st.sampled_from([1, 999, 2_000, MINUTE_MS, 120_000, 300_000, 600_000, -400, 3_600_000])
TOKENS = st.sampled_from([0, 300, ASK_TOKENS, ASK_TOKENS + 900, -5])


class World:
    """What all runs share: the time, who may pay, what others did, and the accounts."""

    def __init__(self, at_ms: int) -> None:
        self.at_ms, self.revoked = at_ms, False
        self.refunded_ms: list[int] = []
        self.keys = ["", "0" * 64]
        self.taken: Counter[tuple[str, str, str]] = Counter()  # (account, agent, run)
        self.ledger = Ledger()  # of all that was sealed

    def left(self, agent: str) -> dict[str, int]:
        """What each account has left for an agent."""
        found = dict(SHARED)
        for (account, whose, _), amount in self.taken.items():
            if whose == agent or not account.startswith("agent/"):
                found[account] -= amount
        return found

    def may_pay(self) -> bool:
        return not self.revoked and self.at_ms < GRANT_ENDS_MS

    def calm(self) -> bool:
        """Whether nobody refunded elsewhere in the last minute."""
        return not self.refunds()

    def refunds(self) -> int:
        """How many refunds there were elsewhere in the last minute."""
        return sum(self.at_ms - each <= MINUTE_MS for each in self.refunded_ms)


class Run(Refund):
    """A run, what it is about, and what became of it: told by the test, not by the kernel."""

    def __init__(self, world: World, number: int, agent: str, amount: int, stepping: bool) -> None:
        name = RunId(f"r{number}")
        Scene.__init__(self, PROGRAM, {}, [ORDER], agent=agent, stepping=stepping, run=name)
        self.world, self.amount = world, amount
        self.begun = self.tokens = 0
        self.paid = False
        self.kept = ""  # the step of which nobody will ever know what became of it

    @property
    def ended(self) -> bool:
        return self.now.state in life.TERMINAL

    def owes(self, step: str) -> bool:
        return self.now.owed is not None and self.now.owed.step == step

    def feed(
        self, event: Event | type[Event], *, after_ms: int = 1, bad: bool = False, **given: Any
    ) -> Decision:
        """Feed an event, hold its decision to the model; a ``bad`` one is not taken."""
        world, before, asked = self.world, self.now, self.owes("ask")
        world.at_ms += after_ms
        self.ledger = world.left(before.agent)
        self.counts = {"refunds": world.refunds()}
        self.revoked = frozenset({grant_id(PROGRAM.grants[REFUND])} if world.revoked else ())
        decision = super().feed(event, **{"at_ms": world.at_ms, **given})
        event, context, _ = self.heard[-1]
        hand_overs.check(len(self.heard), before, event, context, decision)
        taken = decision.refusal is None and not decision.absorbed
        assert not (bad and taken)
        for account, reserved, spent in decision.budgets:
            world.taken[account, before.agent, before.run] += reserved + spent
        for draft in decision.drafts:
            said = {**draft.body, "run": before.run, "kind": draft.kind, "at_ms": draft.at_ms}
            world.ledger = fold.after(world.ledger, said)
        if before.state in life.TERMINAL:
            assert (decision.effects, decision.budgets) == ((), ())
            assert self.now._replace(ignored=()) == before._replace(ignored=())
            return decision
        check(before, event, decision)
        if isinstance(event, TimePassed) and taken and context.at_ms < before.deadline_ms:
            assert decision.drafts == ()
        if isinstance(event, events.ProposalReceived) and asked and self.now != before:
            own = context.by_holder
            self.tokens += max(event.tokens, 0) if own else ASK_TOKENS
        if before.step == "refund" and before.owed is not None and taken:
            self.hear_of_payment(event)
        self.hear_of_intents(decision)
        told = isinstance(event, AnswerArrived) and taken
        if before.held_by == "unknown-outcome" and self.ended and not told:
            self.kept = before.step
        for effect in decision.effects:
            self.check_turn(before, event, effect)
            self.check_authority(effect)
        return decision

    def hear_of_payment(self, event: Event) -> None:
        """A payment is made once."""
        happened = isinstance(event, EffectDone) or (
            isinstance(event, AnswerArrived) and not event.code
        )
        assert not (happened and self.paid)
        self.paid |= happened

    def hear_of_intents(self, decision: Decision) -> None:
        """A key is one attempt's of one run, and each attempt of a payment is judged anew."""
        for draft in decision.drafts:
            if draft.kind == "intent":
                key = str(draft.body["idempotency_key"])
                assert (key in self.world.keys, len(key)) == (False, 64)
                self.world.keys.append(key)
                self.begun += draft.body.get("outcome") != "waiting"
                assert draft.body.get("tool") != REFUND or self.world.calm()

    def check_turn(self, before: Snapshot, event: Event, effect: Effect) -> None:
        """A suspended run begins nothing unless somebody lets it go on."""
        asked_to = isinstance(event, GOES_ON)
        resolved = isinstance(event, AnswerArrived) and before.state == life.APPROVAL
        assert asked_to or resolved or before.state not in life.SUSPENDED
        assert asked_to or effect.step == before.step or not before.stepping

    def check_authority(self, effect: Effect) -> None:
        """What is handed out is owed and sealed; what needs a grant is granted for exactly this."""
        now, at_ms = self.now, self.world.at_ms
        assert (now.owed, now.awaits, effect.key in self.world.keys) == (effect, "", True)
        if effect.tool not in PROGRAM.grants:
            assert effect.warrant is None
            return
        authorize(effect.warrant, binding(now.run, PROGRAM.hash, effect), at_ms=at_ms)
        assert effect.warrant is not None
        ends_ms = at_ms + LIMITS.warrant_ttl_ms
        if effect.tool == REFUND:
            assert self.world.may_pay()
            assert dict(effect.args) == {"amount_minor": self.amount, "to": BUYER.ref}
            assert self.amount <= LARGE or "large" in now.approved
            assert not self.paid
            ends_ms = min(ends_ms, GRANT_ENDS_MS)
        assert effect.warrant.expires_ms <= ends_ms

    def check_accounts(self) -> None:
        """The accounts hold what the run did and what is under way, and so does its own count."""
        now, name = self.now, self.now.run
        again = now.step == "refund" and now.attempt > 1
        pays = self.kept == "refund" or (not self.ended and (self.owes("refund") or again))
        asks = self.kept == "ask" or (not self.ended and self.owes("ask"))
        money = self.amount * (self.paid or pays)
        expected = {"workspace/EUR": money, "workspace/steps": self.begun}
        expected["agent/tokens"] = self.tokens + ASK_TOKENS * asks
        for account in SHARED:  # what the envelopes say is what the decisions took
            whose = now.agent if account.startswith("agent/") else ""
            taken = (
                amount
                for (found, agent, _), amount in self.world.taken.items()
                if found == account and agent.startswith(whose)
            )
            assert self.world.ledger.used(name_of(account, now.agent)) == sum(taken)
        found = {account: self.world.taken[account, now.agent, name] for account in SHARED}
        assert found == expected
        assert (now.begun, now.used.get("EUR", 0)) == (self.begun, money)
        assert now.used.get("tokens", 0) == expected["agent/tokens"]
        assert bool(money) <= now.used.get("calls", 0) <= LIMITS.calls_max
        assert self.begun <= LIMITS.steps_max
        assert now.refused <= LIMITS.proposals_max


class Runs(RuleBasedStateMachine):
    """Feeds events to three runs of two agents, each some way into its work."""

    @initialize(
        amounts=st.tuples(*[AMOUNTS] * 3),
        stepping=st.tuples(*[SELDOM] * 3),
        ahead=st.tuples(*[st.integers(1, 5)] * 3),
        late=SELDOM,
    )
    def begin(
        self, amounts: Sequence[int], stepping: Sequence[bool], ahead: Sequence[int], late: bool
    ) -> None:
        self.world = World(GRANT_ENDS_MS - 20_000 if late else START_MS)
        self.runs: list[Run] = []
        self.places = list(map(self.new_run, AGENTS, amounts, stepping))
        for place, steps in enumerate(ahead):
            for _ in range(steps):
                self.work(place)

    def new_run(self, agent: str, amount: int, stepping: bool) -> Run:
        self.runs.append(Run(self.world, len(self.runs), agent, amount, stepping))
        return self.runs[-1]

    @rule(leap=LEAPS)
    def leap(self, leap: int) -> None:
        self.world.at_ms += leap

    @rule(revoked=SELDOM, refunded=SELDOM)
    def elsewhere(self, revoked: bool, refunded: bool) -> None:
        """The grant is taken back or given anew; somebody refunds in another run."""
        self.world.revoked = revoked
        self.world.refunded_ms += [self.world.at_ms] if refunded else []

    @rule(number=RUNS, amount=AMOUNTS)
    def another(self, number: int, amount: int) -> None:
        """Where a run has ended, its agent begins the next one."""
        if self.places[number].ended and len(self.runs) < 7:
            self.places[number] = self.new_run(AGENTS[number], amount, False)
            self.work(number)

    @rule(number=RUNS)
    def work(self, number: int) -> None:
        """What really comes next: an answer, a time, a person's word."""
        run = self.places[number]
        now = run.now
        if now.state == life.READY:
            run.start()
        elif now.state == life.APPROVAL and not now.awaits:
            run.approve()
        elif now.awaits:
            run.arrives(*self.fruit(run))
        elif run.owes("ask"):
            run.propose()
        elif now.owed is not None and now.owed.step == "look_up":
            run.look_up(amount_minor=run.amount, urgent=bool(number))
        elif now.owed is not None:
            out, *secrets = self.fruit(run)
            run.done(*secrets, **out)
        elif now.state == life.IDLE:
            run.passes(2_000)
        elif not run.ended:
            run.resume()

    def fruit(self, run: Run) -> list[Any]:
        """What the refund fills, and its secret; no other step that is worked on fills anything."""
        return [{"receipt": RECEIPT.ref}, RECEIPT] if run.now.step == "refund" else [{}]

    @rule(first=RUNS, then=RUNS)
    def work_on(self, first: int, then: int) -> None:
        self.work(first)
        self.work(then)

    @rule(number=RUNS, tokens=TOKENS, other=SELDOM, holder=BOOLS, data=st.data())
    def proposal(
        self, number: int, tokens: int, other: bool, holder: bool, data: st.DataObject
    ) -> None:
        """The faithful proposal or a bad one, at times under another key."""
        run, changes = self.places[number], data.draw(st.sampled_from([{}, *BAD_CALLS]))
        key = data.draw(st.sampled_from(self.world.keys)) if other else run.key
        call = {"amount_minor": run.amount, "to": BUYER.ref, **changes}
        tool = call.pop("tool", REFUND)
        raw = json.dumps({"tool": tool, "args": call}).encode()
        bad = bool(changes) or not run.owes("ask") or key != run.key
        event = events.ProposalReceived(raw=raw, key=key, tokens=tokens)
        run.feed(event, bad=bad, by_holder=holder)

    @rule(number=RUNS, other=SELDOM, holder=BOOLS, data=st.data())
    def result(self, number: int, other: bool, holder: bool, data: st.DataObject) -> None:
        """What the worker or a forger says of an effect."""
        run, fails = self.places[number], {"code": "X-1", "text": "no"}
        key = data.draw(st.sampled_from(self.world.keys)) if other else run.key
        bad = run.now.owed is None or key != run.now.owed.key or not holder
        until_ms = self.world.at_ms + data.draw(st.sampled_from([1, 5_000, 10**9]))
        said = (
            *(EffectDone(key=key, **each) for each in BAD_OUTS),
            *(EffectFailed(key=key, retry=retry, **fails) for retry in (True, True, False)),
            *(events.EffectUnknown(key=key, **fails), events.EffectWaiting(key=key)),
            events.EffectWaiting(key=key, until_ms=until_ms),
        )
        event = data.draw(st.sampled_from(said))
        run.feed(event, bad=bad or isinstance(event, EffectDone), by_holder=holder)

    @rule(
        number=RUNS, to=RUNS, forged=SELDOM, other=SELDOM, no=BOOLS, vouched=BOOLS, data=st.data()
    )
    def answer(
        self,
        number: int,
        to: int,
        forged: bool,
        other: bool,
        no: bool,
        vouched: bool,
        data: st.DataObject,
    ) -> None:
        """An answer from elsewhere, at times to another run, program or key."""
        run = self.places[number]
        name = self.places[to].now.run
        key = data.draw(st.sampled_from(self.world.keys)) if other else run.now.awaits
        program = "0" * 64 if forged else PROGRAM.hash
        bad = (name, key, program) != (run.now.run, run.now.awaits or "-", PROGRAM.hash)
        said: dict[str, Any] = (
            {"code": "X-2", "text": "no"} if no else data.draw(st.sampled_from(BAD_OUTS))
        )
        event = AnswerArrived(run=name, program=program, key=key, **said)
        run.feed(event, bad=bad or not no or not vouched, vouched=vouched)

    @rule(number=RUNS, leap=LEAPS, retry=BOOLS, paused=BOOLS)
    def later(self, number: int, leap: int, retry: bool, paused: bool) -> None:
        """An effect is under way or has failed for now; some time passes, perhaps in a pause."""
        run = self.places[number]
        run.fail(retry=True) if retry else run.under_way()
        if paused:
            run.pause()
        self.world.at_ms += leap
        if paused:
            run.resume()
        run.passes(1)

    @rule(number=RUNS, kind=st.sampled_from([*PLAIN, *NAMED, *NEVER, None]), other=SELDOM)
    def request(self, number: int, kind: type[Event] | None, other: bool) -> None:
        """What a person or the queue asks for; values are erased after the end only."""
        run = self.places[number]
        named = {"program": "0" * 64 if other else PROGRAM.hash} if kind in NAMED else {}
        bad = bool(named and other) or kind in NEVER or (kind is None and not run.ended)
        run.feed(kind(**named) if kind else ERASURE, bad=bad)

    @rule(number=RUNS, under_way=BOOLS, really=SELDOM)
    def stop(self, number: int, under_way: bool, really: bool) -> None:
        """A run is stopped, but not while its payment is under way."""
        run = self.places[number]
        if really or run.owes("refund"):
            bad = under_way and run.owes("refund")
            run.feed(events.KillRequested(), bad=bad, under_way=under_way)

    @invariant()
    def accounts_hold_what_runs_did(self) -> None:
        """No account is overdrawn, and each holds what its runs spent and have frozen."""
        for agent in set(AGENTS):
            assert min(self.world.left(agent).values()) >= 0
        for run in self.runs:
            run.check_accounts()
            assert comes_back(run.now)

    def teardown(self) -> None:
        """What was sealed is a chain, and replay comes to the same values."""
        for run in getattr(self, "runs", []):
            check_chain(sealed(run), run=run.first.run)
            told = [each[:2] for each in run.heard]
            assert replay(PROGRAM, run.first, told) == run.now


TestRuns = Runs.TestCase
TestRuns.settings = settings(max_examples=40, stateful_step_count=30, derandomize=True)
