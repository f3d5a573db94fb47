"""What is written down once: a new limit is read, and a new kind of step has its keys."""

from dataclasses import dataclass, fields
from importlib import util
from typing import Any

import pytest

from nanovm_core import loading
from nanovm_core.core import program
from nanovm_core.core.budget import Limits
from nanovm_core.loading import load_program
from tests.core.kit.desk import DESK, changed

ROWS = "nanovm_core.loading.program_rows"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wider:
    """The limits of a run, and one that is new."""

    proposals_max: int = 0
    warrant_ttl_ms: int = 900_000
    calls_max: int = 16
    steps_max: int = 1_000
    tokens_max: int = 100_000
    wall_ms_max: int = 86_400_000
    money_minor_max: int = 0
    naps_max: int = 3


@pytest.mark.parametrize("name", [each.name for each in fields(Limits)])
def test_each_limit_is_what_the_file_says(name: str) -> None:
    text = DESK.replace("proposals_max = 2", "").replace("money_minor_max = 50_000", "")
    said = {"proposals_max": 2, "money_minor_max": 9, "tokens_max": 600, name: 777}
    lines = "\n".join(f"{key} = {value}" for key, value in said.items())
    found = load_program(text.replace("[limits]", f"[limits]\n{lines}").encode()).limits
    assert getattr(found, name) == 777


def test_new_limit_is_read_from_the_file_with_no_word_said_elsewhere(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(loading, "Limits", Wider)
    for line, naps in (("", 3), ("naps_max = 7", 7)):
        found: Any = load_program(changed("[limits]", f"[limits]\n{line}").encode()).limits
        assert (found.naps_max, found.proposals_max) == (naps, 2)


def test_kind_of_step_without_keys_of_its_own_is_not_imported(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    spec = util.find_spec(ROWS)
    assert spec is not None
    assert spec.loader is not None
    spec.loader.exec_module(util.module_from_spec(spec))
    monkeypatch.setattr(program, "KINDS", (*program.KINDS, "nap"))
    with pytest.raises(KeyError, match="nap"):
        spec.loader.exec_module(util.module_from_spec(spec))
