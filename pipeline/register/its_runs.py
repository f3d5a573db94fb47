"""The runs that hold an invoice of a supplier: by claim, by what the register said, or by name."""

from collections.abc import Collection, Mapping
from contextlib import suppress
from uuid import UUID

from django.db.models import Count, Q, QuerySet

from engine.models import Run, Workspace
from engine.queries.runs import logs_of
from nanovm_core.errors import VerificationError
from pipeline.models import Found, Listed, Supplier
from pipeline.register import found, versions


def counts(workspace: Workspace, ids: Collection[UUID]) -> Mapping[str, int]:
    """How many runs each of these suppliers has, by its id; those that only name it left out."""
    rows = Listed.objects.filter(workspace_id__in=logs_of(workspace.id), supplier__in=ids)
    return {str(each): n for each, n in rows.values_list("supplier").annotate(n=Count("run"))}


def of_supplier(row: Supplier) -> "QuerySet[Run]":
    """Every run of a supplier, the oldest first, erased ones too.

    A run that no supplier was matched to is found as long as both can be read: where its payee,
    seller or account is the supplier's, in any spelling that the register takes for the same.
    Nothing is opened but the supplier: runs are found by keyed words.
    """
    logs = logs_of(row.workspace_id)
    listed = Listed.objects.filter(workspace_id__in=logs).values("run")
    naming = Found.objects.filter(workspace_id__in=logs, word__in=_words(row)).values("run")
    named = Q(id__in=listed.filter(supplier=None, run__in=naming), bill=None)
    matched = Q(id__in=listed.filter(supplier=row.id)) | Q(bill__supplier=row)
    return Run.objects.filter(matched | named).order_by("created_ms", "id")


def _words(row: Supplier) -> set[str]:
    """What a run that names it is found by; nothing where it was erased or does not open."""
    with suppress(VerificationError):
        key = found.key_of(row.workspace)
        if key is not None and row.state != versions.ERASED:
            details = versions.open_entries(row.workspace, [row])[0].details
            return found.naming(key, [details.name], details.iban)
    return set()
