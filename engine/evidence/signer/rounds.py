"""Which logs are due to be signed, and the rounds in which the signer's process signs them."""

import logging
from collections.abc import Iterator
from uuid import UUID

from django.db import OperationalError, connection
from django.db.models import F, OuterRef, Subquery
from django.db.models.functions import Coalesce

from engine.evidence import published
from engine.evidence.signer.checkpoints import NO_EXTENSION, REWRITTEN, checkpoint, signed_sizes
from engine.models import Checkpoint, Envelope, Workspace
from engine.store import logs, records, tree
from nanovm_core.errors import VerificationError

POLL_MS = 250
LOOK_BACK_MS = 60_000  # how often all that was ever signed is looked for in the database
LOOK_AT_MAX = 50  # of these a round: a run that ended does not wait for all of them
AGAIN_MS = 60_000  # a refused log is looked at again after this

log = logging.getLogger(__name__)


def due(at_ms: int) -> list[UUID]:
    """The logs to sign now: a run ended, an erasure is done, nothing was added for two seconds,
    or an envelope waits for a minute.
    """
    newest = Checkpoint.objects.filter(workspace=OuterRef("pk")).order_by("-size")
    signed = Coalesce(Subquery(newest.values("size")[:1]), 0)
    open_logs = Workspace.objects.filter(successor=None)  # a restore closes one for good
    grown = open_logs.annotate(signed=signed).filter(size__gt=F("signed"))
    found = grown.order_by("id").values_list("id", "signed")
    return [workspace for workspace, size in found if _is_due(workspace, size, at_ms)]


class Rounds:
    """The signer's work, a round at a time: many runs' ends make one checkpoint of their log."""

    def __init__(self) -> None:
        self._looked_back_ms = 0
        self._to_look_at: list[UUID] = []
        self._refused_ms: dict[UUID, int] = {}

    def round(self, at_ms: int) -> int:
        """Sign what is due, and say how many logs were.

        A refused log holds no other up. A database that is away is tried again next round.
        """
        try:
            wanted = due(at_ms)
            if at_ms - self._looked_back_ms >= LOOK_BACK_MS:
                first, self._looked_back_ms = self._looked_back_ms == 0, at_ms
                self._to_look_at = [*_gone_back(all_of_them=first)]
            wanted += self._to_look_at[:LOOK_AT_MAX]
            del self._to_look_at[:LOOK_AT_MAX]
            return sum(self._sign(workspace, at_ms) for workspace in dict.fromkeys(wanted))
        except OperationalError as error:
            log.warning("The signer waits for the database: %s", error)
            connection.close()
            return 0

    def _sign(self, workspace: UUID, at_ms: int) -> bool:
        if at_ms < self._refused_ms.get(workspace, 0) + AGAIN_MS:
            return False
        try:
            checkpoint(workspace)
        except VerificationError as refusal:  # ``published`` records it
            log.error("The signer refuses to sign the log of %s: %s", workspace, refusal)  # noqa: TRY400
            self._refused_ms[workspace] = at_ms
            return False
        self._refused_ms.pop(workspace, None)
        return True


def _is_due(workspace: UUID, signed: int, at_ms: int) -> bool:
    unsigned = Envelope.objects.filter(workspace=workspace, seq__gte=signed)
    if unsigned.filter(kind__in=published.URGENT).exists():
        return True
    places = unsigned.order_by("seq").values_list("bytes", flat=True)
    oldest, newest = places.first(), places.last()
    if oldest is None or newest is None:
        return True  # the tree is said to be larger and nothing is there: let the signer see
    waits = ((oldest, published.UNSIGNED_MS_MAX), (newest, published.QUIET_MS))
    sealed = ((records.body_of(data).get("at_ms"), age_ms) for data, age_ms in waits)
    return not all(isinstance(ms, int) and at_ms - age < ms <= at_ms for ms, age in sealed)


def _gone_back(*, all_of_them: bool) -> Iterator[UUID]:
    """The logs that went back behind what was signed, and those whose refusal may be over."""
    refused = {each.origin for each in published.unsigned_logs()}
    for origin, size in sorted(signed_sizes().items()):
        workspace = Workspace.objects.filter(origin=origin).values_list("id", flat=True).first()
        there = min(tree.size(workspace), logs.end(workspace)) if workspace else 0
        if workspace is None:
            gone = f"The log of {size} signed envelopes is gone. {REWRITTEN}"
            log.error("The signer does not find the log %s: %s", origin, gone)
            published.report(origin, VerificationError(NO_EXTENSION, gone, at=0))
        elif all_of_them or origin in refused or there < size:
            yield workspace
