"""Warrants: the runtime's capability for exactly one call, for a short time."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from nanovm_core.core import signed
from nanovm_core.core.canonical import Json, digest, encode, thaw
from nanovm_core.core.messages import Effect, Warrant
from nanovm_core.errors import CanonicalError, RefusedError

TOKEN = "nanovm-warrant/1"  # noqa: S105  the version of a token, no secret

OTHER_CALL = "CAP-020"
_NOT_THIS = "This call differs from the one the warrant was issued for."
LATE = "CAP-021"
UNSIGNED = "CAP-022"
REVOKED = "CAP-008"

Binding = Mapping[str, Json]
_DOMAIN = b"nanovm/warrant-token/v1\0"
_BOUND = ("run", "program", "step", "tool", "key", "args")
_FIELDS = {*_BOUND, "v", "expires_ms", "grants"}
_ORIGINS = "origins"  # bound where the call's tool or grant demands one


class _Token(NamedTuple):
    binding: dict[str, Json]
    expires_ms: int
    grants: frozenset[str]


def binding(run: str, program: str, effect: Effect) -> dict[str, Json]:
    """What a warrant is bound to; an adapter builds it from its own call."""
    call: dict[str, Json] = {"step": effect.step, "tool": effect.tool, "key": effect.key}
    if effect.origins:
        call[_ORIGINS] = thaw(effect.origins)
    return {"run": run, "program": program, **call, "args": thaw(effect.args)}


def mint(binding: Binding, *, at_ms: int, ttl_ms: int) -> Warrant:
    """Make the warrant for one call."""
    expires_ms = at_ms + ttl_ms
    return Warrant(id=_warrant_id(binding, expires_ms), expires_ms=expires_ms)


def authorize(warrant: Warrant | None, binding: Binding, at_ms: int) -> None:
    """Return if this warrant, from the run's own snapshot, covers exactly this call now.

    Raises:
        RefusedError: CAP-020 absent or for another call, CAP-021 late.
    """
    if warrant is None or warrant.id != _id_in_hand(binding, warrant.expires_ms):
        raise RefusedError(OTHER_CALL, _NOT_THIS)
    _check_time(warrant.expires_ms, at_ms)


def sign(
    warrant: Warrant, binding: Binding, key: Ed25519PrivateKey, *, grants: Iterable[str] = ()
) -> bytes:
    """The warrant as a signed token, which ``check`` verifies with the public key alone.

    Revoking one of ``grants``, by id, revokes the token. It holds the call's arguments and is as
    confidential as they are.

    Raises:
        RefusedError: CAP-020, and nothing is signed, where the warrant is for another call.
    """
    if warrant.id != _id_in_hand(binding, warrant.expires_ms):
        raise RefusedError(OTHER_CALL, _NOT_THIS)
    rests_on: list[Json] = [*sorted(set(grants))]
    value = {**binding, "v": TOKEN, "expires_ms": warrant.expires_ms, "grants": rests_on}
    return signed.sign(_DOMAIN, value, key)


def check(
    token: bytes,
    binding: Binding,
    public_key: Ed25519PublicKey,
    *,
    at_ms: int,
    revoked: frozenset[str] = frozenset(),
) -> None:
    """Return if the token of this key's runtime covers exactly this call now.

    An adapter builds ``binding`` from its own call, never from the token.
    ``revoked``: ids of warrants and grants. A repeat passes too: the idempotency key makes both one
    payment.

    Raises:
        RefusedError: CAP-022 not this key's, CAP-020 for another call, CAP-021 late, CAP-008
            revoked.
    """
    said = _read(token, public_key)
    warrant_id = _warrant_id(said.binding, said.expires_ms)
    if warrant_id != _id_in_hand(binding, said.expires_ms):
        raise RefusedError(OTHER_CALL, "This call differs from the one the token was signed for.")
    _check_time(said.expires_ms, at_ms)
    if not revoked.isdisjoint({warrant_id, *said.grants}):
        raise RefusedError(REVOKED, "The warrant, or a grant that it depends on, was revoked.")


def _read(token: bytes, public_key: Ed25519PublicKey) -> _Token:
    value = signed.opened(_DOMAIN, token, public_key, code=UNSIGNED)
    if value.keys() - {_ORIGINS} != _FIELDS or value["v"] != TOKEN:
        raise RefusedError(UNSIGNED, f"The token has another format than {TOKEN}.")
    expires_ms, grants = value["expires_ms"], value["grants"]
    if type(expires_ms) is not int or not isinstance(grants, list):
        raise RefusedError(UNSIGNED, "The token's expiry or its list of grants has the wrong type.")
    ids = frozenset(each for each in grants if isinstance(each, str))
    if len(ids) != len(grants):
        raise RefusedError(UNSIGNED, "The token lists a grant twice, or one without a name.")
    bound = {name: value[name] for name in (*_BOUND, _ORIGINS) if name in value}
    return _Token(bound, expires_ms, ids)


def _check_time(expires_ms: int, at_ms: int) -> None:
    if at_ms >= expires_ms:
        raise RefusedError(LATE, "The warrant expired before the call was made.")


def _id_in_hand(binding: Binding, expires_ms: int) -> str:
    """The id of a warrant for this call; CAP-020 without a canonical form."""
    try:
        return _warrant_id(binding, expires_ms)
    except CanonicalError as error:
        raise RefusedError(
            OTHER_CALL, f"No warrant can cover these arguments: {error.text}."
        ) from error


def _warrant_id(binding: Binding, expires_ms: int) -> str:
    return digest(b"nanovm/warrant/v1\0", encode({**binding, "expires_ms": expires_ms}))
