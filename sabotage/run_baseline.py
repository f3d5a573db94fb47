"""Runs both baselines under an attack, with the attacked run's own invoice."""

from collections.abc import Callable, Mapping
from functools import cache, partial

from django.conf import settings

from engine.clock import now_ms
from engine.models import Run
from engine.vault import secret_store
from reader import ExtractionError, extract
from sabotage.baseline import comparison
from sabotage.baseline.answers import AttackInput
from sabotage.baseline.checks import CAREFUL, ORDINARY, Checks
from sabotage.baseline.loop import NothingToReadError, Prompt
from sabotage.kit import integrity
from sabotage.kit.injector import Value
from sabotage.models import CAREFUL_KEY, Attack

NOT_LOCAL = "Not run: it needs a Stripe account of its own, which the local counterpart alone has."
# What is read of these is the document's own words.
READS_THE_TEXT = ("poisoned_invoice", "hidden_text")


def run_baseline(
    attack: Attack, values: Mapping[str, Value], facts: Mapping[str, object]
) -> dict[str, object]:
    """What an ordinary agent does under the same attack; in ``careful``, what a careful one does.

    Each is run now and on an account of its own. They read and change nothing of the run's but
    its document, which is read once, and leave nothing behind but their records at Stripe, in
    which there is no person: amounts, and the attack's id.
    """
    agent = _agent(attack, values, facts)
    return {**agent(ORDINARY), CAREFUL_KEY: agent(CAREFUL)}


def _agent(
    attack: Attack, values: Mapping[str, Value], facts: Mapping[str, object]
) -> Callable[[Checks], comparison.ReportJson]:
    """What runs an agent with given checks under the attack."""
    api_base = settings.STRIPE["api_base"]
    if not settings.STRIPE["local"]:
        return partial(comparison.not_run, NOT_LOCAL)
    if api_base is None:
        return partial(comparison.not_run, comparison.OUT_OF_REACH)
    run = Run.objects.get(id=attack.run_id)
    known = None if attack.injector in READS_THE_TEXT else _known(run)
    given = AttackInput(values=values, facts=facts, read=_once(run, known))
    return partial(
        comparison.compare,
        attack.injector,
        given,
        api_base=api_base,
        folder=settings.NANOVM_DATA / "control",
        tag=str(attack.id),
        at_ms=now_ms(),
    )


def _once(run: Run, known: Prompt | None) -> Callable[[], Prompt]:
    """What reads the document, at most once for both agents; a failure is kept as well."""

    @cache
    def found() -> Prompt | ExtractionError | NothingToReadError:
        try:
            return known or _read(run)
        except (ExtractionError, NothingToReadError) as error:
            return error

    def read() -> Prompt:
        bill = found()
        if isinstance(bill, Prompt):
            return bill
        raise bill

    return read


def _known(run: Run) -> Prompt | None:
    """What the run's own reading of the document gave, where it was read already."""
    invoice = integrity.record(run).invoice
    return Prompt(currency=invoice[0], amount_minor=invoice[1]) if invoice else None


def _read(run: Run) -> Prompt:
    """The document, read by the same tool; its values stay in memory until the loop has ended."""
    document = run.secrets.filter(slot="document", erased_ms=None).first()
    data = secret_store.read_bytes([document.ref])[document.ref] if document else None
    if data is None:
        raise NothingToReadError("the document was erased")
    found = extract(data)
    fields = found.fields
    return Prompt(currency=fields.currency, amount_minor=fields.amount_minor, notes=found.notes)
