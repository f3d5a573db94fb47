"""Fresh runs to attack, brought to where the attack needs them by an operator's commands."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

from django.conf import settings
from django.db import connections

from engine.entropy import uuid7
from engine.models import Run, Workspace
from engine.runtime import api, create_run
from engine.runtime.create_run import NewRun
from engine.vault import secret_store
from engine.worker.drive import drive_patiently
from nanovm_core.core import lifecycle as life
from pipeline.application import INVOICES
from sabotage.gallery.kit import invoices
from sabotage.kit.injector import InjectionError, Value
from sabotage.kit.waiting import wait_until

OPERATOR = "operator"
STANDS_MS_MAX = 60_000  # a loaded machine's worker may take its time
GOOD_CARD = "pm_card_visa"
AGENT = 'agent = "payer"'
LIMITS_ALONE = """
v = "nanovm-policy/1"
name = "limits-alone"
{budgets}
[[rules]]
id = "any-payment"
at = "authorize"
outcome = "allow"
tools = ["stripe.create_payment_intent"]
when = "$proposal.amount_minor > 0"
why = "Any amount: the accounts alone are the limit."
"""
BUDGET = """
[[budgets]]
scope = "workspace"
unit = "{unit}"
max = {max}
"""


def fresh(
    workspace: Workspace,
    document: bytes,
    *,
    model: str = "faithful",
    proposal: bytes = b"",
    policy: str = "",
    agent: str = "payer",
    card: str = GOOD_CARD,
    stepping: bool = False,
    advisor: str = "none",
) -> Run:
    """A run over a document, READY. ``policy`` is the text of one, in place of the default."""
    run = uuid7()
    given = {"file_name": b"gallery.pdf", "document": document}
    given |= {"planted": proposal} if proposal else {}
    sealed = secret_store.seal_values(str(run), workspace.origin, given)
    sealed["document"] = secret_store.in_a_file(sealed["document"])
    new = NewRun(
        workspace=workspace,
        program=_program(agent),
        policy=policy.encode() or INVOICES.policy_source(),
        slots={
            **{slot: each.ref for slot, each in sealed.items()},
            "payment_method": card,
            "advisor": advisor,
            "text_accepted": True,  # by who chose what the document says
        },
        sealed=tuple(sealed.values()),
        model=model,
        stepping=stepping,
    )
    return create_run.make_run(new, run).run


def limits_alone(limits: Mapping[str, int]) -> str:
    """A policy that allows every payment: only these limits count, for all runs together."""
    budgets = "".join(BUDGET.format(unit=unit, max=limit) for unit, limit in limits.items())
    return LIMITS_ALONE.format(budgets=budgets)


def plain_run(workspace: Workspace, _values: Mapping[str, Value]) -> Run:
    """A run over the plain sample, READY, whatever the parameters are."""
    return fresh(workspace, invoices.plain_invoice())


def start(*runs: Run) -> None:
    """Start runs, all at once, and wait until each waits or has ended."""
    _told(runs, api.start)


def resume(*runs: Run) -> None:
    """Let runs that were paused go on, all at once, until each waits or has ended."""
    _told(runs, api.resume)


def bring(run: Run, step: str) -> None:
    """Start a run that is stepped, and stop before this step."""
    start(run)
    while reloaded(run).step != step and reloaded(run).state == life.PAUSED:
        _told((run,), api.step)
    if reloaded(run).step != step:
        raise InjectionError(f"The run did not reach step {step}. Check the run and fire again.")


def wait_for(*runs: Run) -> None:
    """Let runs that owe something be driven, until each waits or has ended."""
    _told(runs, api.wake)


def reloaded(run: Run) -> Run:
    """The run as it is now."""
    return Run.objects.select_related("workspace").get(id=run.id)


def _program(agent: str) -> bytes:
    """The shipped program, its agent by this name."""
    source = INVOICES.source().decode()
    return source.replace(AGENT, f'agent = "{agent}"', 1).encode()


def _told(runs: Sequence[Run], command: Callable[[str, str], object]) -> None:
    """Give each its command; a worker drives them where there is a queue, else threads of ours."""
    for run in runs:
        command(str(run.id), OPERATOR)
    if not settings.REDIS_URL:
        _drive(runs)
    elif not wait_until(lambda: _stand(runs), STANDS_MS_MAX):
        raise InjectionError("No worker took the run in time. Check the worker and fire again.")


def _stand(runs: Iterable[Run]) -> bool:
    still = {*life.SUSPENDED, *life.TERMINAL}
    ids = [run.id for run in runs]
    return not Run.objects.filter(id__in=ids).exclude(state__in=still).exists()


def _drive(runs: Sequence[Run]) -> None:
    if len(runs) == 1:
        drive_patiently(str(runs[0].id))
        return
    with ThreadPoolExecutor(max_workers=len(runs)) as pool:
        for future in [pool.submit(_driven, str(run.id)) for run in runs]:
            future.result()


def _driven(run_id: str) -> None:
    try:
        drive_patiently(run_id)
    finally:
        connections.close_all()  # this thread's own
