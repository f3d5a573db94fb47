"""A data folder with processes of its own, of which one is killed again and again.

They are real and under a real supervisor. What is reported of them is read from that supervisor,
the folder's records and its Stripe counterpart.
"""

import json
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

from django.conf import settings

from engine.management import schema
from engine.models import Run
from engine.ops.members import Member, Spawn
from engine.ops.process_file import RUNNING, STOPPED
from engine.ops.processes import Child, spawn_celery_worker
from engine.ops.supervisor import Supervisor
from engine.queries.agents import alerts
from engine.runtime import api
from engine.runtime.processes import Sealing
from engine.store import actors
from nanovm_core.supervision import TRANSIENT, Spec
from nanovm_core.supervision import Child as Process
from pipeline import labels
from pipeline.application import current
from pipeline.create_run import create_run
from pipeline.ops.stripe_counterpart import stripe_in_reach
from pipeline.register.sample_register import new_workspace
from pipeline.reports import decision
from sabotage.campaign import AT_REST, OPERATOR, queue_server, worker_environment
from sabotage.gallery.kit import invoices, outcomes
from sabotage.gallery.restored_snapshot import DataFolder
from sabotage.kit import evidence, throwaway
from sabotage.kit.stripe_view import stripe_view

AGENTS = "agents"  # the supervisor
HALTED = '{"halted": '
LOOP_S_MAX = 60.0  # for a busy machine; five restarts take twenty on an idle one
STOP_S, TURN_S = 1.0, 0.02


class House:
    """The agents' processes: one halts where it uses a tool, while the file ``halts`` is there."""

    def __init__(
        self, run: Run, tool: str, moment: str, strategy: str, env: Mapping[str, str]
    ) -> None:
        agents = dict.fromkeys(map(actors.of_tool, tools().values()))
        own = Spec(AGENTS, strategy, children=(*map(Process, agents),), restart=TRANSIENT)
        self.run, self.at, self.env = run, (tool, moment), env
        self.halts = Path(settings.NANOVM_DATA) / "halts"
        self.halts.touch()  # before the run can begin
        self.children: dict[str, Child] = {}
        self.sealing = Sealing(lambda: None)
        self.supervisor = Supervisor(
            Spec("root", children=(own,)),
            [Member(name=each, spawn=partial(self._spawn, each), agent=each) for each in agents],
            told=self.sealing.told,
            sealed=self.sealing.sealed,
        )

    def _spawn(self, agent: str, given: Spawn) -> Child:
        env = {**self.env, "NANOVM_AGENT": agent, "NANOVM_PROCESS": given.tag}
        program = (*throwaway.THROUGH, "sabotage.crashes", *self.at, str(self.halts))
        self.children[agent] = spawn_celery_worker(env, program)
        return self.children[agent]

    def kill(self, times: int) -> Iterator[dict[str, Any]]:
        """Kill what halts, so often; what was there before each kill, and in the end."""
        until, kills = time.monotonic() + LOOP_S_MAX, 0
        while not self._is_over() and time.monotonic() < until:
            self.supervisor.tend()
            if halted := self._halted():
                yield self._seen(halted)
                kills += 1
                if kills == times:
                    self.halts.unlink()
                self.children[halted].popen.kill()
                self.children[halted].popen.wait()
            time.sleep(TURN_S)
        yield self._seen()

    def _halted(self) -> str:
        """The agent whose process has halted, once all that were killed before are back."""
        told = self.supervisor.status().processes.values()
        halted = (name for name, each in self.children.items() if HALTED in each.written())
        return "" if any(each.state != RUNNING for each in told) else next(halted, "")

    def _is_over(self) -> bool:
        """Whether the run is at rest, a process is not started again, or all were given up."""
        self.run.refresh_from_db()
        told = self.supervisor.status()
        stopped = [each.state == STOPPED for each in told.processes.values()]
        gave_up = told.supervisors[AGENTS].gave_up_ms > 0
        return self.run.state in AT_REST or (all(stopped) if gave_up else any(stopped))

    def _seen(self, killed: str = "") -> dict[str, Any]:
        """What the supervisor, the house log (incarnations) and Stripe (payments) say now."""
        told, sealed = self.supervisor.status(), self.sealing.incarnations
        processes = {
            name: {"pid": each.pid, "incarnation": sealed.get(name, 0)}
            for name, each in told.processes.items()
        }
        payments = len(stripe_view(self.run).succeeded)
        node = asdict(told.supervisors[AGENTS])
        return {"killed": killed, "before": processes, "payments": payments, "node": node}


def tools() -> dict[str, str]:
    """The tool that each step uses; what decides uses none."""
    return {name: step.tool or labels.CHARGE for name, step in current().steps.items()}


def crash(asked: Mapping[str, Any]) -> dict[str, object]:
    """Pay an invoice there while the process that does ``step`` is killed ``times`` times."""
    throwaway.THROUGH = tuple(asked["through"])
    schema.migrate()
    with stripe_in_reach(), queue_server() as url:
        run = create_run(new_workspace(), invoices.plain_invoice(), "plain.pdf")
        before = evidence.observe(str(run.id))
        tool, env = tools()[asked["step"]], worker_environment(url)
        house = House(run, tool, asked["moment"], asked["strategy"], env)
        try:
            house.supervisor.start()
            api.start(str(run.id), OPERATOR)
            seen = [*house.kill(asked["times"])]
        finally:
            house.supervisor.stop(STOP_S)
            house.sealing.close(STOP_S)
        found = evidence.gather(str(run.id), before)
        fsck = DataFolder(settings.NANOVM_DATA).run("fsck", "--json")
    return {
        **evidence.as_facts(found),
        "paid": outcomes.paid(run.code, found.stripe),
        "run_ended": decision(found.run) if found.after.ended else "",
        "killed_at": asked["step"],
        "supervisor": seen[-1]["node"],
        "kills": [
            {**each, "after": then["before"], "node": then["node"]} for each, then in pairwise(seen)
        ],
        "alerts": [each.alert._asdict() for each in alerts(None)],
        "recomputed": {"exit_status": fsck.status, **json.loads(fsck.said)},
    }
