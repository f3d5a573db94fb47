"""Quotas: what a workspace and a client's address may ask for. Everything sent is counted."""

import math
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any
from uuid import UUID

from django.conf import settings
from django.urls import ResolverMatch
from django.utils.crypto import salted_hmac

from dashboard.web.counters import RateCharge, charge_all
from engine.ops import disk
from engine.queries import storage_used

SALT = "nanovm.dashboard.quotas"
MINUTE_S = 60
HOUR_S = 3_600
MEGABYTE = 1_000_000


@dataclass(frozen=True, slots=True)
class Quota:
    """How much is allowed at once and per period, by workspace and by address."""

    name: str
    what: str  # as a sentence goes on after "may": its own figure is {most}
    workspace: int
    address: int
    period_s: int = MINUTE_S
    unit: int = 1  # how many are one of those that the sentence speaks of

    def said(self, most: int, who: str) -> str:
        """The rule in words."""
        return f"{who} may {self.what.format(most=f'{most // self.unit:,}')}."


# A press a second; each may be an event that is sealed for good.
COMMANDS = Quota("commands", "send {most} forms a minute", workspace=60, address=600)
# Each is about a second of a core.
RUNS = Quota("runs", "start {most} runs a minute", workspace=20, address=120)
# One of 2,000 lines keeps every other writer waiting for about a second.
IMPORTS = Quota(
    "imports", "check or import {most} supplier files a minute", workspace=12, address=24
)
# A check a pause in typing, four a second; nothing is stored.
CHECKS = Quota("checks", "make {most} checks a minute", workspace=240, address=960)
# Four for each of the payments that all runs of a full minute make.
DELIVERIES = Quota("deliveries", "send {most} webhooks a minute", workspace=1_200, address=1_200)
# Of agents, polls of their answers included: twenty a second.
CALLS = Quota("calls", "send {most} requests a minute to the gate", workspace=1_200, address=2_400)
COPIES = Quota(
    "copies",
    "ask for {most} copies without a check in five minutes",
    period_s=5 * MINUTE_S,
    workspace=6,  # each is some ten seconds of all there is
    address=20,
)
UPLOADED = Quota(
    "uploaded",
    "send {most} MB an hour",
    period_s=HOUR_S,
    workspace=100 * MEGABYTE,  # ten of the largest documents
    address=500 * MEGABYTE,
    unit=MEGABYTE,
)
# Live pages that are open at once: each is a task of the web process and some memory.
SOCKETS_MAX = {"workspace": 20, "address": 120}
STORED_BYTES_MAX = 200 * MEGABYTE  # of one workspace: some thousand runs

# What a request to an address is besides a command. A test goes through all addresses.
STARTS = {"runs", "demo", "plain", "again", "foreign"}
STARTS |= {"arena_start", "arena_poison", "gallery_fire"}
COPIED = {"unguarded", "gallery_unguarded"}
INSTEAD = {"arena_check": CHECKS, "stripe_webhook": DELIVERIES, "gate": CALLS}
FILLING = {"gate:call", "gate:mcp"}  # they store a run


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """Why nothing was done, in sentences, and in how many seconds to try again; 0: not by time."""

    title: str
    text: str
    wait_s: int = 0
    unreadable: bool = False

    @property
    def status(self) -> int:
        """Bad Request, Too Many Requests, or Insufficient Storage."""
        if self.unreadable:
            return 400
        return 429 if self.wait_s else 507

    @property
    def whole(self) -> str:
        """All of it, where there is one line."""
        return f"{self.title}. {self.text}"


class FullError(Exception):
    """The request is over a quota."""

    def __init__(self, refused: Refused) -> None:
        super().__init__(refused.whole)
        self.refused = refused


