"""Holds an error of the loader to its code, its place and its words."""

from nanovm_core.errors import ProgramError
from tests.core.kit.desk import error_of, place


def check(
    text: str, at: str, said: str, code: str = "PRG-002", *, error: ProgramError | None = None
) -> None:
    """The one fault of a text: at this place, in these words."""
    found = error or error_of(text)
    assert said in found.text
    assert (found.code, found.line, found.column) == (code, *place(text, at)), found.text
    assert found.text.startswith(f"line {found.line}, column {found.column}: ")
    assert len(found.faults) == 1, found.faults


def check_one(text: str, at: str, said: str, code: str = "PRG-002") -> None:
    """One of the faults of a text: at this place, in these words."""
    found = [fault for fault in error_of(text).faults if said in fault.text]
    assert [(each.code, each.line, each.column) for each in found] == [(code, *place(text, at))]
