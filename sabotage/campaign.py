"""A campaign: injectors fired at fresh runs, with a real queue, worker and Stripe counterpart."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from celery import Celery
from django.conf import settings
from django.utils.module_loading import import_string

from engine.models import Run
from engine.ops.processes import Child, ProcessError, redis_server, running, spawn_celery_worker
from engine.runtime import api
from engine.runtime.queue import require_server
from nanovm_core.core import lifecycle as life
from pipeline.create_run import create_run
from pipeline.ops.stripe_counterpart import stripe_in_reach
from pipeline.register.sample_register import new_workspace
from pipeline.reports import decision
from sabotage.fire import fire, look_again
from sabotage.fire_scenario import fire_scenario
from sabotage.gallery import SCENARIOS
from sabotage.gallery.kit import invoices
from sabotage.kit.evidence import observe
from sabotage.kit.moments import Moment
from sabotage.kit.waiting import wait_until
from sabotage.models import Attack

OPERATOR = "operator"
PACE_MS = 250  # slow enough for fifty messages to meet a run that is being driven
STANDS_MS_MAX = 60_000  # a loaded machine's worker may take its time
RESTS_MS_MAX = 20_000  # a run that lost a guard may never end
AT_REST = life.TERMINAL | life.SUSPENDED


@dataclass(frozen=True, slots=True, kw_only=True)
class InjectorOutcome:
    """The outcome of one injector."""

    injector: str
    verdict: str
    rule: str
    integrity: str
    evidence: Mapping[str, Any]
    control: Mapping[str, object]  # what the ordinary agent did under the same attack
    careful: Mapping[str, object]  # what the careful agent did

    @property
    def got_through(self) -> bool:
        return self.verdict == "ACCEPTED" or self.integrity == "BREACHED"


@contextmanager
def services(worker: Callable[[Mapping[str, str]], Child] = spawn_celery_worker) -> Iterator[None]:
    """Run the servers that a campaign needs for the length of the block."""
    with stripe_in_reach(), queue_server() as url, running(worker(worker_environment(url))):
        yield


def attack(name: str, params: Mapping[str, str] = MappingProxyType({})) -> InjectorOutcome:
    """Fire one injector at a fresh run in a fresh workspace, and let the run come to its end.

    An attack of the gallery sets its own stage, and ends what it began; it alone has ``params``.
    """
    if name in SCENARIOS:
        return _outcome(fire_scenario(new_workspace(), name, params, name))
    return TWICE[name]() if name in TWICE else _mid_run(name)


def attack_at(moment: Moment, name: str, params: Mapping[str, str]) -> InjectorOutcome:
    """Fire one injector at a fresh run that owes this step, and let the run go where it goes.

    What it owes is begun at once where the moment holds nothing back, and else a while later.
    """
    run_id = _paused_before(moment.step)
    Run.objects.filter(id=run_id).update(pace_ms=moment.held_back_ms)
    if not moment.paused:
        api.resume(run_id, OPERATOR)
    shot = fire(run_id, name, params, "at-a-moment")
    Run.objects.filter(id=run_id).update(pace_ms=0)
    if _run(run_id).state == life.PAUSED:
        api.resume(run_id, OPERATOR)
    wait_until(lambda: _run(run_id).state in AT_REST, RESTS_MS_MAX)
    return _outcome(look_again(shot))


def _paused_before(step: str) -> str:
    run_id = _fresh_run(stepping=True)
    api.start(run_id, OPERATOR)
    _stand(run_id, life.PAUSED)
    while _run(run_id).step != step:
        api.step(run_id, OPERATOR)
        _stand(run_id, life.PAUSED)
    return run_id


def _mid_run(name: str) -> InjectorOutcome:
    """At a run that is paused before its model is asked."""
    run_id = _paused_before("propose")
    shot = fire(run_id, name, {}, "mid-run")
    if _run(run_id).state == life.PAUSED:
        api.resume(run_id, OPERATOR)
    _stand(run_id, *life.TERMINAL)
    return _outcome(look_again(shot))


def _while_driven_and_after() -> InjectorOutcome:
    """At a run that a worker drives, and once more after its end."""
    run_id = _fresh_run(pace_ms=PACE_MS)
    api.start(run_id, OPERATOR)
    _wait(lambda: bool(observe(run_id).holder), "no worker took the run")
    first = fire(run_id, "double_exec", {}, "while-driven")
    _stand(run_id, *life.TERMINAL)
    second = fire(run_id, "double_exec", {}, "after-the-end")
    return _outcome(look_again(first), after_the_end=second)


TWICE: Mapping[str, Callable[[], InjectorOutcome]] = {"double_exec": _while_driven_and_after}


def _outcome(shot: Attack, *, after_the_end: Attack | None = None) -> InjectorOutcome:
    run = _run(str(shot.run_id))
    evidence: dict[str, object] = {"run": run.code, **_facts(shot), "end": decision(run)}
    worst = shot
    if after_the_end is not None:
        evidence["after_the_end"] = _facts(after_the_end)
        worst = after_the_end if after_the_end.got_through else shot
    return InjectorOutcome(
        injector=shot.injector,
        verdict=worst.verdict,
        rule=worst.rule,
        integrity=worst.integrity,
        evidence=evidence,
        control=worst.ordinary,
        careful=worst.careful,
    )


def _facts(shot: Attack) -> dict[str, object]:
    return {
        "headline": shot.headline,
        "verdict": shot.verdict,
        "rule": shot.rule,
        "where": shot.where,
        "when": shot.when,
        "params": shot.params,
        **shot.evidence,
    }


def _fresh_run(*, stepping: bool = False, pace_ms: int = 0) -> str:
    run = create_run(
        new_workspace(), invoices.plain_invoice(), "plain.pdf", stepping=stepping, pace_ms=pace_ms
    )
    return str(run.id)


def _stand(run_id: str, *states: str) -> None:
    """Wait until the run is in one of these states, or has ended."""
    wanted = {*states, *life.TERMINAL}
    _wait(lambda: _run(run_id).state in wanted, f"the run did not come to {sorted(states)[0]}")


def _wait(holds: Callable[[], bool], otherwise: str) -> None:
    if not wait_until(holds, STANDS_MS_MAX):
        seconds = STANDS_MS_MAX // 1000
        log = settings.NANOVM_DATA / "logs" / "worker.log"
        raise ProcessError(f"In {seconds} s {otherwise}; see {log}, mend it and start again.")


def _run(run_id: str) -> Run:
    return Run.objects.get(id=run_id)


@contextmanager
def queue_server() -> Iterator[str]:
    """A queue server of our own, where the settings name none."""
    if settings.REDIS_URL:
        require_server(settings.REDIS_URL)
        _send_to(settings.REDIS_URL)
        yield settings.REDIS_URL
        return
    with redis_server(settings.NANOVM_DATA) as url:
        settings.REDIS_URL = url
        _send_to(url)
        try:
            yield url
        finally:
            settings.REDIS_URL = None


def _send_to(url: str) -> None:
    """Make this process's messages go there."""
    app: Celery = import_string("config.celery.app")  # by name: the project is above this app
    app.conf.broker_url = url


def worker_environment(queue_url: str) -> dict[str, str]:
    env = {
        "NANOVM_DATA": str(settings.NANOVM_DATA),
        "DJANGO_SETTINGS_MODULE": "config.settings",
        "REDIS_URL": queue_url,
    }
    api_base = settings.STRIPE["api_base"]
    return env | ({"STRIPE_API_BASE": api_base} if api_base else {})
