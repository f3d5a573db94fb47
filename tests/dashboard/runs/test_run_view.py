"""The value that a run's page is drawn of, and the parts of it that each fragment needs."""

import re
from dataclasses import replace

import pytest

from dashboard.runs import frames, run_view
from engine.queries import record
from engine.queries.runs import RunHead
from tests.dashboard.visitor import Visitor, by_code


def test_every_fragment_has_one_root_with_its_own_id(paid: RunHead) -> None:
    view = run_view.read(paid)
    for name in frames.FRAGMENTS:
        if name not in ("planning", "shots"):  # one for each injector
            root = rf'\s*<[a-z]+ id="{name}"[^>]*hx-swap-oob="true"'
            assert re.match(root, frames.draw(name, view)), name


def test_of_a_long_run_the_newest_and_the_telling_events_are_read(
    paid: RunHead, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(record, "NEWEST_MAX", 3)
    monkeypatch.setattr(record, "STORY", ("genesis",))
    read = record.record_of(replace(paid, length=9)).entries  # and none behind its length
    assert [each.row.number for each in read] == [1, 7, 8, 9]


class Seen:
    """The run of a view, that notes which of its fields a template asks for."""

    def __init__(self, run: RunHead, asked: set[str]) -> None:
        self._run, self._asked = run, asked

    def __getattr__(self, field: str) -> object:
        self._asked.add(f"run.{field}")
        return getattr(self._run, field)


ALWAYS = {  # the same
    *("run.code", "run.id", "run.workspace", "run.model", "run.steps_count", "run.is_call")
}
STATE = {f"run.{name}" for name in ("label", "ready", "running", "paused", "suspended", "ended")}


@pytest.mark.parametrize("kind", ["paid", "held", "ready"])
def test_a_fragment_is_drawn_of_the_parts_that_it_names(
    owner: Visitor, request: pytest.FixtureRequest, kind: str
) -> None:
    run = request.getfixturevalue(kind)
    owner.fire(run, "tool_injection")
    view = run_view.read(by_code(run.code))
    for name, parts in frames.FRAGMENTS.items():
        context, asked = frames.context_of(view, parts), set[str]()
        html = frames.render(name, {**context, "run": Seen(view.run, asked)}, oob=True)
        assert html == frames.draw(name, view)
        assert asked <= {*parts, *ALWAYS, *(STATE if "run.state" in parts else ())}, name
