"""Every code that the kernel's source can say is in its catalogue."""

import ast
import re
from pathlib import Path

import pytest

import nanovm_core
from pipeline.steps.reasons import RULES

CODE = re.compile(r"[A-Z]{3}-\d{3}")
FOLDER = Path(nanovm_core.__file__).parent
FILES = sorted(FOLDER.rglob("*.py"))


def codes(path: Path) -> set[str]:
    """The codes among the texts of a file."""
    found = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    texts = {each.value for each in found if isinstance(each, ast.Constant)}
    return {each for each in texts if isinstance(each, str) and CODE.fullmatch(each)}


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(FOLDER)))
def test_every_code_is_explained(path: Path) -> None:
    assert codes(path) <= RULES.keys()


def test_codes_are_found_where_they_are() -> None:
    assert codes(FOLDER / "core" / "budget.py") >= {"BUD-001", "BUD-005", "BUD-006"}
    assert len(set().union(*map(codes, FILES))) > 80
