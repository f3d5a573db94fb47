"""How an effect fails: to be retried, known not to have happened, or with unknown outcome."""

import traceback

from nanovm_core.errors import NanovmError


def place_of(error: BaseException) -> str:
    """Where an error was raised; its message may quote what was sent, so logs have the place."""
    frames = traceback.extract_tb(error.__traceback__)
    return f"{frames[-1].filename}:{frames[-1].lineno}" if frames else "?"


class EffectError(NanovmError):
    """An effect did not succeed. The text is for people and holds no personal value."""


class TransientError(EffectError):
    """Try again later, under the same key: it may have happened, or be happening now."""


class NotSentError(TransientError):
    """This try is known to have done nothing; so try again later, under the same key."""


class HaltedError(EffectError):
    """Nothing was begun, because the agent begins nothing now: it is done once the agent runs."""


class FailedForNowError(EffectError):
    """It is known not to have happened, and another attempt may succeed, under another key.

    How many attempts there are, and how long each waits, the program says.
    """


class PermanentError(EffectError):
    """It is known not to have happened, and a retry would give the same answer."""


class OutcomeUnknownError(EffectError):
    """The outcome is unknown: a person decides."""


class BrokenPartError(OSError):
    """A part of this installation is away or damaged, which the text names, with what to do.

    What needs it is not done, and stays owed: it is tried again until the part is mended.
    """


class ErasureRefusedError(NanovmError):
    """Nothing was erased; the text says what to do first."""
