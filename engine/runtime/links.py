"""Links that hand one right on: sealed when they are made, used and revoked.

The server keeps the SHA-256 of a link's secret. What counts is the sealed word: a row that says
anything else than the log's own chain grants nothing.
"""

import hashlib
from base64 import urlsafe_b64encode
from collections.abc import Iterator, Mapping
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import F, QuerySet

from engine.clock import now_ms
from engine.entropy import random_bytes, uuid7
from engine.models import Envelope, Link
from engine.runtime import chains
from engine.store import records
from nanovm_core.core.envelope import LOG_RUN, canonical_hash

VIEW, VERDICT, AUDIT, APPROVE, ERASE = GRANTS = ("view", "verdict", "audit", "approve", "erase")
KIND = "capability"
MADE, USED, REVOKED = "link_made", "link_used", "link_revoked"
# Why a link grants nothing.
UNKNOWN, EXPIRED, ENDED, SPENT = "unknown", "expired", "revoked", "spent"
CLOSED, CHANGED, WORN, FULL = "closed", "changed", "worn", "full"

SECRET_BYTES = 24  # 192 bits: nobody finds one by trying
DAY_MS = 24 * 3_600_000
LIFE_MS_MAX = 30 * DAY_MS
KEPT_MS = 30 * DAY_MS  # that an ended link stays in its owner's list
OPEN_MAX = 100  # of one workspace at once: each request of a holder reads them
USES_MAX = 1_000  # of one link: each is an event that is sealed for good


class LinkError(Exception):
    """A link grants nothing, or cannot be made; ``why`` is one of the words above."""

    def __init__(self, why: str) -> None:
        super().__init__(f"This link grants nothing: {why}.")
        self.why = why


def make(
    workspace: UUID, grants: str, target: str, *, until_ms: int, narrowed: bool, actor: str
) -> tuple[Link, str]:
    """Make a link to ``target`` (the id of a run, an attack or a supplier, or the log's name).

    The secret is returned once and stored nowhere. The caller has checked that the target is the
    workspace's own. ``narrowed``: its holder sees no personal value.

    Raises:
        LinkError: FULL, with ``OPEN_MAX`` open links.
        ValueError: for a kind that is none, or an end that is past or too far away.
        RefusedError: LOG-009, where a restore closed the log.
    """
    if grants not in GRANTS or not 0 < until_ms - now_ms() <= LIFE_MS_MAX:
        raise ValueError("A link has one of the kinds, and ends within 30 days.")
    secret = urlsafe_b64encode(random_bytes(SECRET_BYTES)).decode()
    with transaction.atomic():
        records.lock_log(workspace)
        rows = of_workspace(workspace).filter(revoked_ms=None, until_ms__gt=now_ms())
        if rows.count() >= OPEN_MAX:
            raise LinkError(FULL)
        link = Link(
            id=uuid7(),
            workspace_id=workspace,
            grants=grants,
            target=target,
            narrowed=narrowed,
            secret=hash_of(secret),
            until_ms=until_ms,
        )
        link.sealed_n = _seal(link, MADE, actor, narrowed=narrowed, secret=link.secret)
        link.save(force_insert=True)
    return link, secret


def read(secret: str) -> Link:
    """The link of a secret, as it is sealed.

    Raises:
        LinkError: where there is none, or it grants nothing (any more).
    """
    return standing(secret=hash_of(secret))


def standing(**which: UUID | str) -> Link:
    """The same by its ``id``, for a browser that used it before, or by its secret's hash."""
    found = Link.objects.select_related("workspace").filter(**which).first()
    if found is None:
        raise LinkError(UNKNOWN)
    return checked(found)


def checked(link: Link) -> Link:
    """The link, where its row says what is sealed and nothing ended it. Errors as of ``read``."""
    if link.workspace.successor_id is not None:  # after a restore: what was revoked stays so
        raise LinkError(CLOSED)
    if link.revoked_ms is not None:
        raise LinkError(ENDED)
    if link.until_ms <= now_ms():
        raise LinkError(EXPIRED)
    said = [*sealed(link)]  # the log is read last: it may be long
    if not said or not is_as_made(link, said[0]):
        raise LinkError(CHANGED)
    if any(each["event"] == REVOKED for each in said):
        raise LinkError(ENDED)
    link.spent_ms = next((each["at_ms"] for each in said if "outcome" in each), None)
    return link


