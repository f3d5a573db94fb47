"""What an approval is bound to: each case of docs/approvals.toml, with a crash at every commit."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from docs.generate import approval_cases
from engine.models import Run, Secret
from engine.runtime import api
from engine.vault.secret_store import media
from nanovm_core.core import lifecycle as life
from nanovm_core.core.authority.policy import CHANGED_SINCE
from nanovm_core.core.fsm.commands import hold_id
from pipeline.application import INVOICES, Invoices
from pipeline.register import suppliers
from tests.crash import verdict
from tests.crash.crashes import recovered, wrecks
from tests.crash.sim import Sim
from tests.crash.stories import OVER_LIMIT, Story
from tests.crash.test_enumeration import different
from tests.kit.house import accepted_run, bodies, known_workspace, reason, snapshot

PROGRAM = INVOICES.program_file.read_bytes()
POLICY = INVOICES.policy_file("default").read_text("utf-8")
FOUR_EYES = POLICY.replace("\nname =", "\nfour_eyes = true\nname =", 1)
HOUR_MS = 3_600_000  # the warrant of a sealed call is valid for 15 minutes
WEEK_MS = 7 * 24 * HOUR_MS
Told = Callable[[Sim], None]


@pytest.fixture(autouse=True)
def policy_of_the_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    """The operator's policy and program are files of the data folder."""
    monkeypatch.setattr(Invoices, "policy_file", lambda *_: media().parent / "policy.toml")
    monkeypatch.setattr(
        Invoices, "program_file", property(lambda _: media().parent / "program.toml")
    )


# --- what lies there before: a run that waits, and what its page showed ------------------------


def _held(policy: str = POLICY, *, stepping: bool = False, copies: int = 1) -> Told:
    """Runs over the limit, held; of several, the later ones as copies of the first."""

    def before(sim: Sim) -> None:
        (sim.folder / "policy.toml").write_text(policy, "utf-8")
        (sim.folder / "program.toml").write_bytes(PROGRAM)
        log = known_workspace()
        for _ in range(copies):
            run = accepted_run(log, OVER_LIMIT, "invoice.pdf", stepping=stepping)
            api.start(str(run.id), "visitor")
            sim.work()
            while stepping and Run.objects.get(id=run.id).state == life.PAUSED:
                api.step(str(run.id), "visitor")
                sim.work()
        assert {*Run.objects.values_list("state", flat=True)} == {life.APPROVAL}
        run_id = str(_last().id)
        sim.world.kept["seen"] = (api.hold_now(run_id), dict(api.terms_now(run_id)))

    return before


def _last() -> Run:
    return Run.objects.order_by("-created_ms", "-id")[0]


# --- what changes ------------------------------------------------------------------------------


def _nothing(_: Sim) -> None:
    """What is approved is another hold than the run's, or the same once more."""


def _policy(sim: Sim) -> None:
    (sim.folder / "policy.toml").write_text(f"{POLICY}# lower limits tomorrow\n", "utf-8")


def _program(sim: Sim) -> None:
    (sim.folder / "program.toml").write_bytes(PROGRAM + b"# another release\n")


def _register(_: Sim) -> None:
    log = _last().workspace
    entry = suppliers.by_id(log, str(snapshot(_last()).slots["supplier"]))
    if entry.details.email != "new@example.com":
        new = replace(entry.details, email="new@example.com")
        suppliers.change(entry, new, actor="operator")


def _document(_: Sim) -> None:
    ref = snapshot(_last()).slots["document"]
    file = media() / Secret.objects.get(ref=ref).file
    file.write_bytes(b"changed" + file.read_bytes()[7:])


def _week(sim: Sim) -> None:
    if _last().length == sim.world.kept.setdefault("length", _last().length):  # not yet asked again
        sim.world.now_ms += WEEK_MS + HOUR_MS


# --- the stories --------------------------------------------------------------------------------


def _stale(
    change: Told, hold: Callable[[Sim], str] = lambda sim: sim.world.kept["seen"][0]
) -> Told:
    """Something changes, and then the form from before it is sent, twice."""

    def tell(sim: Sim) -> None:
        change(sim)
        for _ in range(2):
            api.approve(str(_last().id), "visitor", hold(sim), sim.world.kept["seen"][1])
            sim.work()

    return tell


def _since(change: Told) -> Told:
    """A run that is approved and paused; something changes; it is resumed."""

    def tell(sim: Sim) -> None:
        if api.hold_now(str(_last().id)) == sim.world.kept["seen"][0]:
            api.approve(str(_last().id), "visitor")
        change(sim)
        if _last().state == life.PAUSED:
            api.resume(str(_last().id), "visitor")
        sim.work()

    return tell


