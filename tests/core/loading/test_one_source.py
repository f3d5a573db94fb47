"""What is written down once: a new limit is read, and a new kind of step has its keys."""

from dataclasses import fields
from importlib import util

import pytest

from nanovm_core.core import program
from nanovm_core.core.authority.budget import Limits
from nanovm_core.loading import load_program
from tests.core.kit.desk import DESK

ROWS = "nanovm_core.loading.schema"


@pytest.mark.parametrize("name", [each.name for each in fields(Limits)])
def test_each_limit_is_what_the_file_says(name: str) -> None:
    text = DESK.replace("proposals_max = 2", "").replace("money_minor_max = 50_000", "")
    said = {"proposals_max": 2, "money_minor_max": 9, "tokens_max": 600, name: 777}
    lines = "\n".join(f"{key} = {value}" for key, value in said.items())
    found = load_program(text.replace("[limits]", f"[limits]\n{lines}").encode()).limits
    assert getattr(found, name) == 777


def test_kind_of_step_without_own_keys_is_not_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    spec = util.find_spec(ROWS)
    assert spec is not None
    assert spec.loader is not None
    spec.loader.exec_module(util.module_from_spec(spec))
    monkeypatch.setattr(program, "KINDS", (*program.KINDS, "nap"))
    with pytest.raises(KeyError, match="nap"):
        spec.loader.exec_module(util.module_from_spec(spec))
