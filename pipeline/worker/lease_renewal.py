"""The keeper: while an effect is under way, its worker's lease is renewed by one thread."""

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connection

from pipeline.clock import now_ms, sleep_ms
from pipeline.store import leases

log = logging.getLogger(__name__)


class Keeper:
    """Renews the leases of the effects that are under way in this process.

    A lease is renewed up to its effect's deadline, where there is one, and no further: a worker
    that hangs loses its run in the end, and the kernel decides about the effect that took so long.
    """

    def __init__(self) -> None:
        self._busy = threading.Condition()
        self._kept: dict[str, tuple[str, int]] = {}  # by holder: the run, and up to when
        self._beats = False

    @contextmanager
    def keeping(self, run_id: str, holder: str, until_ms: int) -> Iterator[None]:
        """Keep a lease for the length of the block, which never waits for a renewal."""
        with self._busy:
            self._kept[holder] = (run_id, until_ms)
            if not self._beats:
                self._beats = True
                threading.Thread(target=self._beat_on, name="keeper", daemon=True).start()
            self._busy.notify()
        try:
            yield
        finally:
            with self._busy:
                self._kept.pop(holder, None)  # two workers under one lease are a guard's absence

    def beat(self) -> None:
        """Renew every lease that is kept and whose effect still has time.

        One that was given back meanwhile is nobody's of that name: its renewal changes nothing.
        """
        with self._busy:
            kept = [*self._kept.items()]
        at_ms = now_ms()
        for holder, (run_id, until_ms) in kept:
            if not until_ms or at_ms < until_ms:
                _renewed(run_id, holder)

    def _beat_on(self) -> None:
        while True:
            with self._busy:
                self._busy.wait_for(lambda: self._kept)
            sleep_ms(leases.BEAT_MS)
            try:
                self.beat()
            finally:
                connection.close()  # this thread's own, which is needed seldom


def _renewed(run_id: str, holder: str) -> None:
    """Renew one lease; that it fails takes none of the others."""
    try:
        leases.renew(run_id, holder)
    except Exception as error:  # noqa: BLE001 - a lease that runs out does no harm
        log.warning("a lease was not renewed: %s", type(error).__name__)


keeper = Keeper()
