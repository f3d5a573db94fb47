"""A data folder with processes of its own, in which an agent's process is killed again and again.

The processes are real and under a real supervisor; they have to be started from a main thread, so
this is a program of its own (``sabotage.crashes``). What it reports is read from the
folder's records and from its Stripe counterpart.
"""

import json
import os
import re
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from django.conf import settings

from engine.management import schema
from engine.models import Envelope, Run
from engine.ops.members import GAVE_UP, STARTED, Happened, Member, Spawn
from engine.ops.process_file import RUNNING, STOPPED
from engine.ops.processes import ROOT, Child, spawn_celery_worker
from engine.ops.supervisor import Supervisor
from engine.runtime import api
from engine.runtime.processes import Sealing
from engine.store import actors, ledgers
from nanovm_core.agents import CHAIN
from nanovm_core.core.envelope import LOG_RUN, body_of
from nanovm_core.supervision import SIMPLE_ONE_FOR_ONE, TRANSIENT, Spec
from nanovm_core.supervision import Child as Template
from pipeline import labels
from pipeline.application import current
from pipeline.create_run import create_run
from pipeline.ops.stripe_counterpart import stripe_in_reach
from pipeline.register.sample_register import new_workspace
from pipeline.reports import decision
from sabotage.campaign import AT_REST, OPERATOR, queue_server, worker_environment
from sabotage.crashes.worker import HALTED
from sabotage.gallery.kit import invoices
from sabotage.gallery.kit.outcomes import paid
from sabotage.kit import throwaway
from sabotage.kit.evidence import as_facts, gather, observe
from sabotage.kit.stripe_view import stripe_view

AGENTS = "agents"  # the supervisor
HALTING = "sabotage.crashes.worker"
LOOP_S_MAX = 60.0  # for a busy machine; five restarts take twenty on an idle one
STOP_S = 1.0
PID = re.compile(r"pid (\d+)")
TURN_S = 0.02


def tree_of(strategy: str, names: tuple[str, ...], killed: str) -> tuple[Spec, tuple[str, ...]]:
    """The tree with the supervisor of the process that is killed, and the names of all processes.

    A template is one program: two instances of what is killed, and the others are no part of it.
    """
    if strategy != SIMPLE_ONE_FOR_ONE:
        own = Spec(AGENTS, strategy, children=(*map(Template, names),), restart=TRANSIENT)
        return Spec("root", children=(own,)), names
    own = Spec(AGENTS, strategy, children=(Template(killed),), restart=TRANSIENT)
    others = tuple(each for each in names if each != killed)
    instances = (f"{killed}-1", f"{killed}-2")
    return Spec("root", children=(*map(Template, others), own)), (*others, *instances)


@dataclass(slots=True, kw_only=True)
class House:
    """The processes under attack. ``tool``: after its use they are killed, ``times`` times."""

    env: Mapping[str, str]
    tool: str
    times: int
    run: Run
    supervisor: Supervisor = field(init=False)
    sealing: Sealing = field(default_factory=lambda: Sealing(lambda: None))
    kills: list[dict[str, Any]] = field(default_factory=list)
    children: dict[str, Child] = field(default_factory=dict)
    gave_up: str = ""

    @property
    def halts(self) -> Path:
        """The file that is there as long as another kill is to come."""
        return Path(settings.NANOVM_DATA) / "halts"

    def member(self, name: str) -> Member:
        """An agent's process, which halts after the use of the tool."""
        agent = name.partition("-")[0]

        def spawn(given: Spawn) -> Child:
            env = {**self.env, "NANOVM_AGENT": agent, "NANOVM_PROCESS": given.tag}
            program = (*throwaway.THROUGH, HALTING, self.tool, str(self.halts))
            self.children[name] = spawn_celery_worker(env, program, name)
            return self.children[name]

        return Member(name=name, spawn=spawn, agent=agent)

    def told(self, what: Happened) -> None:
        """Have it sealed, and note what the supervisor did since the newest kill."""
        self.sealing.told(what)
        if self.kills and what.what in (STARTED, GAVE_UP):
            newest, node = self.kills[-1], self.supervisor.status()["supervisors"][AGENTS]
            newest["failures"] = len(node["ends_ms"])
            if what.what == STARTED:
                newest["started"].append({"process": what.name, "pid": what.pid})
            else:
                self.gave_up = what.text

    def kill_what_halts(self) -> None:
        """Kill the process that used the tool, once all those killed before are back."""
        processes = self.supervisor.status()["processes"].values()
        if any(each["state"] != RUNNING for each in processes):
            return
        for name, child in self.children.items():
            if HALTED in child.written():
                self.kills.append(
                    {
                        "process": name,
                        "pid": child.popen.pid,
                        "pids_before": {each: of.popen.pid for each, of in self.children.items()},
                        "payments": len(stripe_view(self.run).succeeded),
                        "started": [],
                    }
                )
                if len(self.kills) == self.times:
                    self.halts.unlink()
                os.kill(child.popen.pid, signal.SIGKILL)
                child.popen.wait()
                return

    @property
    def is_over(self) -> bool:
        """Whether the run is at rest, or nobody will go on with it."""
        self.run.refresh_from_db()
        processes = self.supervisor.status()["processes"]
        killed = self.kills[-1]["process"] if self.kills else ""
        return self.run.state in AT_REST or (killed != "" and processes[killed]["state"] == STOPPED)


