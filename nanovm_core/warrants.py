"""Warrants: the proof, made for one call and a short time, that the runtime wants it made."""

from collections.abc import Mapping

from nanovm_core.canonical import Json, digest, encode
from nanovm_core.errors import RefusedError
from nanovm_core.messages import Effect, Warrant


def binding(run: str, program: str, effect: Effect) -> dict[str, Json]:
    """Everything a warrant is bound to; an adapter builds it from the call in its hands."""
    return {
        "run": run,
        "program": program,
        "step": effect.step,
        "tool": effect.tool,
        "key": effect.key,
        "args": dict(effect.args),
    }


def mint(binding: Mapping[str, Json], *, at_ms: int, ttl_ms: int) -> Warrant:
    """Make the warrant for one call: run, program, step, tool, key and exact arguments."""
    expires_ms = at_ms + ttl_ms
    return Warrant(id=_warrant_id(binding, expires_ms), expires_ms=expires_ms)


def authorize(warrant: Warrant | None, binding: Mapping[str, Json], at_ms: int) -> None:
    """Return if this warrant covers exactly this call now.

    Raises:
        RefusedError: CAP-020 where it is absent or for another call, CAP-021 where it is late.
    """
    if warrant is None or warrant.id != _warrant_id(binding, warrant.expires_ms):
        raise RefusedError("CAP-020", "The call in hand is not the one the warrant was made for.")
    if at_ms >= warrant.expires_ms:
        raise RefusedError("CAP-021", "The warrant ran out before the call was made.")


def _warrant_id(binding: Mapping[str, Json], expires_ms: int) -> str:
    return digest(b"nanovm/warrant/v1\0", encode({**binding, "expires_ms": expires_ms}))
