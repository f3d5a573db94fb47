"""How an effect can go wrong: come again, known not to have happened, or nobody can tell."""

from nanovm_core.errors import NanovmError


class EffectError(NanovmError):
    """An effect did not succeed. The text is for people and holds no personal value."""


class TransientError(EffectError):
    """Try again later, under the same key."""


class PermanentError(EffectError):
    """It is known not to have happened, and asking again gives the same answer."""


class OutcomeUnknownError(EffectError):
    """Nobody can tell whether it happened: a person decides."""


class ErasureRefusedError(NanovmError):
    """Nothing was erased; the text says what to do first."""
