"""The kernel's error families, sorted by what the catcher must do."""


class NanovmError(Exception):
    """An error with a stable ``code`` for the audit log and a ``text`` for people.

    Neither ever carries a secret: both may be shown, logged and sealed.
    """

    def __init__(self, code: str, text: str) -> None:
        super().__init__(f"{code}: {text}")
        self.code = code
        self.text = text


class ProgramError(NanovmError):
    """The program or the policy is wrong: mend the file. Raised at load time only."""


class ConditionError(NanovmError):
    """A condition does not parse, or does not evaluate; either way it does not hold.

    ``position`` is the 0-based offset in the condition's text, where one is known.
    """

    def __init__(self, code: str, text: str, position: int | None = None) -> None:
        super().__init__(code, text)
        self.position = position


class CanonicalError(NanovmError):
    """A value or some bytes lie outside the canonical profile."""


class RefusedError(NanovmError):
    """The kernel says no: audit it, never retry it."""


class VerificationError(NanovmError):
    """The evidence is bad: stop.

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
