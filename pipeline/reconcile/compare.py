"""Stripe's lists beside what the logs seal: what was compared, and what differs."""

from collections.abc import Iterable, Mapping
from uuid import UUID

from django.conf import settings

from engine.models import Run
from pipeline.models import StripeEvent
from pipeline.reconcile.differences import MISSING, NOT_ALLOWED, OTHER, Difference, Side
from pipeline.reconcile.sealed import FAILED, NOTHING, SUCCEEDED, Call, Logs, hash_of, opened
from pipeline.reconcile.stripe_lists import Lists, Payment
from pipeline.steps.charge.afterwards import OF_NO_RESULT
from pipeline.steps.charge.gateway import LOOK_BACK_S

NAMED, ANOTHER, NONE = "this run", "another run", "no run"  # what a payment's metadata name


class Look:
    """One comparison. Payments are SHA-256 of Stripe's ids.

    ``differ``: by payment, the log that it belongs to, and the difference. ``unsettled``: what
    differs, and what is not judged as its log is damaged or an event about it is being looked at.
    ``others``: how many other systems made.
    """

    def __init__(self, logs: Logs, far: Lists, at_ms: int, house: UUID, genesis_ms: int) -> None:
        self._logs, self._far, self._at_ms = logs, far, at_ms
        self._house, self._genesis_ms = house, genesis_ms
        self.differ: dict[str, tuple[UUID, Difference]] = {}
        self.compared, self.unsettled = set[str](), set[str]()
        self.others = self.damaged = 0

    def compare(self, news: Iterable[str]) -> None:
        """Compare all in the lists, the payments of this news, and what the lists lack."""
        for name in news:
            if hash_of(name) not in self._far.payments:
                self._far.ask(name)
        by_id = {call.payment: call for call in self._logs.calls.values() if call.payment}
        claimed, unnamed = set[str](), list[Payment]()
        for payment in [*self._far.payments.values()]:  # oldest first: a copy of a key comes later
            call = by_id.get(payment.id) or self._logs.calls.get(payment.key)
            if call and call.payment in (payment.id, None, "") and call.key not in claimed:
                claimed.add(call.key)
                self._compare(call, payment)
            elif payment.paid:
                unnamed.append(payment)
        self._judge_unnamed(unnamed)
        listed_ms = self._far.since_ms - LOOK_BACK_S * 1_000
        for call in self._logs.calls.values():
            made = call.status == SUCCEEDED and call.ended_ms <= self._at_ms
            if made and call.intent_ms >= listed_ms and call.key not in claimed:
                self._judge_missing(call)

    @property
    def why(self) -> str:
        """What could not be read or judged; else empty."""
        unread = f"{self.damaged} payments are of runs whose log is damaged: manage.py fsck"
        return "; ".join(filter(None, (self._far.why, unread if self.damaged else "")))

    def _compare(self, call: Call, payment: Payment) -> None:
        later = self._logs.later.get(call.run, NOTHING)
        asked = payment.paid and later["dispute"] in OF_NO_RESULT
        if not call.status or (call.status == FAILED and asked):
            return  # nothing is recorded yet, or a person was asked
        log, far = {**call.side, "status": call.status}, _side(payment, call.run)
        if call.status == SUCCEEDED:
            log |= {"names": NAMED, **later}
        names = {name for name, value in log.items() if value not in (None, far[name])}
        if call.status == FAILED and not payment.paid:
            names = set()
        if names and names <= NOTHING.keys():
            news = StripeEvent.objects.filter(run_id=call.run, looked_ms=None)
            if news.exists() or not opened(call.ref):  # it is looked at, or was erased
                self.unsettled.add(payment.id)
                return
        self.compared.add(payment.id)
        if names:
            self._differs(call.log, Difference(OTHER, payment.id, call.run, _known(log), far))

    def _judge_unnamed(self, unnamed: list[Payment]) -> None:
        runs = Run.objects.filter(id__in={payment.run for payment in unnamed if payment.run})
        ours = {str(run): log for run, log in runs.values_list("id", "workspace")}
        for payment in unnamed:
            log, run = ours.get(payment.run), payment.run if payment.run in ours else ""
            if log is None and settings.NANOVM_STRIPE_SHARED:
                self.others += 1
            elif run in self._logs.damaged:
                self.damaged += 1
                self.unsettled.add(payment.id)
            elif log is not None or payment.created_ms >= self._genesis_ms:
                found = Difference(NOT_ALLOWED, payment.id, run, {}, _side(payment, run))
                self._differs(log or self._house, found)

    def _judge_missing(self, call: Call) -> None:
        name = "" if self._far.why else opened(call.ref)
        payment = self._far.ask(name) if name else None
        if payment is not None:  # the clocks differ, or the list was cut off
            self._compare(call, payment)
            if payment.created_ms >= self._far.since_ms:
                self._far.why = "a list of Stripe's lacked a payment that Stripe has"
        elif name and not self._far.why:
            kept = _known({"status": SUCCEEDED, **call.side})
            self._differs(call.log, Difference(MISSING, hash_of(name), call.run, kept, {}))

    def _differs(self, log: UUID, found: Difference) -> None:
        self.compared.add(found.payment)
        self.unsettled.add(found.payment)
        self.differ[found.payment] = log, found


def _known(side: Mapping[str, str | int | None]) -> Side:
    return {name: value for name, value in side.items() if value is not None}


def _side(payment: Payment, run: str) -> Side:
    names = NONE if not payment.run else NAMED if payment.run == run else ANOTHER
    return {**payment.side, "names": names}
