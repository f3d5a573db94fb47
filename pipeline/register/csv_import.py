"""Import a CSV file into the register: whole or not at all, each faulty line named."""

from collections.abc import Iterator, Sequence
from uuid import UUID

from pipeline.models import SupplierIndex, Workspace
from pipeline.register import csv_files, index, suppliers
from pipeline.register.csv_files import Fault, FaultyFileError
from pipeline.register.details import Details, DetailsError


def import_csv(workspace_id: UUID, data: bytes, *, actor: str) -> int:
    """Register the suppliers of a CSV file; says how many.

    Raises:
        FaultyFileError: what is wrong with the file, or registered already, line by line.
    """
    given = csv_files.numbered(data)
    try:
        suppliers.register(workspace_id, [details for _, details in given], actor=actor)
    except DetailsError as error:
        found = tuple(_registered(Workspace.objects.get(id=workspace_id), given))
        raise FaultyFileError(found or (Fault(1, error.text),)) from error
    return len(given)


def _registered(workspace: Workspace, given: Sequence[tuple[int, Details]]) -> Iterator[Fault]:
    key = index.key_of(workspace)
    rows = SupplierIndex.objects.filter(workspace=workspace)
    for line, details in given:
        for kind, text in details.identities().items():
            if rows.filter(kind=kind, value=index.blind(key, kind, text)).exists():
                yield Fault(line, f"A supplier with this {kind.replace('_', ' ')} is registered.")
