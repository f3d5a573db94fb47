"""Where Stripe's record differs from a log: as observations seal it, and as a person checks it."""

from collections.abc import Mapping
from contextlib import suppress
from hashlib import sha256
from typing import Any, NamedTuple
from uuid import UUID

from django.db import transaction

from engine.models import Run, Workspace
from engine.runtime import chains
from engine.store import actors, ledgers, records, sql
from nanovm_core.core.canonical import encode
from pipeline.labels import CHARGE
from pipeline.steps.reasons import REASONS
from reader.currencies import shown

ACTOR = "controller"
CODES = NOT_ALLOWED, MISSING, OTHER = "REC-001", "REC-002", "REC-003"
AGREES, CHECKED = "agrees", "checked"  # how a difference is closed
SHOWN_MAX = 200
LOGS_MAX = 10_000  # that one process remembers
MARK = b'"difference":'  # in the bytes of an observation that is about one
_FROM = (
    "SELECT n, hash, seq, bytes FROM pipeline_envelope WHERE run = 'log' AND workspace_id = %s"
    " AND n >= %s AND kind = 'observation' ORDER BY n"
)
Side = Mapping[str, str | int]  # what a log or Stripe says of a payment; no free text, no ids


class Difference(NamedTuple):
    """What a log and Stripe say of one payment. Amounts are in minor units, times in UTC ms.

    ``payment``: SHA-256 of Stripe's id. ``run``: UUID of a run of ours, or empty. ``n``: of its
    event on the log's own chain. ``closed``: empty while it is open; AGREES, or the person who
    checked it. ``is_over``: both agreed since.
    """

    code: str
    payment: str
    run: str
    log: Side
    stripe: Side
    n: int = -1
    at_ms: int = 0
    closed: str = ""
    closed_ms: int = 0
    is_over: bool = False
    run_code: str = ""

    @property
    def id(self) -> str:
        """The same for the same payment, as long as Stripe says the same of it."""
        said = sha256(encode({"code": self.code, **self.stripe})).hexdigest()
        return self.payment[:16] + said[:16]

    @property
    def text(self) -> str:
        """The difference in a sentence."""
        return REASONS[self.code].title

    @property
    def log_says(self) -> str:
        """The log's side in words."""
        return _words(self.log, self.stripe) or "no call of a run was allowed for it"

    @property
    def stripe_says(self) -> str:
        """Stripe's side in words."""
        return _words(self.stripe, self.log) or "no such payment"


def of_log(log: Workspace) -> tuple[Difference, ...]:
    """The newest difference of each payment, open ones first, newest first; at most SHOWN_MAX."""
    found = sorted(known(log).values(), key=lambda each: (each.closed != "", -each.at_ms))
    runs = Run.objects.filter(id__in=[each.run for each in found[:SHOWN_MAX] if each.run])
    codes = {str(run): code for run, code in runs.values_list("id", "code")}
    return tuple(each._replace(run_code=codes.get(each.run, "")) for each in found[:SHOWN_MAX])


def open_count(log: Workspace) -> int:
    """How many differences of a log are open."""
    return sum(not each.closed for each in known(log).values())


def seal(log_id: UUID, found: Difference) -> bool:
    """Seal a difference and stop the payer of its log; False where it is known already."""
    with transaction.atomic():
        log = records.lock_log(log_id)
        before = known(log).get(found.payment)
        if before and before.id == found.id and not before.is_over:
            return False
        about = {"difference": found.id, "payment": found.payment, "run": found.run}
        body = {"rule": found.code, "in": about, "out": {"log": found.log, "stripe": found.stripe}}
        opens = f"{found.text}: compare both sides on the page Reconcile."
        chains.observe(log.id, body, actor=ACTOR, agent=_payer(log), opens=opens)
        return True


def check(log_id: UUID, difference: str, actor: str, outcome: str = CHECKED) -> bool:
    """Seal that a person compared both sides; False where it is closed, or changed since.

    ``outcome``: AGREES where the controller finds that both sides say the same again.

    Raises:
        RefusedError: LOG-009, a restore closed the log.
    """
    with transaction.atomic():
        log = records.lock_log(log_id)
        left = {each.id: each for each in known(log).values() if not each.is_over}
        waits = {each.id for each in left.values() if not each.closed}
        if difference not in (waits if outcome == CHECKED else left):
            return False
        about = {"difference": difference, "payment": left[difference].payment}
        closes = CODES if waits == {difference} else ()
        body = {"outcome": outcome, "in": about}
        chains.observe(log.id, body, actor=actor, agent=_payer(log), closes=closes)
        return True


def _payer(log: Workspace) -> str:
    """The agent that a difference of a log stops: in the house log, which has processes, none."""
    return "" if ledgers.is_of_house(log.id) else actors.of_tool(CHARGE)


_KNOWN: dict[UUID, tuple[int, str, dict[str, Difference]]] = {}  # n, hash, by payment


def known(log: Workspace) -> Mapping[str, Difference]:
    """The newest difference of each payment, by payment. A process reads on from where it was."""
    n, leaf, found = _KNOWN.get(log.id, (-1, "", {}))
    rows = sql.execute(_FROM, (sql.key(log.id), max(n, 0)))
    if n >= 0 and [row[:2] for row in rows[:1]] != [(n, leaf)]:  # a backup was put back
        n, found = -1, {}
        rows = sql.execute(_FROM, (sql.key(log.id), 0))
    newer, found = rows[1:] if n >= 0 else rows, {**found}
    for n, leaf, seq, data in newer:  # noqa: B007 - the last is where it reads on
        if MARK in (data := sql.blob(data)):
            with suppress(AttributeError, KeyError, TypeError, ValueError):  # not the controller's
                _take(found, ledgers.believed(log, seq, data, leaf) or {})
    if len(_KNOWN) < LOGS_MAX or log.id in _KNOWN:
        _KNOWN[log.id] = n, leaf, found
    return found


def _take(found: dict[str, Difference], body: Mapping[str, Any]) -> None:
    """Take in an observation: of a difference, or of what closes one."""
    about, at_ms = body["in"], int(body["at_ms"])
    payment = str(about["payment"])
    before = found.get(payment)
    if (code := body.get("rule")) in CODES:
        sides = body["out"]["log"], body["out"]["stripe"]
        new = Difference(code, payment, str(about["run"]), *sides, int(body["n"]), at_ms)
        if new.id and new.log_says and new.stripe_says:  # each can be shown
            found[payment] = new
    elif before and before.id == about["difference"]:
        is_over = body["outcome"] == AGREES
        if not before.closed:
            by = AGREES if is_over else str(body["actor"])
            before = before._replace(closed=by, closed_ms=at_ms)
        found[payment] = before._replace(is_over=is_over)


def _words(side: Side, other: Side) -> str:
    """What one side says of a payment: sum, status, and what the other says otherwise."""
    if not side:
        return ""
    currency = str(side["currency"])
    parts = [f"{shown(int(side['amount_minor']), currency)} {side['status']}"]
    for field in sorted(side.keys() - {"amount_minor", "currency", "status"}):
        if (value := side[field]) and value != other.get(field, ""):
            said = shown(value, currency) if isinstance(value, int) else value
            parts.append(f"{field.removesuffix('_minor')}: {said[:24].replace('_', ' ')}")
    return ", ".join(parts)
