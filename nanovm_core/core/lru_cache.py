"""What bytes mean, remembered: the same bytes always mean the same, so they are read once."""

from contextlib import suppress
from typing import Generic, TypeVar

T = TypeVar("T")

KNOWN_MAX = 4096  # meanings that are kept, each of some kilobytes


class Remembered(Generic[T]):
    """Values by the bytes that they were read from; the oldest are forgotten.

    Values are shared by whoever asks: only what nobody can change may be kept.
    """

    __slots__ = ("_known",)

    def __init__(self) -> None:
        self._known: dict[bytes, T] = {}

    def get(self, data: bytes) -> T | None:
        """The meaning of these bytes, where it is known."""
        return self._known.get(data)

    def keep(self, data: bytes, value: T) -> T:
        """Keep what these bytes mean, and return it."""
        self._known[data] = value
        if len(self._known) > KNOWN_MAX:
            with suppress(KeyError, RuntimeError, StopIteration):  # another thread forgets too
                del self._known[next(iter(self._known))]
        return value
