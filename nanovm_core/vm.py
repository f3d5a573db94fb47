"""ExecutionVM: a run in memory, with the kernel's whole semantics and nothing but the kernel.

No disk, no database, no clock of its own: it forgets when the process ends. What a database,
a queue and several workers add is what the ``pipeline`` of this project is an example of.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from nanovm_core import lifecycle as life
from nanovm_core.books import Books, values_of
from nanovm_core.capabilities import grant_id
from nanovm_core.envelope import (
    ZERO,
    Place,
    Stored,
    canonical_hash,
    check_chain,
    encode_envelope,
    encode_snapshot,
    snapshot_hash,
)
from nanovm_core.errors import ProgramError, RefusedError
from nanovm_core.events import (
    EffectDone,
    EffectFailed,
    EffectUnknown,
    EffectWaiting,
    Event,
    ProposalReceived,
)
from nanovm_core.fsm import begin, transition
from nanovm_core.messages import Commitment, Decision, Effect, Recorded, RunId, Scalar, Snapshot
from nanovm_core.moves import OWN
from nanovm_core.program import EFFECT, MODEL, Program
from nanovm_core.projection import DeterministicSanitizer
from nanovm_core.warrants import binding, check, sign


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """A tool's answer: it happened, and these are the slots that it fills."""

    out: Mapping[str, Scalar] = field(default_factory=dict)
    secrets: tuple[Commitment, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed:
    """A tool's answer: it is known not to have happened."""

    code: str
    text: str
    retry: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Unknown:
    """A tool's answer: nobody can tell whether it happened; a person decides."""

    code: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """A tool's answer: it is under way; an ``AnswerArrived`` under its key will follow."""

    until_ms: int = 0


Answer = Done | Failed | Unknown | Waiting
Tool = Callable[[dict[str, Scalar], str], Answer]  # its own copy of the arguments, and the key
Model = Callable[[dict[str, Scalar]], bytes]  # the model's projection of the slots → its bytes


class ExecutionVM:
    """One run of a program in memory: feed it events, let it run, read what it sealed.

    ``tools`` do the effects, ``model`` answers the model steps, ``now_ms`` is the clock in
    milliseconds UTC; give one that you control and a run repeats itself to the byte. Several
    runs that are given the same ``books`` share accounts, windows and revocations. For one
    thread; a tool that raises leaves its effect owed, and the next ``run`` asks it again under
    the same key.
    """

    def __init__(
        self,
        program: Program,
        *,
        run: str,
        tools: Mapping[str, Tool],
        now_ms: Callable[[], int],
        model: Model | None = None,
        slots: Mapping[str, Scalar] = MappingProxyType({}),
        secrets: Sequence[Commitment] = (),
        agent: str = "",
        books: Books | None = None,
        key: Ed25519PrivateKey | None = None,
    ) -> None:
        """Check that every tool is there, and seal the genesis.

        Raises:
            ProgramError: PRG-006 where a step's tool or the model is missing.
        """
        _check_tools(program, tools, model)
        self.program, self.books = program, books or Books()
        self.envelopes: tuple[Stored, ...] = ()
        self._tools, self._model, self._now_ms = dict(tools), model, now_ms
        self._key = key or Ed25519PrivateKey.generate()
        modes = {name: slot.model for name, slot in program.slots.items()}
        self._sanitizer = DeterministicSanitizer(modes=modes)
        first = begin(
            program, RunId(run), slots, secrets, at_ms=now_ms(), actor="caller", agent=agent
        )
        self._record(first)

    def feed(self, event: Event) -> Decision:
        """Decide an event and take the decision; an effect's result is taken from tools alone."""
        return self._submit(replace(event, by_holder=False))

    def run(self) -> Snapshot:
        """Do what is owed until the run has ended, or waits for a person, an answer or a time."""
        while (owed := self.snapshot.owed) is not None and self.snapshot.state == life.ACTIVE:
            self._submit(self._performed(owed))
        return self.snapshot

    def verify(self) -> None:
        """Recompute what was sealed; raises VerificationError at the first bad place."""
        check_chain(self.envelopes, run=self.snapshot.run)

    def _submit(self, event: Event) -> Decision:
        now = self.snapshot
        event = replace(
            event,
            ledger=self.books.ledger(self.program, now.agent, values_of(now)),
            history=self.books.history,
            revoked=self.books.revoked,
        )
        decision = transition(self.program, now, event)
        self._remember(now, event, decision)
        self._record(decision)
        return decision

    def _performed(self, owed: Effect) -> Event:
        """The event that comes of an effect; a granted tool is used under its warrant alone."""
        at_ms = self._now_ms()
        if self.program.steps[owed.step].kind == MODEL and self._model is not None:
            view = self._sanitizer.for_model(self.snapshot.slots, {})
            return ProposalReceived(at_ms=at_ms, actor="model", raw=self._model(view), key=owed.key)
        if owed.warrant is not None:
            bound = binding(self.snapshot.run, self.program.hash, owed)
            ids = [grant_id(self.program.grants[owed.tool])]
            token = sign(owed.warrant, bound, self._key, grants=ids)
            public, revoked = self._key.public_key(), self.books.revoked
            try:
                check(token, bound, public, at_ms=at_ms, revoked=revoked)
            except RefusedError as error:  # late or revoked: a person authorizes it anew
                return _told(Unknown(code=error.code, text=error.text), owed.key, at_ms)
        return _told(self._tools[owed.tool](dict(owed.args), owed.key), owed.key, self._now_ms())

    def _record(self, decision: Decision) -> None:
        for draft in decision.drafts:
            n, after = len(self.envelopes), draft.after
            prev = self.envelopes[-1].hash if n else ZERO
            names = {
                "program": after.program,
                "policy": after.policy,
                "snapshot": snapshot_hash(encode_snapshot(after)),
            }
            place = Place(log="memory", seq=n, run=after.run, n=n, prev=prev)
            data = encode_envelope(draft, place, names=names)
            self.envelopes += (Stored(n=n, data=data, hash=canonical_hash(data)),)
        self.snapshot = decision.snapshot
        changes = [each for each in decision.budgets if not each.account.startswith(OWN)]
        self.books.settle(decision.snapshot.agent, changes)

    def _remember(self, before: Snapshot, event: Event, decision: Decision) -> None:
        """Write the calls of granted tools, and refused proposals, into the books."""
        if isinstance(event, ProposalReceived) and decision.refusal is not None:
            self.books.record(Recorded(event.at_ms, "", "refused", before.agent))
        answered = {EffectDone: "done", EffectFailed: "failed"}.get(type(event))
        owed = before.owed
        if answered and decision.refusal is None and owed and owed.warrant:
            self.books.record(Recorded(event.at_ms, owed.tool, answered, before.agent))
        for effect in decision.effects:
            if effect.warrant is not None:
                self.books.record(Recorded(event.at_ms, effect.tool, "called", before.agent))


def _told(answer: Answer, key: str, at_ms: int) -> Event:
    match answer:
        case Done():
            return EffectDone(at_ms=at_ms, key=key, out=answer.out, secrets=answer.secrets)
        case Failed():
            return EffectFailed(
                at_ms=at_ms, key=key, code=answer.code, text=answer.text, retry=answer.retry
            )
        case Unknown():
            return EffectUnknown(at_ms=at_ms, key=key, code=answer.code, text=answer.text)
        case Waiting():
            return EffectWaiting(at_ms=at_ms, key=key, until_ms=answer.until_ms)
    raise TypeError(f"a tool answers Done, Failed, Unknown or Waiting, not {type(answer).__name__}")


def _check_tools(program: Program, tools: Mapping[str, Tool], model: Model | None) -> None:
    for step in program.steps.values():
        wanted = step.accepts if step.kind == MODEL else (step.tool,) if step.tool else ()
        missing = [tool for tool in wanted if tool not in tools]
        if step.kind in (EFFECT, MODEL) and missing:
            raise ProgramError("PRG-006", f"step {step.name} needs the tools {missing}; give them")
        if step.kind == MODEL and model is None:
            raise ProgramError("PRG-006", f"step {step.name} asks a model; give one")
