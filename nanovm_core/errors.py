"""The kernel's error families, sorted by what the catcher must do."""

from typing import Any, NamedTuple


class NanovmError(Exception):
    """An error with a stable ``code`` for the audit log and a ``text`` for people.

    Neither ever carries a secret: both may be shown, logged and sealed. It can be pickled, so a
    worker's error arrives in another process with its type and attributes.
    """

    def __init__(self, code: str, text: str) -> None:
        super().__init__(f"{code}: {text}")
        self.code = code
        self.text = text

    def __reduce__(self) -> tuple[object, ...]:
        return _revived, (type(self), self.args, dict(self.__dict__))


def _revived(
    kind: type[NanovmError], args: tuple[object, ...], state: dict[str, object]
) -> NanovmError:
    """The error that was pickled, without telling it its own text a second time."""
    error = kind.__new__(kind, *args)
    error.__dict__.update(state)
    return error


class Fault(NamedTuple):
    """One thing that is wrong in a file. ``line`` and ``column`` count from 1, where known."""

    code: str
    text: str
    line: int | None = None
    column: int | None = None


class ProgramError(NanovmError):
    """The program or the policy is wrong: correct the file. Raised before anything is decided.

    The text begins with ``line 12, column 3:`` where the place is known. ``faults`` has all
    faults in the order of the file, this one first.
    """

    def __init__(
        self,
        code: str,
        text: str,
        *,
        line: int | None = None,
        column: int | None = None,
        faults: tuple[Fault, ...] = (),
    ) -> None:
        place = "" if line is None else f"line {line}, column {column}: "
        super().__init__(code, place + text)
        self.line = line
        self.column = column
        self.faults = faults or (Fault(code, text, line, column),)


class ConditionError(NanovmError):
    """A condition cannot be parsed or evaluated; either way it does not hold.

    ``position`` is the 0-based offset in the condition's text, where one is known.
    """

    def __init__(self, code: str, text: str, position: int | None = None) -> None:
        super().__init__(code, text)
        self.position = position


class CanonicalError(NanovmError):
    """A value or some bytes lie outside the canonical profile."""


class RefusedError(NanovmError):
    """The kernel refused: record it, never retry it.

    ``fired``: the rules that suspend the agent beside the refusal of a call. ``account``: the one
    that does not cover an amount; empty where it is about something else.
    """

    fired: tuple[Any, ...] = ()
    account: str = ""


class VerificationError(NanovmError):
    """The evidence is damaged: stop.

    ``at`` is the bad position in the run (its ``n``); ``expected`` and ``found`` are
    64 lower-case hex digits each, or empty where there is nothing to compare.
    """

    def __init__(
        self, code: str, text: str, *, at: int, expected: str = "", found: str = ""
    ) -> None:
        super().__init__(code, text)
        self.at = at
        self.expected = expected
        self.found = found
