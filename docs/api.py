"""Draws the reference of the kernel's public names from its sources, which griffe reads."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from textwrap import dedent

import griffe

ROOT = Path(__file__).resolve().parent.parent
PUBLIC = "nanovm_core.public"
HEADING = """\
# The kernel's public names

Drawn from the docstrings by `make docs`. `from nanovm_core import …` gives every name but those of
the last group, which are imported from the module beside them. Times are integers of milliseconds
UTC, hashes are 64 lower-case hex digits, and money is an integer in minor units with a currency. A
code such as FSM-002 is explained in [rules.toml](../nanovm_core/rules.toml), other terms in the
[glossary](glossary.md). [The tutorial](tutorial.md) uses most of these names.
"""
GROUPS: Mapping[str, tuple[str, ...]] = {
    "Deciding": ("transition", "begin", "Decision", "Snapshot", "Scalar"),
    "A run in memory": (
        *("ExecutionVM", "InMemoryLedger", "Answer", "Done", "Failed", "Unknown", "Waiting"),
        "Said",
    ),
    "Events": (
        *("RunStarted", "AnswerArrived", "Approved", "Declined", "PauseRequested"),
        *("ResumeRequested", "StepRequested", "KillRequested", "TimePassed"),
    ),
    "Programs and policies": ("load_program", "load_policy", "run_examples", "Program"),
    "Conditions and projections": ("ASTEngine", "DeterministicSanitizer"),
    "The record": ("canonical_hash", "check_chain", "decode"),
    "Errors": (
        *("NanovmError", "ProgramError", "ConditionError", "RefusedError", "VerificationError"),
    ),
    "What the signatures name": (
        *("nanovm_core.core.events.Context", "nanovm_core.core.events.Event"),
        *("nanovm_core.core.events.EffectDone", "nanovm_core.core.events.EffectFailed"),
        *("nanovm_core.core.events.EffectUnknown", "nanovm_core.core.events.EffectWaiting"),
        *("nanovm_core.core.events.ProposalReceived", "nanovm_core.core.messages.Effect"),
        *("nanovm_core.core.messages.Draft", "nanovm_core.core.messages.Refusal"),
        *("nanovm_core.core.messages.Commitment", "nanovm_core.core.messages.Reservation"),
        *("nanovm_core.core.envelope.Stored", "nanovm_core.conditions.Condition"),
    ),
}


def page() -> str:
    """The reference, as Markdown."""
    loader = griffe.GriffeLoader(
        search_paths=[ROOT],
        docstring_parser="google",
        docstring_options={"returns_multiple_items": False},
    )
    loader.load(PUBLIC)
    loader.resolve_aliases(external=False)
    known = loader.modules_collection
    lines = [HEADING]
    for group, names in GROUPS.items():
        links = " · ".join(f"[{_short(name)}](#{_short(name).lower()})" for name in names)
        lines.append(f"- {group}: {links}")
    for group, names in GROUPS.items():
        lines.append(f"\n## {group}")
        for name in names:
            found = known[name if "." in name else f"{PUBLIC}.{name}"]
            lines += _entry(found.final_target if found.is_alias else found, name)
    return "\n".join(lines) + "\n"


def _short(name: str) -> str:
    return name.rpartition(".")[2]


def _entry(found: griffe.Object, name: str) -> Iterator[str]:
    """A name's heading, signature and docstring; of a class, those of its public methods too."""
    yield f"\n### {_short(name)}\n"
    if "." in name:
        yield f"From `{name.rpartition('.')[0]}`.\n"
    yield from _signed(found)
    if isinstance(found, griffe.Class):
        for member in found.members.values():
            if member.docstring and (member.is_public or member.name == "__init__"):
                yield f"\n#### {_short(name)}.{member.name}\n"
                yield from _signed(member)


def _signed(found: griffe.Object | griffe.Alias) -> Iterator[str]:
    """The signature as the source has it, and the docstring with its sections as lists."""
    yield "```python\n" + dedent("\n".join(_signature(found))).rstrip(":") + "\n```"
    for section in found.docstring.parsed if found.docstring else ():
        if section.kind is griffe.DocstringSectionKind.text:
            yield "\n" + _markdown(section.value)
            continue
        yield f"\n{section.kind.value.capitalize()}:\n"
        for item in section.value:
            what = f"`{item.annotation}`: " if item.annotation else ""
            yield f"- {what}{_markdown(' '.join(item.description.split()))}"


def _signature(found: griffe.Object | griffe.Alias) -> list[str]:
    """The lines before the docstring and, of a class, those of its public fields."""
    if found.docstring is None or found.docstring.lineno is None or found.lineno is None:
        return found.lines
    lines = found.lines[: found.docstring.lineno - found.lineno]
    for each in found.members.values() if found.is_class else ():
        if isinstance(each, griffe.Attribute) and each.is_public and "property" not in each.labels:
            lines += each.lines if each.annotation else []
    return lines


def _markdown(text: str) -> str:
    return re.sub(r"``([^`]+)``", r"`\1`", text)
