"""Loads program and policy files: what it returns is checked, what it refuses has a place."""

from collections.abc import Iterable
from dataclasses import fields

from nanovm_core.core.budget import Limits
from nanovm_core.core.canonical import INTEGER_MAX, digest
from nanovm_core.core.policy import Policy
from nanovm_core.core.program import MODEL, Program, overreach
from nanovm_core.loading import policy_rows, program_rows
from nanovm_core.loading.checks import Parts, misfits, rule_misfits
from nanovm_core.loading.graph import Misfit
from nanovm_core.loading.policy_rows import DAYS_30_MS
from nanovm_core.loading.strict_toml import NAME, Row, Sheet

SOURCE_BYTES_MAX = 4_194_304  # 10,000 steps with room for comments
POLICY_BYTES_MAX = 262_144  # a policy that a person can still answer for
WARRANT_TTL_MS_MAX = 86_400_000
PROPOSALS_MAX = 1_000

_PROGRAM, _POLICY = "nanovm-program/1", "nanovm-policy/1"
_PROGRAM_KEYS = ("v", "name", "first", "agent", "policy", "limits", "slots", "tools", "grants")
_NAMED_BY = {"steps": "name", "grants": "tool", "rules": "id"}
_LIMITS_WITHIN = {  # the others: from 1
    "proposals_max": (1, PROPOSALS_MAX),
    "warrant_ttl_ms": (1, WARRANT_TTL_MS_MAX),
    "wall_ms_max": (1, DAYS_30_MS),
    "money_minor_max": (0, INTEGER_MAX),
}
_POLICY_KEYS = ("v", "name", "lifts", "rules", "windows", "budgets", "examples")


def load_program(source: bytes) -> Program:
    """Compile and check a program file (TOML, UTF-8). The same bytes give an equal program.

    Raises:
        ProgramError: PRG-001 not readable, PRG-002 inconsistent, PRG-004 a condition that does
            not fit. All faults are in it, by their places; the text is the first one's.
    """
    sheet = Sheet(source, code="PRG-001", what="program", size_max=SOURCE_BYTES_MAX)
    root = _versioned(sheet, _PROGRAM, (*_PROGRAM_KEYS, "rules", "windows", "budgets", "steps"))
    parts = _parts(root)
    _note(sheet, misfits(parts))
    name = root.text("name", like=NAME)
    agent, policy_file = root.text("agent", name, like=NAME), _beside(root)
    sheet.close()
    return Program(
        name=name,
        hash=digest(b"nanovm/program/v1\0", source),
        agent=agent,
        policy_file=policy_file,
        **parts._asdict(),
    )


def load_policy(source: bytes, program: Program | None = None) -> Policy:
    """Compile a policy file (TOML, UTF-8); with a program, checked against it too.

    ``Program.under`` makes the same checks, but does not know the file's lines any more.

    Raises:
        ProgramError: PRG-003 not readable, PRG-004 a condition that does not fit; with a
            program also PRG-005, a rule of the program that no policy may lift.
    """
    sheet = Sheet(source, code="PRG-003", what="policy", size_max=POLICY_BYTES_MAX)
    root = _versioned(sheet, _POLICY, _POLICY_KEYS)
    policy = Policy(
        name=root.text("name", like=NAME),
        hash=digest(b"nanovm/policy/v1\0", source),
        lifts=root.names("lifts"),
        rules=policy_rows.rules(root, leveled=False),
        windows=policy_rows.windows(root),
        budgets=policy_rows.budgets(root),
        examples=policy_rows.examples(root),
    )
    if program is not None:
        for path, text in overreach(program.rules, program.windows, policy):
            sheet.fault(path, text, "PRG-005")
        _note(sheet, rule_misfits(policy.rules, program.around(policy)))
    sheet.close()
    return policy


def _versioned(sheet: Sheet, version: str, known: Iterable[str]) -> Row:
    """The root of a file of this version; another version's keys mean something else."""
    root = sheet.root
    if root.table.get("v") != version:
        root.fault("v", f"expected v = {version!r}: no other version is understood")
        sheet.close()
    root.only(tuple(known))
    return root


def _parts(root: Row) -> Parts:
    tools, steps = program_rows.tools(root), program_rows.steps(root)
    return Parts(
        first=root.text("first", like=NAME),
        steps=steps,
        slots=program_rows.slots(root),
        tools=tools,
        grants=program_rows.grants(root),
        limits=_limits(
            root,
            asks=any(step.kind == MODEL for step in steps.values()),
            pays=any(tool.money for tool in tools.values()),
        ),
        rules=policy_rows.rules(root, leveled=True),
        windows=policy_rows.windows(root),
        budgets=policy_rows.budgets(root),
    )


def _limits(root: Row, *, asks: bool, pays: bool) -> Limits:
    row, usual = root.row("limits", "limits"), Limits()
    needed = {"proposals_max": asks, "money_minor_max": pays}
    known = tuple(each.name for each in fields(Limits))
    row.only(known)
    if "limits" not in root.table:
        root.fault("limits", "limits missing: say what one run may use, in [limits]", "PRG-002")
    for key, is_needed in needed.items():
        if is_needed and key not in row.table:
            row.fault(key, f"limits missing: {key} has no safe default here, so say it", "PRG-002")
    return Limits(
        **{
            key: row.integer(key, *_LIMITS_WITHIN.get(key, (1, INTEGER_MAX)), getattr(usual, key))
            for key in known
        }
    )


def _beside(root: Row) -> str:
    """The policy file, in or below the program's own folder."""
    name = root.text("policy", "", like=NAME)
    if ".." in name.split("/"):
        root.fault("policy", "it lies beside the program: a path without '..'")
    return name


def _note(sheet: Sheet, found: Iterable[Misfit]) -> None:
    """Note contradictions at their places: what has a name there has an index in the file."""
    noted = list(found)
    indexes = {part: _indexed(sheet, part, key) for part, key in _NAMED_BY.items() if noted}
    for misfit in noted:
        path = misfit.path
        if path[0] in indexes and len(path) > 1:
            place = indexes[str(path[0])].get(path[1])  # an unreadable name has none
            path = path[:1] if place is None else (path[0], place, *path[2:])
        if misfit.inside is not None:
            sheet.fault_within(path, misfit.text, misfit.code, misfit.inside, misfit.offset)
        else:
            sheet.fault(path, misfit.text, misfit.code)


def _indexed(sheet: Sheet, part: str, key: str) -> dict[str | int, int]:
    """Name → the index of the first row that bears it; no name is the empty one."""
    rows = sheet.root.table.get(part, [])
    names = (
        [row.get(key) for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []
    )
    named = [name if isinstance(name, str) else "" for name in names]
    return {name: place for place, name in reversed(list(enumerate(named)))}
