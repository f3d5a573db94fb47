"""Where a program itself would let advice decide what is called, or with what (PRG-007)."""

from collections.abc import Iterator

from nanovm_core.core.authority.advice import Advice, advised
from nanovm_core.core.authority.origin import ADVISOR
from nanovm_core.core.projection import HIDDEN
from nanovm_core.loading.graph import Misfit
from nanovm_core.loading.places import Path
from nanovm_core.loading.schema import Parts


def misfits(parts: Parts, advice: Advice) -> Iterator[Misfit]:
    """Every place but a rule by which advice could reach a granted call; rules: ``scope``."""
    for path, slot, what, to_do in _uses(parts):
        if slot in advice.slots:
            text = f"the slot {slot!r} rests on advice, and {what}"
            yield Misfit(path, f"{text}: {to_do}", "PRG-007")
    for name in parts.grants:
        if name in parts.tools and parts.tools[name].origin == ADVISOR:
            text = f"the grant of {name}: an advisor can fail the call, and rules count that"
            yield Misfit(("grants", name, "tool"), f"{text}: take it away", "PRG-007")
    paths = advice.paths(parts.facts)
    for step in parts.steps.values():
        for place, branch in enumerate(step.next):
            read = advised(branch.when, paths) if branch.when else None
            if read:
                at = ("steps", step.name, "next", place, "when")
                text = f"step {step.name}: ${read[0]} rests on advice, which may choose no way"
                yield Misfit(at, f"{text}: guard by another value", "PRG-007", read[1])
    for name in advice.choosing:
        text = f"step {name}: an advisor could fail it, and that leads to a granted call"
        to_do = "let it fail to 'failed', or to where it leads anyway"
        yield Misfit(("steps", name, "on_error"), f"{text}: {to_do}", "PRG-007")


def _uses(parts: Parts) -> Iterator[tuple[Path, str, str, str]]:
    """Each slot that decides about granted calls, and how: its place, name, use, and remedy."""
    for name, shown in parts.slots.items():
        if shown.model != HIDDEN:
            yield ("slots", name, "model"), name, "a model is shown it", "hide it"
    for grant in parts.grants.values():
        for arg, limit in grant.where.items():
            path: Path = ("grants", grant.tool, "where", arg, "equals_slot")
            what = f"the grant of {grant.tool} compares {arg} with it"
            yield path, limit.equals_slot or "", what, "compare with another"
    for tool in parts.tools.values():
        for arg, source in tool.critical.items():
            path = ("tools", tool.name, "critical", arg)
            yield path, source.slot, f"{arg} of {tool.name} must equal it", "name another slot"
    for step in parts.steps.values():
        if step.call or step.accepts or step.tool in parts.grants:
            what = "a model is asked with it" if step.accepts else "a granted call is made with it"
            for arg, slot in step.args.items():
                yield ("steps", step.name, "args", arg), slot, what, "take another slot"
