"""Lease renewal: one thread renews the leases of the effects that this process is doing."""

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connection

from engine.clock import now_ms, sleep_ms
from engine.store import leases

log = logging.getLogger(__name__)


class LeaseRenewal:
    """Renews the lease of each effect that is under way in this process.

    Renewal stops at the effect's deadline, where there is one: a worker that hangs loses its run
    then, and the kernel decides about the effect that took so long.
    """

    def __init__(self) -> None:
        self._busy = threading.Condition()
        self._leases: dict[str, tuple[str, int]] = {}  # by holder: the run, and its deadline
        self._is_running = False

    @contextmanager
    def renewing(self, run_id: str, holder: str, until_ms: int) -> Iterator[None]:
        """Keep a lease renewed for the length of the block, which never waits for a renewal."""
        with self._busy:
            self._leases[holder] = (run_id, until_ms)
            if not self._is_running:
                self._is_running = True
                threading.Thread(target=self._renew_on, name="lease renewal", daemon=True).start()
            self._busy.notify()
        try:
            yield
        finally:
            with self._busy:  # two workers may share a lease where a guard was removed
                self._leases.pop(holder, None)

    def renew_all(self) -> None:
        """Renew every lease whose effect still has time.

        A lease that was released meanwhile has another holder: its renewal changes nothing.
        """
        with self._busy:
            leases_now = [*self._leases.items()]
        at_ms = now_ms()
        for holder, (run_id, until_ms) in leases_now:
            if not until_ms or at_ms < until_ms:
                _renew(run_id, holder)

    def _renew_on(self) -> None:
        while True:
            with self._busy:
                self._busy.wait_for(lambda: self._leases)
            sleep_ms(leases.RENEW_EVERY_MS)
            try:
                self.renew_all()
            finally:
                connection.close()  # this thread's own, which is needed seldom


def _renew(run_id: str, holder: str) -> None:
    """Renew one lease; a failure does not keep the others from being renewed."""
    try:
        leases.renew(run_id, holder)
    except Exception as error:  # noqa: BLE001 - a lease that expires does no harm
        log.warning("a lease was not renewed: %s", type(error).__name__)


renewal = LeaseRenewal()
