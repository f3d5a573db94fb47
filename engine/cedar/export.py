"""A policy under its program, written as Cedar policies with their schema.

A Cedar policy that errs is skipped; a rule of ours that errs denies. So each variable that can be
missing is read behind ``has``, and each rule that reads one has a ``forbid`` for where it is.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from nanovm_core.conditions.operators import compiled
from nanovm_core.conditions.syntax import LITERAL, VARIABLE, Node, Value, tree
from nanovm_core.core.authority import policy
from nanovm_core.core.authority.arguments import LIST
from nanovm_core.core.authority.capabilities import Tool
from nanovm_core.core.authority.scope import READS
from nanovm_core.core.program import Program
from nanovm_core.errors import ProgramError

CONDITION_CHARS_MAX = 65_536  # of one condition in Cedar: facts that read facts double each time
_KINDS = {"string": "String", "integer": "Long", "boolean": "Bool"}
_ALWAYS = ("agent", "tool", "run", "proposal")  # what no call is judged without
_RECORDS = ("slots", "origin", "history", "fact")
_RESERVED = frozenset(("true", "false", "if", "then", "else", "in", "is", "like", "has"))
_HEAD = """\
// The rules of program {program} under the policy {policy}, written by `manage.py policy cedar`.
// Schema, grants, origins, rates and budgets of a call are no rules: nanovm holds calls to them.
// It also counts what is in context.history, and lifts a hold that a person approved.
"""


class Exported(NamedTuple):
    """Policies and schema; ``unmapped``: what Cedar does not say of the policy, and why."""

    policies: str
    schema: str
    unmapped: tuple[str, ...]


class _UnmappedError(Exception):
    """Cedar has no such condition."""


def exported(program: Program) -> Exported:
    """The rules in force at admission and on proposals; of a call, the action names its tool.

    Read by ``engine.cedar.port``, it decides as they do. What is left out or is weaker there is in
    ``unmapped``, and in a comment of the policies.
    """
    writer = _Writer(program)
    policies = [text for rule in writer.rules for text in writer.policies(rule)]
    unmapped = (*writer.unmapped, *_budgets(program))
    said = [f"// Not in Cedar: {each}\n" for each in unmapped]
    head = _HEAD.format(program=program.name, policy=program.policy.name)
    return Exported("\n".join([head + "".join(said), *policies]), writer.schema(), unmapped)


def schema_of(file: Path) -> Path:
    """Where the schema of a file of policies lies: beside it, as ``.cedarschema``.

    Raises:
        ProgramError: PRG-003, where the file is not called ``.cedar``.
    """
    if file.suffix != ".cedar":
        text = f"{file} is not called .cedar: name Cedar's policies so, with their schema beside"
        raise ProgramError("PRG-003", f"{text} them as .cedarschema")
    return file.with_suffix(".cedarschema")


def action(at: str, tool: str) -> str:
    """The id of Cedar's action: a stage, and of a call its tool, whose name has no blank."""
    return f"{at} {tool}" if tool else at


def _budgets(program: Program) -> Iterator[str]:
    for each in (*program.budgets, *program.policy.budgets):
        name = "/".join(filter(None, (each.scope, each.unit, each.currency)))
        yield f"budget {name}: Cedar counts nothing, so nanovm alone holds calls to it"


