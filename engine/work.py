"""The input and output of every adapter: ``Work`` and ``Answer``."""

from collections.abc import Mapping
from dataclasses import dataclass

from engine.errors import PermanentError
from engine.models import Run
from engine.vault import secret_store
from engine.vault.secret_store import Sealed
from nanovm_core.core.events import EffectDone, EffectFailed, Event
from nanovm_core.core.messages import Effect, Scalar
from nanovm_core.core.program import Program
from nanovm_core.errors import VerificationError


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What an adapter gets: the effect, the run that it belongs to, and the warrant for it."""

    run: Run
    program: Program
    slots: Mapping[str, Scalar]
    effect: Effect
    begun_before: bool
    agent: str  # who uses the tool
    token: bytes = b""  # the signed warrant, where the tool is granted

    def opened(self, slot: str) -> bytes:
        """The value of a slot that the effect names, from the vault.

        Raises:
            PermanentError: PII-…, where the value was erased or does not open.
        """
        return slot_value(self.effect, slot)

    def sealed(self, values: Mapping[str, bytes], *, staging: bool = False) -> dict[str, Sealed]:
        """Seal values into the vault for this run."""
        origin = self.run.workspace.origin
        return secret_store.seal_values(str(self.run.id), origin, values, staging=staging)


def slot_value(effect: Effect, slot: str) -> bytes:
    """The value of a slot that an effect names, from the vault.

    Raises:
        PermanentError: PII-…, where the value was erased or does not open.
    """
    ref = str(effect.args[slot])
    try:
        value = secret_store.read_bytes([ref])[ref]
    except VerificationError as error:
        raise PermanentError(error.code, f"The secret in {slot} cannot be decrypted.") from error
    if value is None:
        text = f"The secret in {slot} was erased or cannot be decrypted."
        raise PermanentError("PII-002", text)
    return value


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The event to submit for an effect, and the sealed values that it commits to.

    ``outcome``: for the adapters' own record, where the event's kind says too little.
    """

    event: Event
    secrets: tuple[Sealed, ...] = ()
    outcome: str = ""


def done(
    work: Work, clear: Mapping[str, Scalar], sealed: Mapping[str, Sealed], outcome: str = "done"
) -> Answer:
    """The effect succeeded: its clear results, and a ref for each sealed value."""
    event = EffectDone(
        key=work.effect.key,
        out={**clear, **{slot: each.ref for slot, each in sealed.items()}},
        secrets=tuple(each.commitment for each in sealed.values()),
        outcome=outcome,
    )
    return Answer(event=event, secrets=tuple(sealed.values()))


def failed(work: Work, code: str, text: str, *, retry: bool) -> Answer:
    """The effect is known not to have happened; with ``retry``, another attempt may succeed."""
    return Answer(event=EffectFailed(key=work.effect.key, code=code, text=text, retry=retry))
