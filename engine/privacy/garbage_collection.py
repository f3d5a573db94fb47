"""Destroy keys and documents without an owner, which a crash between vault and database leaves."""

import re
from uuid import UUID

from django.db.models import Model

from engine.application import installed
from engine.clock import now_ms
from engine.models import Run, Secret
from engine.privacy import journal
from engine.vault.key_store import keystore
from engine.vault.secret_store import media

RUN = re.compile(journal.UUID)
AGE_MS_MIN = 10 * 60_000  # a run that is being made is younger


def destroy_orphans() -> tuple[int, int]:
    """Destroy keys without a run or another owner, and documents without a run.

    Says how many of each there were.
    """
    store, keys = keystore(), 0
    for subject in _forgotten(store.subjects()):
        keys += store.destroy_subject(subject)
    kept = set(Secret.objects.exclude(file="").values_list("file", flat=True))
    before_s = (now_ms() - AGE_MS_MIN) / 1000
    files = [each for each in media().glob("*.sealed") if each.name not in kept]
    old = [each for each in files if each.stat().st_mtime < before_s]
    for each in old:
        each.unlink(missing_ok=True)
    return keys, len(old)


def _forgotten(subjects: list[str]) -> list[str]:
    """Subjects whose owner is not there, and that are old enough to have been stored."""
    before_ms = now_ms() - AGE_MS_MIN
    known = ((each, _owner(each)) for each in subjects)
    found = {each: owner for each, owner in known if owner is not None}
    dated = {each: owner for each, owner in found.items() if owner[1].version == 7}
    old = {each: owner for each, owner in dated.items() if owner[1].int >> 80 < before_ms}
    there: set[UUID] = set()
    for model in {kind for kind, _ in old.values()}:
        ids = [owner for kind, owner in old.values() if kind is model]
        there.update(model._default_manager.filter(id__in=ids).values_list("id", flat=True))
    return [each for each, (_, owner) in old.items() if owner not in there]


def _owner(subject: str) -> tuple[type[Model], UUID] | None:
    """Whose keys these are; an id begins with its time of birth. None: no application knows."""
    for application in installed():
        for prefix, model in application.key_owners.items():
            if subject.startswith(prefix):
                return model, UUID(subject.removeprefix(prefix))
    return (Run, UUID(subject)) if RUN.fullmatch(subject) else None