def use(link: Link) -> Link:
    """Seal that somebody uses a link, whom nobody knows; errors as of ``read``.

    Raises:
        LinkError: WORN too, after ``USES_MAX`` uses.
    """
    with transaction.atomic():
        found = locked(link)
        if found.uses >= USES_MAX:
            raise LinkError(WORN)
        _seal(found, USED, actor_of(found))
        Link.objects.filter(id=found.id).update(uses=F("uses") + 1, used_ms=now_ms())
    return found


def locked(link: Link) -> Link:
    """The link as it is now under its log's lock, in the caller's transaction. Errors as above."""
    records.lock_log(link.workspace_id)
    return standing(id=link.id)


def acting(link: Link) -> Link:
    """The same, for the act that a link is for.

    Raises:
        LinkError: SPENT too, where it was done: a link to approve is for one act.
    """
    found = locked(link)
    if found.spent_ms is not None:
        raise LinkError(SPENT)
    return found


def spend(link: Link, outcome: str) -> None:
    """Seal that the act of a link was done. In the transaction of the act, after ``acting``."""
    _seal(link, USED, actor_of(link), outcome=outcome)
    now = now_ms()
    Link.objects.filter(id=link.id).update(uses=F("uses") + 1, used_ms=now, spent_ms=now)


def revoke(workspace: UUID, link_id: UUID, *, actor: str) -> bool:
    """End a link of this workspace; False where it has none of that id that is open."""
    with transaction.atomic():
        records.lock_log(workspace)
        found = of_workspace(workspace).filter(id=link_id, revoked_ms=None).first()
        if found is None:
            return False
        _seal(found, REVOKED, actor)
        Link.objects.filter(id=found.id).update(revoked_ms=now_ms())
    return True


def of_workspace(workspace: UUID) -> QuerySet[Link]:
    """A workspace's links, the newest first, as their rows say."""
    return Link.objects.filter(workspace=workspace).order_by("-id")


def actor_of(link: Link) -> str:
    """Who acts by a link, as the log names them."""
    return f"link-{link.id}"


def hash_of(secret: str) -> str:
    """What is stored of a secret. It is drawn with 192 bits, so one plain hash is enough."""
    return hashlib.sha256(secret.encode("utf-8", "replace")).hexdigest()


def forget_old() -> None:
    """Delete the rows of links that ended 30 days ago; what was sealed of them stays."""
    Link.objects.filter(until_ms__lt=now_ms() - KEPT_MS).delete()


def sealed(link: Link) -> Iterator[Mapping[str, Any]]:
    """What the log's own chain says of a link, its making first.

    Nothing where that chain is not whole from there to the end that the log's row names: an
    event that was taken out may be the one that revoked the link.
    """
    rows = Envelope.objects.filter(
        workspace=link.workspace_id, run=LOG_RUN, n__gte=link.sealed_n
    ).order_by("n")
    found, hashes = [], [""]
    for due, (n, stored, leaf) in enumerate(rows.values_list("n", "bytes", "hash"), link.sealed_n):
        data = bytes(stored)
        body = records.body_of(data)
        is_next = hashes[-1] in ("", body.get("prev"))
        if n != due or body.get("n") != n or canonical_hash(data) != leaf or not is_next:
            return
        hashes.append(leaf)
        if body.get("kind") == KIND and body.get("link") == str(link.id):
            found.append(body)
    if link.workspace.log_head in hashes:
        yield from found


def is_as_made(link: Link, said: Mapping[str, Any]) -> bool:
    """Whether the row of a link grants what this event made, and nothing else."""
    granted = {**_named(link), "narrowed": link.narrowed, "secret": link.secret}
    there = {name: said.get(name) for name in granted}
    return said.get("event") == MADE and said.get("n") == link.sealed_n and there == granted


def _named(link: Link) -> dict[str, object]:
    said = {"link": str(link.id), "grants": link.grants, "of": link.target}
    return {**said, "until_ms": link.until_ms}


def _seal(link: Link, event: str, actor: str, **more: object) -> int:
    body = {"event": event, **_named(link), **more}
    return chains.seal(link.workspace_id, KIND, body, actor=actor)
