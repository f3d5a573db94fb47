"""Step 7: send the supplier a remittance advice; the kernel then seals the end of the run."""

from pathlib import Path

from django.conf import settings

from engine.clock import now_ms
from engine.errors import PermanentError
from engine.models import Run
from engine.work import Answer, Work, done
from pipeline.steps import remittance


def send_advice(work: Work) -> Answer:
    """Write the remittance advice to the supplier: a file, in place of a mail server.

    A field with a control character is refused (ADV-001), and nothing is written.
    """
    to = work.opened("to").decode()
    if "@" not in to:
        return done(work, {"advice": "not_sent"}, {}, outcome="no_address")
    subject, body = work.opened("subject").decode(), work.opened("body").decode()
    name = str(work.run.id)
    mail = remittance.message(to, subject, body, name=name, at_ms=now_ms())
    file = advice_file(name)
    file.write_bytes(mail)
    try:
        work.opened("to")
    except PermanentError:  # erased meanwhile: another worker finished the run
        file.unlink(missing_ok=True)
        raise
    return done(work, {"advice": "sent"}, {})


def advice_of_the_erased() -> list[Path]:
    """Advice in the clear, of runs that were erased or that the database does not have."""
    files = sorted((settings.NANOVM_DATA / "mail").glob("*.eml"))
    runs = {str(each) for each in Run.objects.filter(erased_ms=None).values_list("id", flat=True)}
    return [each for each in files if each.stem not in runs]


def advice_file(run_id: str) -> Path:
    """The file of a run's remittance advice, which an erasure deletes."""
    folder: Path = settings.NANOVM_DATA / "mail"
    folder.mkdir(exist_ok=True)
    return folder / f"{run_id}.eml"
