"""Destroy keys and documents without a run, which a crash between vault and database leaves."""

from uuid import UUID

from pipeline.clock import now_ms
from pipeline.models import Run, Secret, Supplier, Workspace
from pipeline.vault.key_store import keystore
from pipeline.vault.secret_store import media

UUID_CHARS = 36  # at the end of a subject: a run's, "supplier-" one's, or a "register-" one's
AGE_MS_MIN = 10 * 60_000  # a run that is being made is younger


def destroy_orphans() -> tuple[int, int]:
    """Destroy keys and documents that belong to no run; says how many of each there were."""
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
    """Subjects that nothing bears, and are old enough: an id begins with its time of birth."""
    before_ms = now_ms() - AGE_MS_MIN
    old = {each: UUID(each[-UUID_CHARS:]) for each in subjects}
    old = {each: name for each, name in old.items() if name.int >> 80 < before_ms}
    there: set[UUID] = set()
    for table in (Run, Supplier, Workspace):
        there |= {*table.objects.filter(id__in=old.values()).values_list("id", flat=True)}
    return [each for each, name in old.items() if name not in there]
