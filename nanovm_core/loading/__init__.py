"""Loads program and policy files; every fault has its line and column."""

from collections.abc import Iterable
from dataclasses import fields

from nanovm_core.core.authority.policy import Policy
from nanovm_core.core.canonical import digest
from nanovm_core.core.program import MODEL, Program, overreach
from nanovm_core.loading.checks import misfits, rule_misfits
from nanovm_core.loading.graph import Misfit
from nanovm_core.loading.schema import Parts, keys_of, read
from nanovm_core.loading.strict_toml import Row, Sheet

SOURCE_BYTES_MAX = 4_194_304  # 10,000 steps with room for comments
POLICY_BYTES_MAX = 262_144  # a policy that a person can still answer for

_NAMED_BY = {"steps": "name", "grants": "tool", "rules": "id", "facts": "name", "windows": "name"}


def load_program(source: bytes) -> Program:
    """Compile and check a program file (TOML, UTF-8). The same bytes give an equal program.

    Raises:
        ProgramError: PRG-001 not readable, PRG-002 inconsistent, PRG-004 a condition that does
            not fit. All faults are in it, by their places; the text is the first one's.
    """
    sheet = Sheet(source, code="PRG-001", what="program", size_max=SOURCE_BYTES_MAX)
    _require_version(sheet, "nanovm-program/1")
    parts = read(Parts, sheet.root, ("v", *keys_of(Parts)))
    _require_limits(sheet.root, parts)
    _note(sheet, misfits(parts))
    if ".." in parts.policy.split("/"):
        sheet.root.fault("policy", "it lies beside the program: a path without '..'")
    sheet.close()
    values = {each.name: getattr(parts, each.name) for each in fields(parts)}
    values |= {"agent": parts.acting, "policy_file": values.pop("policy")}
    return Program(hash=digest(b"nanovm/program/v1\0", source), **values)


def load_policy(source: bytes, program: Program | None = None) -> Policy:
    """Compile a policy file (TOML, UTF-8); with a program, checked against it too.

    ``Program.under`` makes the same checks, but knows no lines.

    Raises:
        ProgramError: PRG-003 not readable, PRG-004 a condition that does not fit; with a
            program also PRG-005, a rule of the program that no policy may lift.
    """
    sheet = Sheet(source, code="PRG-003", what="policy", size_max=POLICY_BYTES_MAX)
    _require_version(sheet, "nanovm-policy/1")
    known = ("v", *(key for key in keys_of(Policy) if key != "hash"))
    policy = read(Policy, sheet.root, known, hash=digest(b"nanovm/policy/v1\0", source))
    if program is not None:
        for path, text in overreach(program, policy):
            sheet.fault(path, text, "PRG-005")
        _note(sheet, rule_misfits(policy.rules, policy.windows, program.scope(policy)))
    sheet.close()
    return policy


def _require_version(sheet: Sheet, version: str) -> None:
    """Refuse a file of another version: its keys may have another meaning."""
    if sheet.root.table.get("v") != version:
        sheet.root.fault("v", f"expected v = {version!r}: no other version is understood")
        sheet.close()


def _require_limits(root: Row, parts: Parts) -> None:
    """Note the limits that have no safe default and are missing."""
    asks = any(step.kind == MODEL for step in parts.steps.values())
    pays = any(tool.money for tool in parts.tools.values())
    row = root.row("limits", "limits")
    if "limits" not in root.table:
        root.fault("limits", "limits missing: say what one run may use, in [limits]", "PRG-002")
    for key, is_needed in (("proposals_max", asks), ("money_minor_max", pays)):
        if is_needed and key not in row.table:
            row.fault(key, f"limits missing: {key} has no safe default here, so say it", "PRG-002")


def _note(sheet: Sheet, found: Iterable[Misfit]) -> None:
    """Note misfits at their places: the file has an index where they have a name."""
    noted = list(found)
    indexes = {part: _indexed(sheet, part, key) for part, key in _NAMED_BY.items() if noted}
    for misfit in noted:
        path = misfit.path
        if path[0] in indexes and len(path) > 1:
            place = indexes[str(path[0])].get(path[1])  # an unreadable name has none
            path = path[:1] if place is None else (path[0], place, *path[2:])
        sheet.fault(path, misfit.text, misfit.code, misfit.inside)


def _indexed(sheet: Sheet, part: str, key: str) -> dict[str | int, int]:
    """Name → the index of the first row that bears it; no name is the empty one."""
    rows = sheet.root.table.get(part, [])
    found: dict[str | int, int] = {}
    for place, row in enumerate(rows if isinstance(rows, list) else []):
        if isinstance(row, dict):
            name = row.get(key)
            found.setdefault(name if isinstance(name, str) else "", place)
    return found
