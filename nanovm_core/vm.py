"""ExecutionVM: a run in memory, with the kernel's whole semantics and nothing but the kernel.

No disk, no database, no clock of its own: it forgets when the process ends. What a database,
a queue and several workers add is what the ``pipeline`` of this project is an example of.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from nanovm_core.core import lifecycle as life
from nanovm_core.core.authority.capabilities import grant_id, resolve
from nanovm_core.core.canonical import decode
from nanovm_core.core.envelope import (
    ZERO,
    Place,
    Stored,
    check_chain,
    encode_snapshot,
    seal,
    snapshot_hash,
)
from nanovm_core.core.events import (
    AnswerArrived,
    Context,
    EffectDone,
    EffectFailed,
    EffectUnknown,
    EffectWaiting,
    Event,
    ProposalReceived,
)
from nanovm_core.core.fsm import begin, transition
from nanovm_core.core.fsm.commands import hold_id
from nanovm_core.core.messages import (
    NOTHING,
    Commitment,
    Decision,
    Effect,
    Refusal,
    RunId,
    Scalar,
    Snapshot,
)
from nanovm_core.core.program import MODEL, Program
from nanovm_core.core.projection import DeterministicSanitizer
from nanovm_core.core.warrants import REVOKED, authorize, binding
from nanovm_core.errors import ProgramError, RefusedError, VerificationError
from nanovm_core.ledger import values_of
from nanovm_core.ledger.memory import InMemoryLedger


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """A tool's answer: the effect happened. ``out`` fills slots; ``secrets`` commit to its refs."""

    out: Mapping[str, Scalar] = field(default_factory=dict)
    secrets: tuple[Commitment, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed:
    """A tool's answer: the effect certainly did not happen. ``retry``: another attempt may help."""

    code: str
    text: str
    retry: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Unknown:
    """A tool's answer: it is unknown whether the effect happened; a person decides."""

    code: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """A tool's answer: the effect is under way. Pass its ``AnswerArrived`` to ``answer``.

    ``until_ms``: the deadline, in milliseconds UTC; 0 takes the step's own.
    """

    until_ms: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """A model's answer: its bytes, and the tokens that its provider counted.

    A model that returns bytes alone is charged all the tokens that the step may use.
    """

    raw: bytes
    tokens: int


Answer = Done | Failed | Unknown | Waiting
Tool = Callable[[dict[str, Any], str], Answer]  # its own copy of the arguments, and the key
Model = Callable[[dict[str, Scalar]], bytes | Said]  # gets what it may see of the slots


class ExecutionVM:
    """One run of a program in memory: feed it events, let it run, read what it sealed.

    ``tools`` do the effects, ``model`` answers the model steps, ``now_ms`` is the clock in
    milliseconds UTC. Several runs that are given the same ``ledger`` share accounts, windows
    and revocations. For one thread; a tool that raises leaves its effect owed, and the next
    ``run`` asks it again under the same key.
    """

    def __init__(
        self,
        program: Program,
        *,
        run: str,
        tools: Mapping[str, Tool],
        now_ms: Callable[[], int],
        model: Model | None = None,
        slots: Mapping[str, Scalar] = NOTHING,
        origins: Mapping[str, str] = NOTHING,
        secrets: Sequence[Commitment] = (),
        agent: str = "",
        ledger: InMemoryLedger | None = None,
    ) -> None:
        """Check that every tool is there, and seal the genesis.

        ``run``: the run's id; ``slots``, ``origins``, ``secrets``, ``agent``: as in ``begin``.

        Raises:
            ProgramError: PRG-006, a step's tool or the model is missing; else as ``begin`` raises.
        """
        _check_tools(program, tools, model)
        self.program, self.ledger = program, ledger or InMemoryLedger()
        self._tools, self._model, self._now_ms = dict(tools), model, now_ms
        modes = {name: slot.model for name, slot in program.slots.items()}
        self._sanitizer = DeterministicSanitizer(modes=modes)
        self._first = begin(
            program,
            RunId(run),
            slots,
            secrets,
            at_ms=now_ms(),
            actor="caller",
            agent=agent,
            origins=origins,
        )
        self.snapshot = self._first.snapshot
        self._sealed = [*sealed((), self._first)]
        self._events: list[tuple[Event, Context]] = []
        self._asked: set[str] = set()  # keys of the effects that a tool was asked for

    @property
    def envelopes(self) -> tuple[Stored, ...]:
        """The envelopes sealed so far: the audit record of the run."""
        return tuple(self._sealed)

    @property
    def hold(self) -> str:
        """The id that ``Approved`` and ``Declined`` must name now; empty if nothing is held."""
        return hold_id(self.snapshot)

    def feed(self, event: Event, *, actor: str = "caller") -> Decision:
        """Decide an event and record the decision; a refusal is in it, not raised.

        Only tools report an effect's result (FSM-012), and only ``answer`` takes what the run
        waits for (FSM-018). The caller checks who may approve, pause or stop the run.
        """
        return self._submit(event, actor=actor)

    def answer(self, event: AnswerArrived, *, actor: str = "caller") -> Decision:
        """Record the answer that the run waits for, from a sender whom the caller has identified.

        Check first who sends it: the signature of a webhook, the session of a person.
        The event has to name run, program and the awaited key (FSM-015), and works once.
        """
        return self._submit(event, actor=actor, vouched=True)

    def run(self) -> Snapshot:
        """Perform effects until the run has ended, or waits for a person, an answer or a time.

        Returns:
            The run's snapshot then; its ``state`` and ``reason`` say why it stopped.
        """
        while (owed := self.snapshot.owed) is not None and self.snapshot.state == life.ACTIVE:
            event = self._performed(owed)
            actor = "model" if isinstance(event, ProposalReceived) else "runtime"
            refusal = self._submit(event, actor, by_holder=True).refusal
            still = self.snapshot.owed
            if refusal is not None and still is not None and still.key == owed.key:
                self._submit(_told(_broken(owed, refusal), owed.key), by_holder=True)
        return self.snapshot

    def verify(self) -> None:
        """Recompute the chain, and compare the snapshot with the hash that was sealed last.

        Raises:
            VerificationError: LOG-001 … LOG-003, at the first bad place.
        """
        check_chain(self._sealed, run=self.snapshot.run)
        last, found = decode(self._sealed[-1].data), _value_hash(self.snapshot)
        if not isinstance(last, dict) or last["snapshot"] != found:
            text = "The run's snapshot differs from the one that was sealed last."
            raise VerificationError("LOG-003", text, at=self._sealed[-1].n, found=found)

    def replayed(self) -> tuple[Stored, ...]:
        """The envelopes that the same events give again, without tools, model or clock."""
        decision, again = self._first, [*sealed((), self._first)]
        for event, context in self._events:
            decision = transition(self.program, decision.snapshot, event, context)
            again += sealed(again, decision)
        return tuple(again)

    def _submit(
        self,
        event: Event,
        actor: str = "runtime",
        *,
        by_holder: bool = False,
        vouched: bool = False,
    ) -> Decision:
        """Read, decide, write: all of it or, where something raises, nothing."""
        now, ledger = self.snapshot, self.ledger
        at_ms = max(self._now_ms(), ledger.at_ms)
        context = Context(
            at_ms=at_ms,
            actor=actor,
            by_holder=by_holder,
            vouched=vouched,
            under_way=now.owed is not None and now.owed.key in self._asked,
            ledger=ledger.left(self.program, now.agent, values_of(now, event)),
            counts=ledger.counts(self.program, now.agent, at_ms),
            revoked=ledger.revoked,
            halted=ledger.halted_at(self.program, now.agent, at_ms),
            frozen=ledger.frozen(now.agent),
            requested_by="caller",
        )
        decision = transition(self.program, now, event, context)
        self._sealed += [*sealed(self._sealed, decision)]
        self._events.append((event, context))
        self.snapshot = decision.snapshot
        ledger.settle(now.agent, decision.budgets)
        ledger.halted |= {each.agent: each.state for each in decision.commands}
        for draft in decision.drafts:
            ledger.record(self.program, now.agent, draft.kind, draft.at_ms, draft.body)
        return decision

    def _performed(self, owed: Effect) -> Event:
        """The event that comes of an effect: the model's proposal, or a tool's answer."""
        step, model = self.program.steps[owed.step], self._model
        if step.kind != MODEL or model is None:
            answer = self._answered(owed)
            try:
                return _told(answer, owed.key)
            except RefusedError as error:
                return _told(_broken(owed, error), owed.key)
        said = model(self._sanitizer.for_model(self.snapshot.slots, {}))
        raw, tokens = (said.raw, said.tokens) if isinstance(said, Said) else (said, step.tokens_max)
        return ProposalReceived(raw=raw, tokens=tokens, key=owed.key)

    def _answered(self, owed: Effect) -> Answer:
        """What a tool answers; a granted one is asked under a warrant that is in force alone."""
        try:
            if owed.tool in self.program.granted:
                grant = resolve(self.program.grants, owed.tool)
                bound = binding(self.snapshot.run, self.program.hash, owed)
                authorize(owed.warrant, bound, self._now_ms())
                if not self.ledger.revoked.isdisjoint({grant_id(grant), *grant.narrowed_from}):
                    raise RefusedError(REVOKED, f"The grant for {owed.tool} was revoked.")
        except RefusedError as error:
            text = f"{error.text} Approve it to authorize the same call again."
            return Unknown(code=error.code, text=text)
        self._asked.add(owed.key)
        return self._tools[owed.tool](dict(owed.args), owed.key)


def sealed(chain: Sequence[Stored], decision: Decision) -> Iterator[Stored]:
    """The envelopes of a decision, as they follow this chain in a log of its own."""
    prev = chain[-1].hash if chain else ZERO
    for n, draft in enumerate(decision.drafts, len(chain)):
        after = draft.after
        place = Place(log="memory", seq=n, run=after.run, n=n, prev=prev)
        names = {"program": after.program, "policy": after.policy, "snapshot": _value_hash(after)}
        envelope = seal(draft, place, names=names)
        prev = envelope.hash
        yield envelope


def _value_hash(snapshot: Snapshot) -> str:
    return snapshot_hash(encode_snapshot(snapshot))


def _told(answer: Answer, key: str) -> Event:
    """A tool's answer as the event that it is."""
    match answer:
        case Done(out=out, secrets=secrets):
            return EffectDone(key=key, out=out, secrets=secrets)
        case Failed(code=code, text=text, retry=retry):
            return EffectFailed(key=key, code=code, text=text, retry=retry)
        case Unknown(code=code, text=text):
            return EffectUnknown(key=key, code=code, text=text)
        case Waiting(until_ms=until_ms):
            return EffectWaiting(key=key, until_ms=until_ms)
    raise TypeError(f"a tool answers Done, Failed, Unknown or Waiting, not {type(answer).__name__}")


def _broken(owed: Effect, refusal: Refusal | RefusedError) -> Answer:
    """An answer that does not fit its step: nobody knows what a granted tool did outside."""
    text = f"What {owed.tool} answered does not fit the step {owed.step}: {refusal.text}"
    if owed.warrant is not None:
        return Unknown(code=refusal.code, text=text)
    return Failed(code=refusal.code, text=text)


def _check_tools(program: Program, tools: Mapping[str, Tool], model: Model | None) -> None:
    for step in program.steps.values():
        if step.kind == MODEL and model is None:
            raise ProgramError("PRG-006", f"step {step.name} asks a model: give model=…")
        wanted = step.accepts if step.kind == MODEL else filter(None, (step.tool,))
        missing = [tool for tool in wanted if tool not in tools]
        if missing:
            text = f"step {step.name} needs {', '.join(missing)}: give a function for it in tools"
            raise ProgramError("PRG-006", text)
