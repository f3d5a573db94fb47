"""The list of claims fits the injectors and the guards that there are."""

from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from mutations.changes import changes
from mutations.patching import named
from sabotage.ablation import guards
from sabotage.ablation.guards import Claim, bare, claim_of, claims, decided_in, line_of, why_none
from sabotage.gallery import SCENARIOS
from sabotage.injectors import INJECTORS
from sabotage.kit.injector import Injector, Value

ATTACKS = {**INJECTORS, **{name: scenario.injector for name, scenario in SCENARIOS.items()}}

CLAIM = """[[claim]]
injector = "tool_injection"
moment = "the model is to be asked"
without = ["gate-judges-proposals"]
shows = "It pays."
"""


def choices(injector: Injector) -> Iterator[dict[str, Value]]:
    """Every form of an attack: each choice of it with each other."""
    params = [param for param in injector.params if param.choices]
    for chosen in product(*(param.choices for param in params)):
        given = {param.name: value for param, value in zip(params, chosen, strict=True)}
        yield injector.read(given)


def test_each_entry_names_guards_that_there_are_and_forms_that_can_be_fired() -> None:
    for entry in (*claims(), *bare()):
        if isinstance(entry, Claim):
            assert len(set(entry.without)) == len(entry.without), entry
            assert [named(each).id for each in entry.without] == list(entry.without)
            assert entry.shows.endswith("."), entry
        for form in entry.each:
            given = {name: str(value) for name, value in form.items()}
            values = ATTACKS[entry.injector].read(given)
            found = claim_of(entry.injector, values)
            assert found == (entry if isinstance(entry, Claim) else None), form
            assert isinstance(entry, Claim) or why_none(entry.injector, values).endswith("."), form


def test_every_form_of_every_attack_has_a_guard_or_a_reason() -> None:
    for name, attack in ATTACKS.items():
        for values in choices(attack):
            entries = [each for each in (*claims(), *bare()) if each.fits(name, values)]
            assert len(entries) == 1, f"{guards.FILE.name}: {name} {values}"
            assert bool(why_none(name, values)) == isinstance(entries[0], guards.Bare), (
                name,
                values,
            )
        assert claim_of(name, attack.read({})) is not None, name
    assert (claim_of("nonsense", {}), why_none("nonsense", {})) == (None, "")


def test_a_verdict_names_the_line_that_its_copy_lacks() -> None:
    for claim in claims()[::4]:
        told: Any = changes(claim.without)["guards"]
        lines = [":".join(map(str, line_of(each))) for each in claim.without]
        assert lines == [each["where"] for each in told]
    forged, where = {"skip": "seal without charge"}, "nanovm_core/core/fsm/results.py:9999 _owed"
    last = ":".join(map(str, line_of("step-fills-its-own-slots")))
    assert decided_in("skip_step", forged, "FSM-012", where) == (last, where)
    assert decided_in("skip_step", forged, "FSM-003", where) == (where,)
    assert decided_in("skip_step", forged, "", "") == ()


BAD = (
    ('["gate-judges-proposals"]', "[]", "names no guards"),
    ("is to be asked", "sleeps", "its moment is none of"),
    ("tool_injection", "split_limit", "an attack of the gallery has no moment"),
    ("shows =", "far_side_ms = 5001\nshows =", "goes up to 5000"),
    ("shows =", "wants =", "is no list of"),
    ("[[claim]]", "[[claims]]", "is no list of"),
    ('injector = "', "injector = ", "is no list of"),
)


def test_a_bad_list_is_refused(tmp_path: Path) -> None:
    for number, (old, new, said) in enumerate(BAD):
        file = tmp_path / f"{number}.toml"  # a file is read once
        file.write_text(CLAIM.replace(old, new))
        with pytest.raises(guards.GuardsError, match=said):
            claims(file)
