"""Where the time of a run goes: measured at the ports, on a monotonic clock, and only when asked.

These are diagnostics. They are sealed nowhere, and no decision reads them.
"""

from collections import defaultdict
from collections.abc import Iterator
from contextlib import ContextDecorator, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

from engine.clock import monotonic_ns

# The process that reads PDFs; the model; the kernel's decisions; storing them (the wait for
# others' in a shared commit included); requests to Stripe; secrets and their keys.
CHILD, MODEL, GATE, COMMIT, STRIPE, VAULT = "child", "model", "gate", "commit", "stripe", "vault"
PARTS = (CHILD, MODEL, GATE, COMMIT, STRIPE, VAULT)
REST, WHOLE = "rest", "whole"
BETWEEN = ""  # the step of what belongs to none


@dataclass(slots=True)
class Recording:
    """Nanoseconds by step and part. A part that is measured within another is not counted twice."""

    spent_ns: dict[tuple[str, str], int] = field(default_factory=lambda: defaultdict(int))
    whole_ns: int = 0
    step: str = BETWEEN
    within_ns: int = 0  # of what is measured now, what went to parts within it

    def steps(self) -> dict[str, int]:
        """Microseconds by ``step/part``, without time outside all steps."""
        measured = self.spent_ns.items()
        return {f"{step}/{part}": ns // 1000 for (step, part), ns in measured if step != BETWEEN}

    def parts_ms(self) -> dict[str, float]:
        """Milliseconds by part; with the rest they add up to the whole, to the microsecond."""
        spent = dict.fromkeys(PARTS, 0)
        for (_, part), nanoseconds in self.spent_ns.items():
            if part in spent:
                spent[part] += nanoseconds
        micros = {part: nanoseconds // 1000 for part, nanoseconds in spent.items()}
        whole = self.whole_ns // 1000
        micros |= {REST: whole - sum(micros.values()), WHOLE: whole}
        return {part: each / 1000 for part, each in micros.items()}


_now: ContextVar[Recording | None] = ContextVar("recording", default=None)


@contextmanager
def recording() -> Iterator[Recording]:
    """Measure what this thread does in the block; within another recording, it is that one."""
    outer = _now.get()
    if outer is not None:
        yield outer
        return
    began, made = monotonic_ns(), Recording()
    token = _now.set(made)
    try:
        yield made
    finally:
        made.whole_ns = monotonic_ns() - began
        _now.reset(token)


class spent(ContextDecorator):  # noqa: N801 - it is used as a function
    """Count the time of the block as this part's, where a recording is made; also a decorator."""

    __slots__ = ("_began", "_made", "_outer_ns", "_part")

    def __init__(self, part: str) -> None:
        self._part = part

    def _recreate_cm(self) -> "spent":
        return spent(self._part)

    def __enter__(self) -> None:
        self._made = made = _now.get()
        if made is not None:
            self._began, self._outer_ns = monotonic_ns(), made.within_ns
            made.within_ns = 0

    def __exit__(self, *_: object) -> None:
        made = self._made
        if made is not None:
            took = monotonic_ns() - self._began
            made.spent_ns[made.step, self._part] += took - made.within_ns
            made.within_ns = self._outer_ns + took


@contextmanager
def of_step(step: str) -> Iterator[None]:
    """Count what is measured in the block as this step's, and the rest of the block too."""
    made = _now.get()
    if made is None:
        yield
        return
    outer, made.step = made.step, step
    try:
        with spent(REST):
            yield
    finally:
        made.step = outer