def refused(
    match: ResolverMatch, workspace: UUID | None, address: str, length: int
) -> Refused | None:
    """Count a request that was sent, before anything is done; None where it may go on."""
    found = [*quotas_of(match)]
    fills = {RUNS, IMPORTS} & {*found} or match.view_name in FILLING
    used = _stored if match.app_name else storage_used.bytes_of
    without_room = _without_room(workspace, used) if fills else None
    if without_room or not settings.NANOVM_QUOTA_FACTOR:
        return without_room
    size = min(length, settings.UPLOAD_SIZE_BYTES_MAX)
    return _over([*((quota, 1) for quota in found), (UPLOADED, size)], workspace, address)


def take_runs(workspace: UUID | None, address: str, runs: int) -> None:
    """Count the runs that a form starts beyond the first.

    Raises:
        FullError: so many may not be started now.
    """
    if runs and settings.NANOVM_QUOTA_FACTOR:
        full = _over([(RUNS, runs)], workspace, address)
        if full is not None:
            raise FullError(full)


def quotas_of(match: ResolverMatch) -> Iterator[Quota]:
    """What a request to this address counts as, besides its bytes."""
    yield INSTEAD.get(match.app_name or match.url_name or "", COMMANDS)
    if match.url_name in STARTS or (match.url_name, match.kwargs.get("number")) == ("tour", 1):
        yield RUNS
    if match.url_name in ("supplier_preview", "supplier_import"):
        yield IMPORTS
    if match.url_name in COPIED:
        yield COPIES


def most_of(quota: Quota) -> Mapping[str, int]:
    """The limits as they are set, by whose they are."""
    factor = settings.NANOVM_QUOTA_FACTOR
    return {"workspace": quota.workspace * factor, "address": quota.address * factor}


WHO = {"workspace": "One workspace", "address": "All visitors from your network address together"}


def _over(costs: list[tuple[Quota, int]], workspace: UUID | None, address: str) -> Refused | None:
    owners = {"workspace": workspace, "address": address}
    asked = [
        (quota, most_of(quota)[whose], whose, _charge(quota, most_of(quota)[whose], owner, cost))
        for quota, cost in costs
        for whose, owner in owners.items()
        if owner
    ]
    full = charge_all([charge for *_, charge in asked])
    if full is None:
        return None
    (quota, most, whose, _), wait_s = asked[full[0]], max(1, math.ceil(full[1]))
    again = f"Nothing was changed. Try again in {_seconds(wait_s)}."
    text = f"{quota.said(most, WHO[whose])} {again}"
    return Refused(title="Limit reached", text=text, wait_s=wait_s)


def _charge(quota: Quota, most: int, owner: Any, cost: int) -> RateCharge:
    """What is taken from an owner's counter; it is named by a digest, not by the address."""
    digest = salted_hmac(SALT, str(owner), algorithm="sha256").hexdigest()[:32]
    return RateCharge(key=f"{quota.name}:{digest}", most=most, period_s=quota.period_s, cost=cost)


def _stored(workspace: UUID) -> int:
    """What a log stored a minute ago or later: its agents call twenty times a second."""
    return _stored_in(workspace, int(time.monotonic() / MINUTE_S))


@lru_cache(maxsize=1_024)
def _stored_in(workspace: UUID, _minute: int) -> int:
    return storage_used.bytes_of(workspace)


def _without_room(workspace: UUID | None, used: Callable[[UUID], int]) -> Refused | None:
    """Whether there is no room for another document: on the disk, or in this workspace."""
    if disk.room().is_full:
        text = "The server's disk is nearly full, so it takes no new documents. Nothing was changed"
        return Refused(title="No room", text=f"{text}; runs under way go on. Try again later.")
    most = STORED_BYTES_MAX * settings.NANOVM_QUOTA_FACTOR
    if not most or workspace is None or used(workspace) < most:
        return None
    text = f"One workspace may store {most // MEGABYTE:,} MB. Nothing was changed. Erase the"
    return Refused(title="No room", text=f"{text} personal data of runs that you do not need.")


def _seconds(wait_s: int) -> str:
    if wait_s > 2 * MINUTE_S:
        return f"{math.ceil(wait_s / MINUTE_S)} minutes"
    return f"{wait_s} second{'' if wait_s == 1 else 's'}"
