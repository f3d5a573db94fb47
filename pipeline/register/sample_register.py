"""What a new workspace knows: the samples' suppliers, and whose invoices they are."""

import json
from collections.abc import Mapping
from functools import lru_cache

from django.db import transaction

import samples
from engine.entropy import digits
from engine.models import Run, Workspace
from engine.runtime import chains
from pipeline.register import csv_files, suppliers
from pipeline.register.details import Details
from reader.known_text.unit import Unit


def new_workspace(given: Mapping[str, object] | None = None) -> Workspace:
    """Make a workspace whose register has the samples' suppliers, labelled as sample data."""
    with transaction.atomic():
        workspace = chains.create(given)
        own = [Details(name=samples.COMPANY)]
        suppliers.register(workspace.id, own, actor="runtime", is_sample=True, state=suppliers.OWN)
        known = [each.accepting(sample_units().get(each.name, ())) for each in sample_suppliers()]
        suppliers.register(workspace.id, known, actor="runtime", is_sample=True)
    return Workspace.objects.get(id=workspace.id)


def new_digits() -> str:
    """Ten digits to draw a sample's number and dates from: no two runs have one date by chance."""
    return f"{Run.objects.count() % samples.DAYS:03d}{digits(7)}"


@lru_cache(maxsize=1)
def sample_suppliers() -> tuple[Details, ...]:
    return tuple(csv_files.parse(samples.path_of("suppliers.csv").read_bytes()).suppliers)


@lru_cache(maxsize=1)
def sample_units() -> Mapping[str, tuple[Unit, ...]]:
    """What the sample invoices say, by supplier: their texts come accepted."""
    listed = json.loads(samples.path_of("known_text.json").read_bytes())
    return {
        name: tuple(Unit(kind="text", mark=mark, text="", size=size) for mark, size in marks)
        for name, marks in listed.items()
    }
