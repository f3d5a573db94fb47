"""Runs of the deployment gate (``tests/vectors/gate.toml``), a program that is not about money."""

import json
from collections.abc import Mapping

from nanovm_core.core.messages import Decision, RunId, Scalar
from nanovm_core.core.program import Program
from nanovm_core.loading import load_policy, load_program
from tests.core.kit.builders import ROOT, RUN, Scene, secret

VECTORS = ROOT / "tests/vectors"
DEPLOY = "cluster.deploy"
OPEN: Mapping[str, int] = {
    "agent/calls": 100,
    "workspace/tokens": 1_000_000,
    "global/steps": 10_000,
}


def gate(*edits: tuple[str, str], policy: str = "") -> Program:
    """The deployment gate, its text changed in these places."""
    text = (VECTORS / "gate.toml").read_text()
    for old, new in edits:
        assert text.count(old) == 1, f"{old!r} is there {text.count(old)} times"
        text = text.replace(old, new)
    program = load_program(text.encode())
    if not policy:
        return program
    return program.under(load_policy((VECTORS / policy).read_bytes(), program))


def in_step(name: str, old: str, new: str) -> tuple[str, str]:
    """An edit of one line of one step."""
    text = (VECTORS / "gate.toml").read_text()
    start = text.index(f'name = "{name}"\nkind')
    whole = text[start : text.find("[[steps]]", start)]
    assert whole.count(old) == 1, f"step {name} has {old!r} {whole.count(old)} times"
    return whole, whole.replace(old, new)


def deploy(tool: str = DEPLOY, **args: object) -> bytes:
    """What a good model proposes; keywords change arguments, None leaves one out."""
    good: dict[str, object] = {"artifact": "v2", "region": "eu-1", "replicas": 3}
    given = {name: value for name, value in {**good, **args}.items() if value is not None}
    return json.dumps({"tool": tool, "args": given}).encode()


class Deployment(Scene):
    def __init__(
        self,
        rules: Program | None = None,
        *,
        risk: int = 1,
        frozen: bool = False,
        stepping: bool = False,
        agent: str = "",
        run: RunId = RUN,
    ) -> None:
        slots: dict[str, Scalar] = {"change": "c-17", "risk": risk, "frozen": frozen}
        author = [secret("author", 1)]
        super().__init__(rules or gate(), slots, author, stepping=stepping, agent=agent, run=run)
        self.ledger = OPEN

    def built(self, **out: Scalar) -> Decision:
        return self.done({"artifact": "v2", "tests_failed": 0, **out})

    def to_build(self) -> "Deployment":
        self.start()
        return self

    def to_window(self) -> "Deployment":
        """Go up to where a risky change waits; begin with risk=7 or more."""
        self.start()
        self.built()
        return self

    def to_plan(self) -> "Deployment":
        """Go up to the model's question, through the window where there is one."""
        self.to_window()
        if self.now.awaits:
            self.arrives({"opened_by": "ops"})
        return self

    def to_deploy(self, raw: bytes = b"") -> "Deployment":
        self.to_plan()
        self.say(raw or deploy(), tokens=1_000)
        return self
