"""What a run can prove on a page: every check, recomputed, and its report for print."""

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from dashboard.audit.views import rows_of
from dashboard.runs import run_view
from dashboard.templatetags.show import refusal
from dashboard.verdicts import verdict_card
from dashboard.web.pages import own_run, page, page_and_form
from engine.queries import evidence, log, runs
from engine.runtime import api
from nanovm_core.errors import VerificationError

KEY_CHARS_MAX = 300  # a verification key has 150 at most


@page_and_form
def verify(request: HttpRequest, code: str) -> HttpResponse:
    """Recompute chain, tree and signature from what is stored.

    A GET changes nothing, so its address can be sent. The form seals the damage that is found.
    """
    run, is_form = own_run(request, code), request.method == "POST"
    sent = request.POST if is_form else request.GET
    brought = sent.get("key", "")[:KEY_CHARS_MAX].strip()
    try:
        proved = evidence.proved(run, brought)
    except VerificationError as error:
        why = refusal(error.code)
        context = {"run": run, "rows": rows_of(run), "typed": brought, "error": why}
        return render(request, "audit/run.html", context, status=422)
    links, damaged = log.chain(run), api.is_damaged(run.id)
    decision = api.check(run.id) if damaged and is_form else None
    rule = decision.snapshot.reason[0] if decision and decision.snapshot.reason else ""
    after = runs.by_id(run.id)
    faults = [link for link in links if link.fault or link.row.number - 1 in proved.faults]
    context = {
        **_decided(run_view.read(after)),
        "run": after,
        "links": [_placed(link, proved) for link in links],
        "faults": faults,
        "first": _placed(faults[0], proved) if faults else None,
        "head": log.head_fault(run, links),
        "sealed": verdict_card.rule_of(rule) if rule else None,
        "unsealed": damaged and decision is None,
        "whole": not damaged and proved.grade != evidence.INVALID and not after.quarantined,
        "proved": proved,
        "brought": brought,
        "standing": evidence.signing_status(run),
    }
    return render(request, "audit/verified.html", context)


@page
def report(request: HttpRequest, code: str) -> HttpResponse:
    """The facts of a run, who decided, every event and the proof, for a printer."""
    run: runs.RunHead = own_run(request, code)
    view, rows = run_view.read(run), log.rows_of(run)
    context = {
        **_decided(view),
        "run": run,
        "rows": rows,
        "mine": view.mine,
        "payment": view.payment,
        "later": view.later,
        "proved": evidence.proved(run),
        "standing": view.standing,
        "here": request.build_absolute_uri(),
    }
    return render(request, "run/report.html", context)


def _decided(view: run_view.RunView) -> dict[str, Any]:
    """The outcome in the run page's words, and who triggered the event that decided it."""
    number = view.outcome.decided_in
    decision = next((row for row in view.rows if row.number == number), None)
    return {"outcome": view.outcome, "decision": decision}


def _placed(link: log.LinkView, proved: evidence.Proved) -> dict[str, object]:
    """A link of the chain with what the signed tree says of it."""
    n = link.row.number - 1
    return {
        "link": link,
        "fault": proved.faults.get(n, ""),
        "unsigned": n in proved.unsigned or not proved.size,
    }
