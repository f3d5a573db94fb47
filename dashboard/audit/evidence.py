"""Downloads of evidence: receipts, bundles, exports, and the verifier."""

import math
import tempfile
from base64 import urlsafe_b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase, JsonResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_safe

from dashboard.web import held, workspace
from dashboard.web.downloads import PIECE_BYTES, attached, streamed
from dashboard.web.pages import own_run, page
from engine.clock import now_ms
from engine.evidence import bundles
from engine.models import Run, Workspace
from engine.queries import evidence
from engine.queries.evidence import SigningStatus
from engine.queries.runs import RunHead
from nanovm_core.core.envelope import LOG_RUN
from nanovm_core.errors import VerificationError

VERIFIER = Path(bundles.__file__).parents[2] / "nanovm_core" / "verify.py"
POLL_S = 1  # the signer looks four times a second


@page
def receipt(request: HttpRequest, code: str) -> HttpResponse:
    """The proof of one event, the newest if none is named; a page until it can be given.

    With ``check`` it leads to the page that checks it, and is in that address.
    """
    run = own_run(request, code)
    return _receipt(request, run, Workspace.objects.get(pk=run.workspace), run.length)


@page
def log_receipt(request: HttpRequest, name: str) -> HttpResponse:
    """The proof of one event of the log's own chain, the newest if none is named."""
    owner = held.own_log(request, name)
    return _receipt(request, None, owner, owner.log_length)


def _receipt(
    request: HttpRequest, run: RunHead | None, owner: Workspace, length: int
) -> HttpResponse:
    """The proof of an event of a run's chain, or of the log's own."""
    asked = request.GET.get("event", "")
    number = int(asked) if asked.isdecimal() and len(asked) < 16 else length
    try:
        made = bundles.receipt(owner, run.id if run else LOG_RUN, number - 1)
    except VerificationError as error:
        if error.code == "LOG-002":
            raise Http404("there is no such event") from error
        return _unproved(request, run, error)
    if made is None:
        return _not_yet(request, run, evidence.log_status(owner, run.id if run else ""))
    response = JsonResponse(made)
    if "check" in request.GET:  # in the fragment, which no browser sends to a server
        fragment = urlsafe_b64encode(response.content).decode().rstrip("=")
        return redirect(f"/verify/#r={fragment}")
    return attached(response, f"receipt-{run.code if run else 'log'}-{number}.json")


@page
def bundle(request: HttpRequest, code: str) -> HttpResponseBase:
    """The run's bundle up to the newest checkpoint."""
    run = own_run(request, code)
    return _bundle(request, Workspace.objects.get(pk=run.workspace), run)


@page
def log_bundle(request: HttpRequest, name: str) -> HttpResponseBase:
    """The whole log's bundle up to the newest checkpoint."""
    return _bundle(request, held.own_log(request, name), None)


@page
def export(request: HttpRequest, code: str) -> HttpResponseBase:
    """The run's envelopes as they are stored, and the trailer; the name says what is unsigned."""
    run = own_run(request, code)
    owner = Workspace.objects.get(pk=run.workspace)
    lines = bundles.export_lines(owner, Run.objects.get(pk=run.id))
    named = f"run-{run.code}" + "-unsigned" * (not evidence.signing_status(run).whole)
    return attached(streamed(request, lines, "application/x-ndjson"), f"{named}.ndjson")


@require_safe
def verifier(_request: HttpRequest) -> HttpResponse:
    """The verifier, one file. To check this server, take it from the repository instead."""
    response = HttpResponse(VERIFIER.read_bytes(), content_type="text/x-python; charset=utf-8")
    return attached(response, "verify.py")


def _bundle(request: HttpRequest, owner: Workspace, run: RunHead | None) -> HttpResponseBase:
    checkpoint = bundles.newest(owner)
    named = f"run-{run.code}" if run else f"log-{workspace.name_of(owner)}"
    stored = Run.objects.get(pk=run.id) if run else None
    standing = evidence.log_status(owner, run.id if run else "")
    if checkpoint is None or not standing.covered:
        return _not_yet(request, run, standing)
    if run and not standing.whole:
        named += f"-first-{standing.covered}-of-{standing.total}"
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


def _not_yet(request: HttpRequest, run: RunHead | None, standing: SigningStatus) -> HttpResponse:
    """The page that asks again when the signer will have signed."""
    due_ms = 0 if standing.soon else standing.due_ms - now_ms()
    in_s = POLL_S + max(0, math.ceil(due_ms / 1_000))
    stopped = bool(standing.refusal or standing.silent)
    here = request.get_full_path()
    context = {"run": run, "standing": standing, "in_s": in_s, "stopped": stopped, "here": here}
    response = render(request, "audit/not_signed_yet.html", context, status=503)
    response["Retry-After"] = str(in_s)
    return response


def _unproved(request: HttpRequest, run: RunHead | None, error: VerificationError) -> HttpResponse:
    context = {"run": run, "error": error, "here": request.get_full_path()}
    return render(request, "audit/not_signed_yet.html", context, status=409)