class _Writer:
    """Writes the rules of one program; ``unmapped`` grows as it meets what Cedar does not have."""

    def __init__(self, program: Program) -> None:
        both = (*program.facts, *program.policy.facts)
        self._scope, self._tools = program.scope(program.policy), sorted(program.grants)
        self._facts = {f"fact.{fact.name}": tree(fact.when.text) for fact in both}
        self._unseen = program.advice.paths(both)
        self.rules = policy.in_force(program.rules, program.policy)
        self.unmapped: list[str] = []

    def schema(self) -> str:
        """The contexts of admission and of a call of each granted tool; the kernel's, whole."""
        common = self._scope.guard_types()
        contexts = {action(policy.ADMISSION, ""): common}
        for name in self._tools:
            tool = self._scope.tools[name]
            more = {**self._scope.proposal_types(tool), **_unread(tool)}
            contexts[action(policy.AUTHORIZE, name)] = {**common, **more}
        said = [
            f'action "{name}" appliesTo {{ principal: Agent, resource: Workspace, context: {{\n'
            f"{_attributes(types)}}} }};\n"
            for name, types in contexts.items()
        ]
        return "\n".join(["entity Agent;\nentity Workspace;\n", *said])

    def policies(self, rule: policy.PolicyRule) -> Iterator[str]:
        """The rule as Cedar has it, and what denies where it cannot be evaluated."""
        if rule.at == policy.OUTCOME:
            return self._note(rule, "it judges a call that has ended, and Cedar only one to come")
        try:
            known, fires = self._said(tree(rule.when.text))
        except _UnmappedError as error:
            return self._note(rule, f"it is left out: {error}")
        if rule.outcome == policy.SUSPEND:
            self._note(rule, "it denies here, but suspends no agent")
        tools = [name for name in self._tools if name in (rule.tools or self._tools)]
        names = [""] if rule.at == policy.ADMISSION else tools
        actions = ", ".join(f'Action::"{action(rule.at, name)}"' for name in names)
        about = f"(principal, action in [{actions}], resource)"
        notes = " ".join(f"@{name}({_quoted(text)})" for name, text in _notes(rule).items())
        effect = "permit" if rule.outcome == policy.ALLOW else "forbid"
        yield f"{notes}\n{effect}{about}\nwhen {{ {fires} }};\n"
        if known != "true":
            why = f"Rule {rule.id} could not be evaluated, so the call is denied."
            notes = f'@id("{rule.id} without a value") @why({_quoted(why)})'
            yield f"{notes}\nforbid{about}\nunless {{ {known} }};\n"
        return None

    def _note(self, rule: policy.PolicyRule, why: str) -> None:
        self.unmapped.append(f"rule {rule.id}: {why}")

    def _said(self, node: Node) -> tuple[str, str]:
        """Whether a condition has an answer, and whether it is true; neither ever errs."""
        if node.kind in ("and", "or"):
            parts = [self._said(child) for child in node.children]
            known, fires = parts[-1]
            for first, holds in reversed(parts[:-1]):
                ends = f"!({holds})" if node.kind == "and" else holds
                known = _all(first, "true" if known == "true" else f"({ends} || {known})")
            joined = " && " if node.kind == "and" else " || "
            fires = "(" + joined.join(holds for _, holds in parts) + ")"
        elif node.kind == "not":
            known, fires = self._said(node.children[0])
            fires = f"!({fires})"
        else:
            known, fires = self._compared(node) if node.children else self._value(node)
            fires = f"({_all(known, fires)})"
        if len(known) + len(fires) > CONDITION_CHARS_MAX:
            raise _UnmappedError(f"in Cedar it is over {CONDITION_CHARS_MAX} characters")
        return known, fires

    def _compared(self, node: Node) -> tuple[str, str]:
        left, right, sign = *node.children, node.kind
        if left.kind == right.kind == LITERAL:
            return "true", _literal(compiled(node).run({}))
        if sign == "contains":
            left, right, sign = right, left, "in"
        if sign in ("in", "not in"):
            known, fires = self._member(left, right)
            return known, f"!({fires})" if sign == "not in" else fires
        (one, this), (other, that) = self._value(left), self._value(right)
        return _all(one, other), f"{this} {sign} {that}"

    def _member(self, one: Node, among: Node) -> tuple[str, str]:
        """Whether a value is in a list of literals, or a literal in a text."""
        if isinstance(among.value, tuple) and among.kind == LITERAL:
            known, this = self._value(one)
            listed = ", ".join(map(_literal, among.value))
            return known, f"[{listed}].contains({this})" if listed else "false"
        if one.kind == LITERAL and isinstance(one.value, str):
            known, that = self._value(among)
            return known, f"{that} like {_quoted(one.value, like=True)}"
        raise _UnmappedError("Cedar finds a text within another only where the first is a literal")

    def _value(self, node: Node) -> tuple[str, str]:
        """Whether what is compared has a value, and the value where it has."""
        if node.kind == LITERAL:
            return "true", _literal(node.value)
        if node.kind != VARIABLE:
            return self._said(node)
        path = ".".join(node.path)
        if path in self._facts:
            return self._said(self._facts[path])
        if path in self._unseen:
            raise _UnmappedError(f"it reads {path}, an advisor's word, which no decider is shown")
        first, *rest = node.path
        if first in _ALWAYS:
            known = "true"
        elif rest[0] in _RESERVED:
            known = f'context.{first} has "{rest[0]}"'
        else:
            known = f"context has {path}"
        return known, "".join(("context", *map(_attribute, node.path)))


def _unread(tool: Tool) -> dict[str, str]:
    """What no rule of ours reads of a call, and a decider is shown: lists, what may be absent."""
    found = {}
    for name, spec in tool.args.items():
        if spec.may_lack or spec.type == LIST:
            kind = _KINDS[READS[spec.item]]
            kind = f"Set<{kind}>" if spec.type == LIST else kind
            found[f"proposal.{name}"] = kind + "?" * spec.may_lack
    return found


def _attribute(name: str) -> str:
    return f'["{name}"]' if name in _RESERVED else f".{name}"


def _attributes(types: Mapping[str, str]) -> str:
    """A context's attributes in Cedar; what a run may lack is optional."""
    records: dict[str, list[str]] = {name: [] for name in _RECORDS}
    said = []
    for path, kind in types.items():
        first, _, name = path.partition(".")
        mark = "?" if first not in _ALWAYS or kind.endswith("?") else ""
        if name:
            said_of = _KINDS.get(kind, kind.rstrip("?"))
            records.setdefault(first, []).append(f'"{name}"{mark}: {said_of}')
        else:
            said.append(f"  {first}: {_KINDS[kind]},\n")
    for name, parts in records.items():
        mark = "" if name in (*_ALWAYS, *_RECORDS) else "?"
        said.append(f"  {name}{mark}: {{ {', '.join(parts)} }},\n")
    return "".join(said)


def _notes(rule: policy.PolicyRule) -> dict[str, str]:
    notes = {
        "id": rule.id,
        "why": rule.why,
        "outcome": policy.HOLD if rule.outcome == policy.HOLD else "",
        "approvable": "true" if rule.approvable else "",
        "again_from": rule.again_from,
        "check": policy.ANOMALY if rule.check == policy.ANOMALY else "",
    }
    return {name: text for name, text in notes.items() if text}


def _all(*parts: str) -> str:
    return " && ".join(each for each in dict.fromkeys(parts) if each != "true") or "true"


def _literal(value: Value) -> str:
    return _quoted(value) if isinstance(value, str) else str(value).lower()


def _quoted(text: str, *, like: bool = False) -> str:
    """A string of Cedar; ``like``: a pattern for what contains the text."""
    said = "".join(
        each if each.isprintable() and each not in '"\\' else f"\\u{{{ord(each):x}}}"
        for each in text
    )
    return '"*' + said.replace("*", "\\*") + '*"' if like else f'"{said}"'
