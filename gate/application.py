"""The operator's programs for agents from outside, each an application of its own.

Each ``*.toml`` that is an ``nanovm-program/1`` is one: those in ``programs`` beside this file, and
those in the folder that NANOVM_GATE names. Program and policy are read once, at the start: a
process behind walls cannot read them later, and a change takes effect with the next start. One
that cannot be used is left out, logged and named on /healthz: no other program waits for it.
"""

import logging
import re
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path

from engine.application import DEFAULT, Adapter, Application, install, installed
from engine.errors import PermanentError
from engine.privacy.erasure import CLEAR
from engine.store import programs, records
from engine.vault import secret_store
from engine.work import Answer, Work
from gate import listed
from gate.models import Call
from gate.replies import REASONS, GateError
from nanovm_core.core.authority.budget import AGENT
from nanovm_core.core.authority.capabilities import Tool
from nanovm_core.core.events import ProposalReceived
from nanovm_core.core.messages import Commitment
from nanovm_core.core.program import AUTHORIZED, MODEL, Program
from nanovm_core.errors import ProgramError

log = logging.getLogger(__name__)

SHIPPED = Path(__file__).with_name("programs")
FORMAT = "nanovm-program/1"
NAME = re.compile("[a-z][a-z0-9_]{0,39}")  # a token has it between dots
RESULT = "result"  # the slot of what a tool answered
BROKEN: dict[str, str] = {}  # by file: why it was left out


class GateProgram(Application):
    """What an agent from outside may call, and how each call is judged.

    Raises:
        ProgramError: PRG-…, program or policy cannot be used; OSError, they cannot be read.
    """

    codes = REASONS
    why_kept = {
        CLEAR: "They are in clear, can be personal data, and no erasure removes them. They prove"
        " what was asked (Art. 17(3)(e) GDPR)."
    }

    def __init__(self, file: Path) -> None:
        self.program_file, self._source = file, file.read_bytes()
        program = programs.compiled(self._source)
        _require_shape(program)
        self.name = program.name
        self.policy_files = {DEFAULT: file.parent / program.policy_file}
        self._policy = self.policy_files[DEFAULT].read_bytes()
        _require_shape(programs.ruled(self._source, self._policy))
        self._tools = tuple(program.tools)

    def source(self) -> bytes:
        return self._source

    def policy_source(self, name: str = DEFAULT) -> bytes:
        return self._policy if name == DEFAULT else super().policy_source(name)

    def adapters(self) -> Mapping[str, Adapter]:
        return {**dict.fromkeys(self._tools, perform), programs.ASK: propose}

    def outside(self, program: Program, tool: str) -> bool:
        return tool in program.grants and not program.tools[tool].at


class CallList(GateProgram):
    """The first of the programs, which keeps the list of the calls of all."""

    tables = {Call: ("run_id", "workspace_id")}
    recorded = staticmethod(listed.record)
    audit_log = staticmethod(listed.log_damage)
    audit_run = staticmethod(listed.run_damage)


def of_name(program: str) -> GateProgram:
    """The program of this name; GateError GAT-014 where it cannot be used."""
    for each in installed():
        if each.name == program and isinstance(each, GateProgram):
            return each
    raise GateError("GAT-014", f"The program {program!r} cannot be used here.")


def granted(program: Program) -> list[Tool]:
    """The tools that an agent of this program may call, by name."""
    return [program.tools[name] for name in sorted(program.grants)]


def propose(work: Work) -> Answer:
    """The call that the agent asked for: its run goes on without it, once a budget was raised."""
    secret = listed.secrets_of(records.stored_envelopes(work.run.name))[listed.PROPOSAL]
    raw = secret_store.read_bytes([secret["ref"]])[secret["ref"]]
    if raw is None:
        raise PermanentError("PII-002", "What the agent asked for was erased.")
    event = ProposalReceived(raw=raw, secret=Commitment(**secret), key=work.effect.key)
    return Answer(event=event)


def perform(work: Work) -> Answer:
    """Have the upstream that the run's own program names make a call."""
    adapter: Adapter = import_module("gate.upstreams").perform  # with its clients, which few need
    return adapter(work)


def install_from(folder: Path) -> None:
    """Install each program of a folder that can be used; of the others ``BROKEN`` says why not."""
    files: dict[str, list[Path]] = {}
    for file in sorted(folder.glob("*.toml")):
        with _named_where_left_out(file):
            said = tomllib.loads(file.read_text(encoding="utf-8"))
            if said.get("v") == FORMAT:
                files.setdefault(str(said.get("name")), []).append(file)
    for name, same in files.items():
        for file in same:
            with _named_where_left_out(file):
                if others := [each.name for each in same if each != file]:  # which has its tokens?
                    raise ValueError(f"{others[0]} has the program {name} too: rename one")
                has_list = any(isinstance(each, GateProgram) for each in installed())
                install((GateProgram if has_list else CallList)(file))


@contextmanager
def _named_where_left_out(file: Path) -> Iterator[None]:
    try:
        yield
    except (ProgramError, ValueError, OSError) as error:
        BROKEN[file.name] = f"{file}: {error}"
        log.error("the gate's program %s is left out: %s", file, error)  # noqa: TRY400


def _require_shape(program: Program) -> None:
    """Return if a program asks an agent, judges its call and makes it, in this order (PRG-002)."""
    ask, slot = program.steps[program.first], program.slots.get(RESULT)
    calls = [step for step in program.steps.values() if step.call == AUTHORIZED]
    fills = slot is not None and slot.type == "ref" and all(RESULT in s.fills for s in calls)
    budgets = (*program.budgets, *program.policy.budgets)
    ttl_ms = 0 if all(t.at for t in granted(program)) else program.limits.warrant_ttl_ms
    most_ms = min((step.timeout_ms for step in calls), default=0)
    wanted = {
        f"its name must match {NAME.pattern}": NAME.fullmatch(program.name),
        'it must name its policy: add policy = "…"': program.policy_file,
        f"its first step must be of kind model, with tool {programs.ASK}": (ask.kind, ask.tool)
        == (MODEL, programs.ASK),
        "proposals_max must be 1: a refusal ends its call": program.limits.proposals_max == 1,
        f"a step with call = {AUTHORIZED!r} must fill {RESULT!r}, a ref": calls and fills,
        f"a warrant outlives its report: say limits.warrant_ttl_ms = {most_ms}": ttl_ms <= most_ms,
        f'its budgets would bind all programs of a log: say scope = "{AGENT}"': all(
            each.scope == AGENT for each in budgets
        ),
    }
    for text in (text for text, holds in wanted.items() if not holds):
        raise ProgramError("PRG-002", f"{program.name} is no program of the gate: {text}")