def crash(asked: Mapping[str, Any]) -> dict[str, object]:
    """Pay an invoice there while the process that does ``step`` is killed ``times`` times."""
    throwaway.THROUGH = tuple(asked["through"])
    steps = {name: step.tool or labels.CHARGE for name, step in current().steps.items()}
    tool, agents = steps[asked["step"]], dict.fromkeys(map(actors.of_tool, steps.values()))
    spec, names = tree_of(asked["strategy"], (*agents,), actors.of_tool(tool))
    schema.migrate()
    with stripe_in_reach(), queue_server() as url:
        run = create_run(new_workspace(), invoices.plain_invoice(), "plain.pdf")
        before = observe(str(run.id))
        house = House(env=worker_environment(url), tool=tool, times=asked["times"], run=run)
        _attack(house, spec, names)
        found = gather(str(run.id), before)
        sums: dict[str, object] = {
            "paid": paid(run.code, found.stripe),
            "run_ended": decision(house.run),
        }
        sums |= {"killed_at": asked["step"], "recomputed": _fsck()}
    return {**as_facts(found), **sums, **_of_processes(house)}


def _attack(house: House, spec: Spec, names: tuple[str, ...]) -> None:
    house.halts.touch()
    house.supervisor = Supervisor(
        spec,
        [house.member(each) for each in names],
        told=house.told,
        sealed=house.sealing.sealed,
        instances={AGENTS: [each for each in names if "-" in each]},
    )
    try:
        house.supervisor.start()
        api.start(str(house.run.id), OPERATOR)
        until = time.monotonic() + LOOP_S_MAX
        while not house.is_over and time.monotonic() < until:
            house.supervisor.tend()
            house.kill_what_halts()
            time.sleep(TURN_S)
    finally:
        house.supervisor.stop(STOP_S)
        house.sealing.close(STOP_S)


def _of_processes(house: House) -> dict[str, object]:
    """The kills with what followed them, by the supervisor and by the house log."""
    sealed, node = [*_sealed()], house.supervisor.status()["supervisors"][AGENTS]
    started = [each for each in sealed if each["move"] == "Started"]
    incarnations = {
        pid: each["incarnation"] for each in started for pid in PID.findall(each["text"])
    }
    for kill in house.kills:
        for each in kill["started"]:
            each["incarnation"] = incarnations.get(str(each["pid"]), 0)
    limits = {name: node[name] for name in ("strategy", "max_restarts", "within_s")}
    return {
        "kills": house.kills,
        "supervisor": {"name": AGENTS, **limits},
        "gave_up": house.gave_up,
        "alert": _alert(),
        "recorded_of_processes": sealed,
    }


def _sealed() -> Iterator[dict[str, Any]]:
    """What the house log says of the processes, oldest first."""
    rows = Envelope.objects.filter(workspace=ledgers.house(), run__startswith=CHAIN)
    for row in rows.order_by("seq"):
        said = body_of(bytes(row.bytes))
        yield {
            "process": row.run.removeprefix(CHAIN),
            "event": row.n + 1,
            "move": said["state"]["event"],
            "incarnation": said["out"].get("incarnation", 1),
            "text": said["out"].get("text", ""),
        }


def _alert() -> dict[str, object]:
    """The newest alert of the house log; empty where it has none."""
    rows = Envelope.objects.filter(workspace=ledgers.house(), run=LOG_RUN, kind="alert")
    for row in rows.order_by("-seq")[:1]:
        [said] = body_of(bytes(row.bytes))["alerts"].values()
        return {"event": row.n + 1, "hash": row.hash, **said}
    return {}


def _fsck() -> dict[str, object]:
    """What ``manage.py fsck`` finds when it recomputes all of the folder's logs."""
    ran = subprocess.run(  # noqa: S603 - our own command
        throwaway.command("manage", "fsck", "--json"),
        cwd=ROOT,
        env=throwaway.environment(settings.NANOVM_DATA),
        capture_output=True,
        text=True,
        check=False,
    )
    said = json.loads(ran.stdout)
    return {"exit_status": ran.returncode, **{name: said[name] for name in ("envelopes", "damage")}}
