"""Downloads of evidence: receipts, bundles, exports, and the verifier."""

import tempfile
from base64 import urlsafe_b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from django.http import (
    Http404,
    HttpRequest,
    HttpResponse,
    HttpResponseBase,
    HttpResponseRedirect,
    JsonResponse,
)
from django.shortcuts import render
from django.views.decorators.http import require_safe

from dashboard.templatetags.show import refusal
from dashboard.verdicts import verdict_card
from dashboard.web import workspace
from dashboard.web.downloads import PIECE_BYTES, attached, streamed
from dashboard.web.pages import own_run, page, posted
from engine.evidence import bundles
from engine.models import Run, Workspace
from engine.queries import evidence, log, runs
from engine.queries.runs import RunHead
from engine.runtime import api
from nanovm_core.errors import VerificationError

VERIFIER = Path(bundles.__file__).parents[2] / "nanovm_core" / "verify.py"
KEY_CHARS_MAX = 300  # a verification key has 150 at most
RETRY_S = 2


@posted
def verify(request: HttpRequest, code: str) -> HttpResponse:
    """Recompute chain, tree and signature from what is stored; damage is shown, then sealed."""
    run = own_run(request, code)
    brought = request.POST.get("key", "")[:KEY_CHARS_MAX].strip()
    try:
        proved = evidence.proved(run, brought)
    except VerificationError as error:
        rows, why = log.rows_after(run, 0, run.length), refusal(error.code)
        context = {"run": run, "rows": rows, "typed": brought, "error": why}
        return render(request, "audit/run.html", context, status=422)
    links = log.chain(run)
    decision = api.check(run.id)
    rule = decision.snapshot.reason[0] if decision and decision.snapshot.reason else ""
    after = runs.by_id(run.id)
    faults = [link for link in links if link.fault or link.row.number - 1 in proved.faults]
    context = {
        "run": after,
        "links": [_placed(link, proved) for link in links],
        "faults": faults,
        "first": _placed(faults[0], proved) if faults else None,
        "head": log.head_fault(run, links),
        "sealed": verdict_card.rule_of(rule) if rule else None,
        "whole": decision is None and proved.grade != evidence.INVALID and not after.quarantined,
        "proved": proved,
        "brought": brought,
        "standing": evidence.signing_status(run),
    }
    return render(request, "audit/verified.html", context)


@page
def receipt(request: HttpRequest, code: str) -> HttpResponse:
    """The proof of one event, the newest if none is named; a page until it can be given.

    With ``check`` it leads to the page that checks it, and is in that address.
    """
    run = own_run(request, code)
    asked = request.GET.get("event", "")
    number = int(asked) if asked.isdecimal() and len(asked) < 16 else run.length
    try:
        made = bundles.receipt(Run.objects.get(pk=run.id), number - 1)
    except VerificationError as error:
        if error.code == "LOG-002":
            raise Http404("the run has no such event") from error
        return _unproved(request, run, error)
    if made is None:
        return _not_yet(request, run)
    response = JsonResponse(made)
    if "check" in request.GET:  # in the fragment, which no browser sends to a server
        fragment = urlsafe_b64encode(response.content).decode().rstrip("=")
        return HttpResponseRedirect(f"/verify/#r={fragment}")
    return attached(response, f"receipt-{run.code}-{number}.json")


@page
def bundle(request: HttpRequest, code: str) -> HttpResponseBase:
    """The run's bundle up to the newest checkpoint."""
    run = own_run(request, code)
    return _bundle(request, Workspace.objects.get(pk=run.workspace), run)


@page
def log_bundle(request: HttpRequest, name: str) -> HttpResponseBase:
    """The whole log's bundle up to the newest checkpoint."""
    return _bundle(request, workspace.own_log(request, name), None)


@page
def export(request: HttpRequest, code: str) -> HttpResponseBase:
    """The run's envelopes as they lie there, and the trailer."""
    run = own_run(request, code)
    owner = Workspace.objects.get(pk=run.workspace)
    lines = bundles.export_lines(owner, Run.objects.get(pk=run.id))
    return attached(streamed(request, lines, "application/x-ndjson"), f"run-{run.code}.ndjson")


@require_safe
def verifier(_request: HttpRequest) -> HttpResponse:
    """The verifier, one file. To check this server, take it from the repository instead."""
    response = HttpResponse(VERIFIER.read_bytes(), content_type="text/x-python; charset=utf-8")
    return attached(response, "verify.py")


def _bundle(request: HttpRequest, owner: Workspace, run: RunHead | None) -> HttpResponseBase:
    checkpoint = bundles.newest(owner)
    named = f"run-{run.code}" if run else f"log-{workspace.name_of(owner)}"
    stored = Run.objects.get(pk=run.id) if run else None
    if checkpoint is None or (run is not None and not evidence.signing_status(run).covered):
        return _not_yet(request, run)
    with tempfile.TemporaryDirectory(prefix="nanovm-bundle-") as folder:
        file = Path(folder) / "bundle.zip"
        try:
            bundles.write_bundle(owner, stored, file, checkpoint)
        except VerificationError as error:
            return _unproved(request, run, error)
        opened = file.open("rb")  # it stays readable when its name is gone, and goes with us
    return attached(streamed(request, _read(opened), "application/zip"), f"{named}.zip")


def _read(opened: IO[bytes]) -> Iterator[bytes]:
    with opened:
        while part := opened.read(PIECE_BYTES):
            yield part


def _not_yet(request: HttpRequest, run: RunHead | None) -> HttpResponse:
    standing = evidence.signing_status(run) if run else None
    context = {"run": run, "standing": standing, "here": request.get_full_path()}
    response = render(request, "audit/not_signed_yet.html", context, status=503)
    response["Retry-After"] = str(RETRY_S)
    return response


def _unproved(request: HttpRequest, run: RunHead | None, error: VerificationError) -> HttpResponse:
    context = {"run": run, "error": error, "here": request.get_full_path()}
    return render(request, "audit/not_signed_yet.html", context, status=409)


def _placed(link: log.LinkView, proved: evidence.Proved) -> dict[str, object]:
    """A link of the chain with what the signed tree says of it."""
    n = link.row.number - 1
    return {
        "link": link,
        "fault": proved.faults.get(n, ""),
        "unsigned": n in proved.unsigned or not proved.size,
    }