def _other_arguments(_: Sim) -> str:
    now = snapshot(_last())
    assert now.call is not None
    tool, args = now.call
    return hold_id(now._replace(call=(tool, {**args, "amount_minor": 1})))


def _other_run(_: Sim) -> str:
    return api.hold_now(str(Run.objects.order_by("created_ms", "id")[0].id))


def _unpaid(code: str, held_by: str) -> Callable[[Sim], Iterator[str]]:
    """Nothing was paid, the run still waits, and its log says why."""

    def faults(sim: Sim) -> Iterator[str]:
        if sim.world.posts:
            yield f"{len(sim.world.posts)} payments"
        if snapshot(_last()).held_by != held_by:
            yield f"it is held by {snapshot(_last()).held_by!r}"
        rules = {str(body.get("rule")) for body in bodies(_last())}
        if code not in rules:
            yield f"no {code} among {sorted(rules)}"

    return faults


def _story(name: str, before: Told, tell: Told, held_by: str = "over-limit") -> Story:
    code = next(each["code"] for each in approval_cases() if each["name"] == name.partition(",")[0])
    return Story(
        name=name,
        before=before,
        tell=tell,
        ends=(life.APPROVAL,),
        points_min=4,
        faults=_unpaid(code, held_by),
        of_all=(lambda _: ()) if "document" in name else verdict.faults,  # an audit says so too
    )


CHANGES: Mapping[str, Told] = {"policy": _policy, "register": _register, "document": _document}
STORIES = (
    _story("arguments", _held(), _stale(_nothing, _other_arguments)),
    *(_story(name, _held(), _stale(change)) for name, change in CHANGES.items()),
    *(
        _story(f"{name}, since the yes", _held(stepping=True), _since(change), CHANGED_SINCE)
        for name, change in CHANGES.items()
    ),
    _story("policy, and the program", _held(), _stale(_program)),
    _story("twice", _held(copies=2), _stale(_nothing)),
    _story("deadline", _held(), _stale(_week)),
    _story("requester", _held(FOUR_EYES), _stale(_nothing)),
    _story("run", _held(copies=2), _stale(_nothing, _other_run), "duplicate"),
)


def test_every_case_of_the_page_is_played() -> None:
    played = {story.name.partition(",")[0] for story in STORIES} | {"restart"}
    assert [each["name"] for each in approval_cases() if each["name"] not in played] == []
    assert len(approval_cases()) == len(played)


@pytest.mark.parametrize("every", [3, pytest.param(1, marks=pytest.mark.soak)])
@pytest.mark.parametrize("story", STORIES, ids=lambda each: each.name)
def test_an_approval_that_is_bound_to_something_else_pays_nothing(
    story: Story, every: int, data: Path
) -> None:
    """The process dies before and after each commit, comes back, and the form is sent again."""
    found, points = wrecks(story, data)
    states = different(found)[::every]
    assert [fault for left in states for fault in recovered(story, left)] == []
    assert points >= story.points_min


# --- a restart between yes and call -------------------------------------------------------------


def _approved(sim: Sim) -> None:
    """Approve what is held as the page showed it, once; nobody answers what is asked later."""
    hold, terms = sim.world.kept["seen"]
    waits = api.hold_now(str(_last().id)) == hold
    sim.world.kept["begun"] = waits or bool(sim.world.posts)  # now, or before the crash
    if waits:
        api.approve(str(_last().id), "visitor", hold, terms)
    sim.work()


def _asked_again(sim: Sim) -> Iterator[str]:
    """What was never sent is not sent an hour later: a person is asked."""
    expired = next(each["code"] for each in approval_cases() if each["name"] == "restart")
    if not sim.world.kept["begun"] and (sim.world.posts or reason(_last()) != expired):
        yield f"{len(sim.world.posts)} payments, {_last().state}: {reason(_last())!r}"


RESTARTED = Story(
    name="restart", before=_held(), tell=_approved, ends=(life.COMPLETED,), points_min=20
)


@pytest.mark.parametrize("outage_ms", [1_000, 60_000, HOUR_MS])
def test_a_restart_between_yes_and_call_pays_once_in_time_and_asks_later(
    outage_ms: int, data: Path
) -> None:
    story = RESTARTED if outage_ms < HOUR_MS else replace(RESTARTED, faults=_asked_again)
    found, points = wrecks(story, data)
    sealed = [each for each in different(found)[1:] if not each.world.posts][::2]
    assert [fault for left in sealed for fault in recovered(story, left, outage_ms)] == []
    assert points >= story.points_min
    assert len(sealed) > 3
