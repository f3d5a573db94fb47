"""Several runs that share accounts, authority and a clock, under random events, by a model."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from nanovm_core.core import events
from nanovm_core.core import lifecycle as life
from nanovm_core.core.envelope import check_chain, decode_snapshot, encode_snapshot
from nanovm_core.core.events import AnswerArrived, EffectDone, Event, TimePassed
from nanovm_core.core.fsm import replay
from nanovm_core.core.messages import (
    Commitment,
    Decision,
    Effect,
    Recorded,
    RunId,
    Scalar,
    Snapshot,
)
from nanovm_core.core.warrants import authorize, binding
from tests.core.fsm import cashier_rules as till
from tests.core.fsm.cashier_rules import wants
from tests.core.fsm.ledger_model import (
    ENDED,
    GOES_ON,
    JUNK,
    OTHER_TOOL,
    RECEIPT,
    REQUESTS,
    STILL,
    TEXT,
    Till,
    World,
    refusal,
)
from tests.core.kit.builders import START_MS, Scene
from tests.core.kit.chain import sealed

BOOLS = st.booleans()
RUNS = st.integers(0, len(till.AGENTS) - 1)
AMOUNTS = st.sampled_from([100, 250, 300, 450, 700])
LEAPS = st.sampled_from(
    [1, 1, 999, 1_300, 9_999, 15_000, 20_000, 30_000, till.TTL_MS, -400, till.WALL_MS]
)
HASHES = st.sampled_from([till.PROGRAM.hash, till.PROGRAM.hash, till.PROGRAM.hash, "0" * 64])
OUTS: st.SearchStrategy[tuple[dict[str, Scalar], tuple[Commitment, ...]]] = st.sampled_from(
    [
        ({"receipt": RECEIPT.ref}, (RECEIPT,)),
        ({"receipt": RECEIPT.ref}, ()),
        ({"receipt": "Jane Doe"}, (RECEIPT._replace(ref="Jane Doe"),)),
        ({"amount": True}, ()),
    ]
)
TOKENS = st.sampled_from([0, 300, till.ASK_TOKENS, 10**9, -5])


class Runs(RuleBasedStateMachine):
    """Feeds events to three runs of two agents. What must come of each is said before it is fed."""

    @initialize(
        amounts=st.tuples(*[AMOUNTS] * 3),
        stepping=st.tuples(*[st.sampled_from([False, False, False, True])] * 3),
        ahead=st.tuples(*[st.integers(0, 4)] * 3),
        used=st.sampled_from(till.USED),
        late=st.sampled_from([False, False, True]),
        failing=BOOLS,
    )
    def begin(
        self,
        amounts: Sequence[int],
        stepping: Sequence[bool],
        ahead: Sequence[int],
        used: Mapping[str, int],
        late: bool,
        failing: bool,
    ) -> None:
        """Begin the runs, each some way into its work."""
        self.at_ms = till.GRANT_ENDS_MS - 20_000 if late else START_MS
        self.accounts, self.revoked = till.Accounts(used), False
        past = [Recorded(self.at_ms, till.PAY, each, "bob") for each in ("called", "failed") * 2]
        self.history = past if failing else []
        self.keys = ["", "0" * 64]
        self.runs: list[Till] = []
        self.places = [
            self.new_run(agent, amounts[place], stepping[place])
            for place, agent in enumerate(till.AGENTS)
        ]
        for place, steps in enumerate(ahead):
            for _ in range(steps):
                self.work(place)

    def new_run(self, agent: str, amount: int, stepping: bool) -> Till:
        name = RunId(f"r{len(self.runs)}")
        scene = Scene(till.PROGRAM, {}, [], agent=agent, stepping=stepping, run=name)
        self.runs.append(Till(scene, amount))
        return self.runs[-1]

    @rule(leap=LEAPS)
    def leap(self, leap: int) -> None:
        self.at_ms += leap

    @rule(now=st.sampled_from([True, False, False]))
    def revoke(self, now: bool) -> None:
        self.revoked = now

    @rule(number=RUNS, amount=AMOUNTS)
    def another(self, number: int, amount: int) -> None:
        """Where a run has ended, its agent begins the next one."""
        run = self.places[number]
        if run.scene.now.state in ENDED and len(self.runs) < 7:
            self.places[number] = self.new_run(till.AGENTS[number], amount, False)
            self.work(number)

    @rule(first=RUNS, then=RUNS)
    def work_on(self, first: int, then: int) -> None:
        self.work(first)
        self.work(then)

    @rule(number=RUNS)
    def work(self, number: int) -> None:
        """What really comes next: an answer, a time, a person's word."""
        run = self.places[number]
        now = run.scene.now
        if now.state == life.READY:
            self.submit(run, events.RunStarted())
        elif now.awaits:
            self.submit(run, self.arrival(run, run.answer()))
        elif run.asks and now.owed is not None:
            self.propose(run, wants(run.amount), now.owed.key, 300)
        elif now.owed is not None and now.state in (life.ACTIVE, life.PAUSED):
            self.submit(run, EffectDone(key=now.owed.key, out=run.answer()))
        elif now.state == life.APPROVAL:
            self.submit(run, events.Approved())
        elif now.state == life.IDLE:
            self.at_ms += 2 * till.PAUSE_MS
            self.submit(run, TimePassed())
        elif now.state not in ENDED:
            self.submit(run, events.ResumeRequested(program=till.PROGRAM.hash))

    @rule(number=RUNS, kind=st.integers(0, 7), tokens=TOKENS, data=st.data())
    def proposal(self, number: int, kind: int, tokens: int, data: st.DataObject) -> None:
        run = self.places[number]
        amount = run.amount
        raws = (
            *(
                wants(amount),
                JUNK,
                wants(amount, tool=OTHER_TOOL),
                wants(amount, now=True),
            ),
            *(
                wants(TEXT),
                wants(amount + 1),
                wants(amount, "mallory"),
                wants(amount),
            ),
        )
        self.propose(run, raws[kind], self.key(data, run), tokens)

    @rule(number=RUNS, holder=BOOLS, data=st.data())
    def result(self, number: int, holder: bool, data: st.DataObject) -> None:
        run = self.places[number]
        out, secrets = data.draw(OUTS)
        event = EffectDone(key=self.key(data, run), out=out, secrets=secrets)
        self.submit(run, event, by_holder=holder)

    @rule(number=RUNS, retry=BOOLS, holder=st.sampled_from([1, 1, 0]), data=st.data())
    def failure(self, number: int, retry: bool, holder: int, data: st.DataObject) -> None:
        run = self.places[number]
        key = self.key(data, run)
        event = events.EffectFailed(key=key, code="EXT-1", text="no", retry=retry)
        self.submit(run, event, by_holder=bool(holder))

    @rule(number=RUNS, data=st.data())
    def unknown(self, number: int, data: st.DataObject) -> None:
        run = self.places[number]
        self.submit(run, events.EffectUnknown(key=self.key(data, run), code="EXT-4", text="?"))

    @rule(number=RUNS, leap=LEAPS, then=st.sampled_from([None, EffectDone, EffectDone, TimePassed]))
    def interlude(self, number: int, leap: int, then: type[Event] | None) -> None:
        """A pause of some time, in which something may come, and on."""
        run = self.places[number]
        self.submit(run, events.PauseRequested())
        self.at_ms += leap
        if then is TimePassed:
            self.submit(run, TimePassed())
        elif then is not None:
            self.work(number)
        self.submit(run, events.ResumeRequested(program=till.PROGRAM.hash))
        self.submit(run, TimePassed())

    @rule(number=RUNS, leap=LEAPS, retry=BOOLS)
    def later(self, number: int, leap: int, retry: bool) -> None:
        """An effect that is under way for some time, or is known to have failed for now."""
        run = self.places[number]
        key = run.scene.key
        failed = events.EffectFailed(key=key, code="EXT-3", text="no", retry=True)
        self.submit(run, failed if retry else events.EffectWaiting(key=key))
        self.at_ms += leap
        self.submit(run, TimePassed())

    @rule(number=RUNS, until=st.sampled_from([0, 1, 5_000, 10**9]), data=st.data())
    def under_way(self, number: int, until: int, data: st.DataObject) -> None:
        run = self.places[number]
        until_ms = self.at_ms + 1 + until if until else 0
        self.submit(run, events.EffectWaiting(key=self.key(data, run), until_ms=until_ms))

    @rule(number=RUNS, to=RUNS, program=HASHES, no=BOOLS, wrong=BOOLS, data=st.data())
    def answer(
        self, number: int, to: int, program: str, no: bool, wrong: bool, data: st.DataObject
    ) -> None:
        """An answer from elsewhere, at times to another run, program or key."""
        run = self.places[number]
        out, secrets = data.draw(OUTS) if wrong else ({}, ())
        event = replace(self.arrival(run, out), secrets=secrets)
        key = self.key(data, run) if data.draw(BOOLS) else event.key
        named = replace(event, key=key, program=program, code="EXT-2" if no else "")
        self.submit(run, replace(named, run=self.places[to].scene.now.run) if wrong else named)

    @rule(number=RUNS, program=HASHES, kind=st.sampled_from(REQUESTS))
    def request(self, number: int, program: str, kind: type[Event]) -> None:
        named = kind in (events.ResumeRequested, events.StepRequested, events.DeliveryReceived)
        event = kind(program=program) if named else kind()  # type: ignore[call-arg]
        self.submit(self.places[number], event)

    @rule(number=RUNS)
    def erasure(self, number: int) -> None:
        asked = events.ErasureRequested(refs=(RECEIPT.ref,), reason="art17-1-a")
        self.submit(self.places[number], asked)

    @rule(number=RUNS, under_way=BOOLS, really=st.sampled_from([False] * 7 + [True]))
    def stop(self, number: int, under_way: bool, really: bool) -> None:
        run = self.places[number]
        if really or run.pays:
            self.submit(run, events.KillRequested(), under_way=under_way)

    # --- one event, and the model -------------------------------------------------------------

    def key(self, data: st.DataObject, run: Till) -> str:
        """The key of what is owed; now and then another one, also another run's."""
        forged = data.draw(st.integers(0, 5)) == 5
        return data.draw(st.sampled_from(self.keys)) if forged else run.scene.key

    def propose(self, run: Till, raw: bytes, key: str, tokens: int) -> None:
        self.submit(run, events.ProposalReceived(raw=raw, key=key, tokens=tokens))

    def arrival(self, run: Till, out: dict[str, Scalar]) -> AnswerArrived:
        now = run.scene.now
        return AnswerArrived(run=now.run, program=now.program, key=now.awaits, out=out)

    def submit(
        self, run: Till, event: Event, *, by_holder: bool = True, under_way: bool = True
    ) -> None:
        """Say what must come of the event, feed it, and see."""
        self.at_ms += 1
        scene, before = run.scene, run.scene.now
        run.clock.see(self.at_ms)
        left = self.accounts.left(before.agent)
        world = World(self.at_ms, self.revoked, left, tuple(self.history), by_holder, under_way)
        expected = refusal(run, event, world)
        over = run.clock.is_over
        scene.ledger, scene.history = left, world.history
        scene.revoked = frozenset({till.GRANT}) if self.revoked else frozenset()
        asked = run.asks
        decision = scene.feed(event, at_ms=self.at_ms, by_holder=by_holder, under_way=under_way)
        self.accounts.book(before.agent, before.run, decision.budgets)
        refused = decision.refusal.code if decision.refusal else ""
        assert refused == expected or (expected == "out of turn" and refused)
        after = decision.snapshot
        if after.state != before.state:
            assert after.state in life.TABLE[before.state, type(event).__name__]
        if before.state in ENDED:
            own = isinstance(event, EffectDone) and by_holder
            self.check_absorbed(run, f"{type(event).__name__}{own}", before, decision)
            return
        if isinstance(event, TimePassed) and not refused:
            self.check_time(run, before, decision, over)
        self.history += run.hear(before, event, self.at_ms, decision, asked)
        intents = [draft for draft in decision.drafts if draft.kind == "intent"]
        for key in (str(draft.body["idempotency_key"]) for draft in intents):
            assert key not in self.keys, "a key is one attempt's of one run"
            assert len(key) == 64
            self.keys.append(key)
        self.check_limits(run, before, decision, world)
        for effect in decision.effects:
            self.check_turn(before, event, effect)
            self.check_authority(run, effect)

    # --- what must be -------------------------------------------------------------------------

    def check_time(self, run: Till, before: Snapshot, decision: Decision, over: bool) -> None:
        """A time runs out when it has run out, and not before."""
        ran = bool(decision.drafts)
        waited_ms = run.clock.ran_ms - run.clock.since_ms
        if before.state == life.IDLE and till.PAUSE_MS <= waited_ms < till.PAUSE_MS * 5 // 4:
            return  # how much more than till.PAUSE_MS it waits is its key's secret
        assert ran == over
        if not ran:
            assert decision.snapshot == before
        elif before.owed is not None and before.owed.tool == till.PAY:
            assert decision.snapshot.held_by == "unknown-outcome"
            assert (decision.effects, decision.budgets) == ((), ())

    def check_absorbed(self, run: Till, kind: str, before: Snapshot, decision: Decision) -> None:
        """What has ended has ended; each kind is sealed once, an erasure each time."""
        assert (decision.effects, decision.budgets) == ((), ())
        if kind.startswith("ErasureRequested"):
            assert [draft.kind for draft in decision.drafts] == ["erasure_requested"]
            assert decision.snapshot == before
            return
        assert decision.snapshot._replace(ignored=()) == before._replace(ignored=())
        assert [draft.kind for draft in decision.drafts] == ["ignored"] * (kind not in run.ignored)
        run.ignored.add(kind)

    def check_limits(self, run: Till, before: Snapshot, decision: Decision, world: World) -> None:
        """A step begins where every limit lets it, and only there; a payment is held by rule."""
        for draft in decision.drafts:
            step, tries = str(draft.body["step"]), draft.after.attempt > 1
            if draft.kind == "intent" and draft.body.get("outcome") != "waiting":
                run.spent["steps"] -= 1  # it was not yet begun when the limit was asked
                assert world.short_of(run, step, tries=tries) == ""
                run.spent["steps"] += 1
                assert step != "pay" or world.holds(run) == ""
            elif draft.kind == "suspended" and decision.snapshot.state == life.EXHAUSTED:
                assert world.short_of(run, step, tries=tries) == draft.body["rule"]
        if decision.snapshot.state == life.APPROVAL and before.state != life.APPROVAL:
            assert decision.snapshot.held_by in ("unknown-outcome", world.holds(run))

    def check_turn(self, before: Snapshot, event: Event, effect: Effect) -> None:
        """A suspended run begins nothing unless somebody lets it go on."""
        asked_to = isinstance(event, GOES_ON)
        resolved = isinstance(event, AnswerArrived) and before.state == life.APPROVAL
        assert asked_to or resolved or before.state not in STILL
        assert asked_to or effect.step == before.step or not before.stepping

    def check_authority(self, run: Till, effect: Effect) -> None:
        """What is handed out is owed, sealed, and a payment also granted now, for exactly this."""
        now = run.scene.now
        assert (now.owed, now.state, now.awaits) == (effect, life.ACTIVE, "")
        assert effect.key in self.keys
        if effect.tool != till.PAY:
            assert effect.warrant is None
            return
        assert not self.revoked
        assert self.at_ms < till.GRANT_ENDS_MS
        assert dict(effect.args) == {"amount": run.amount, "payee": "acme"}
        assert run.amount <= till.LARGE or "large" in now.approved
        assert not run.paid
        warrant = effect.warrant
        assert warrant is not None
        assert warrant.expires_ms <= min(self.at_ms + till.TTL_MS, till.GRANT_ENDS_MS)
        authorize(warrant, binding(now.run, till.PROGRAM.hash, effect), at_ms=self.at_ms)

    @invariant()
    def accounts_hold_what_runs_did(self) -> None:
        """No account is overdrawn, and each holds what its runs spent and have frozen."""
        for agent in set(till.AGENTS):
            assert min(self.accounts.left(agent).values()) >= 0
        for run in self.runs:
            name = run.scene.now.run
            frozen, spent = run.frozen(), run.spent
            assert self.accounts.of(self.accounts.frozen, name) == till.shared(frozen)
            assert self.accounts.of(self.accounts.spent, name) == till.shared(spent)
            used = {unit: spent[unit] + frozen.get(unit, 0) for unit in ("calls", "tokens", "EUR")}
            assert run.scene.now.begun == spent["steps"]
            ended = run.scene.now.state in ENDED
            if not (ended and run.kept):
                assert dict(run.scene.now.used) == {unit: n for unit, n in used.items() if n}

    @invariant()
    def values_come_back_from_bytes(self) -> None:
        for run in self.runs:
            now = run.scene.now
            assert decode_snapshot(encode_snapshot(now)) == now
            assert now.slots.get("receipt") in (None, RECEIPT.ref)
            assert now.refused <= till.PROGRAM.limits.proposals_max
            if now.owed is not None:
                assert (now.owed.step, now.state in ENDED) == (now.step, False)

    def teardown(self) -> None:
        """What was sealed is a chain, and replay comes to the same values."""
        for run in getattr(self, "runs", []):
            scene = run.scene
            check_chain(sealed(scene), run=scene.first.run)
            told = [each[:2] for each in scene.heard]
            assert replay(till.PROGRAM, scene.first, told) == scene.now


TestRuns = Runs.TestCase
TestRuns.settings = settings(max_examples=40, stateful_step_count=30, derandomize=True)
