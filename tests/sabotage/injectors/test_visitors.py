"""Two visitors: one fires everything at the other's ids, links and refs, and reaches nothing."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any
from uuid import uuid4

import pytest
from django.conf import settings

from dashboard import urls
from dashboard.runs.views import COMMANDS, DECISIONS
from dashboard.web.workspace import name_of
from pipeline.models import Run
from pipeline.queries.runs import RunHead
from sabotage.injectors import INJECTORS
from sabotage.models import Attack, Plan
from tests.dashboard.visitor import Visitor
from tests.sabotage.runs import now, rows_hash

pytestmark = pytest.mark.usefixtures("runtime_here")

NOT_YOURS = (403, 404)
NO_SUCH_METHOD = 405  # says nothing of the id: the address takes no such request at all
NOBODYS = {"rule", "gallery_fire", "tour"}  # these name the product's own, not a visitor's
NOT_SIGNED_YET = 503  # a receipt of one's own run, before a checkpoint covers it
ABSENT = "ZZZZ-99"
SHOT_AT = "widened_grant"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ids:
    """What may stand in an address beside a run's code; by itself, what is nowhere."""

    attack: str = field(default_factory=lambda: str(uuid4()))
    shot: str = field(default_factory=lambda: str(uuid4()))
    plan: str = field(default_factory=lambda: str(uuid4()))
    log: str = "n" * 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Property:
    """What somebody has: runs that paid and was attacked, waits, is erased, and has a plan."""

    visitor: Visitor
    paid: RunHead
    waits: RunHead
    erased: RunHead
    ready: RunHead
    attack: str
    shot: str  # at a piece of the gallery
    plan: str
    log: str

    @property
    def runs(self) -> tuple[RunHead, ...]:
        return self.paid, self.waits, self.erased, self.ready

    @property
    def ids(self) -> "Ids":
        return Ids(attack=self.attack, shot=self.shot, plan=self.plan, log=self.log)


@pytest.fixture
def theirs(runtime_here: None) -> Property:
    return property_of_another()


@cache
def property_of_another() -> Property:
    """Made once: whatever a test fires at it, it finds as it was."""
    visitor = Visitor()
    paid, waits, erased = (visitor.make(), visitor.make(pace="step"), visitor.make())
    attack = visitor.fire(paid, "tool_injection").split("/")[-2]
    visitor.erase(erased)
    ready = visitor.make(hold=True)
    visitor.post(f"/attack/gallery/{SHOT_AT}/")
    workspace = Run.objects.get(id=paid.id).workspace
    shot = Attack.objects.get(injector=SHOT_AT, workspace=workspace)
    plan = Plan.objects.create(  # a press of the button needs a queue
        id=uuid4(),
        run_id=ready.id,
        injector="skip_step",
        step=5,
        state="planned",
        created_ms=1,
        changed_ms=1,
    )
    return Property(
        visitor=visitor,
        paid=paid,
        waits=waits,
        erased=erased,
        ready=ready,
        attack=attack,
        shot=str(shot.id),
        plan=str(plan.id),
        log=name_of(workspace),
    )


@pytest.fixture
def stranger(runtime_here: None) -> Visitor:
    """Somebody with a workspace and a run of their own."""
    visitor = Visitor()
    visitor.make(hold=True)
    return visitor


def bytes_of(owner: Property) -> tuple[str, Mapping[str, bytes]]:
    """Every row of a workspace, and every file that bears a run's id."""
    workspace = Run.objects.get(id=owner.paid.id).workspace
    named = [each.id for each in owner.runs] + [
        ref.rpartition("/")[2] for run in workspace.runs.all() for ref in refs_of(run)
    ]
    files = {
        str(path): path.read_bytes()
        for path in settings.NANOVM_DATA.rglob("*")
        if path.is_file() and any(name in path.name for name in named)
    }
    return rows_hash(workspace), files


def refs_of(run: Run) -> list[str]:
    return list(run.secrets.values_list("ref", flat=True))


def addresses(code: str, ids: Ids, number: int = 1) -> Iterator[str]:
    """Every address of the pages in which an id stands, with these ids."""
    for each in urls.urlpatterns:
        route, names = str(each.pattern), set(each.pattern.converters)
        if not names or each.name in NOBODYS:
            continue
        for part in filled(route, code, ids, number):
            yield f"/{part}"


def filled(route: str, code: str, ids: Ids, number: int) -> Iterator[str]:
    words: tuple[str, ...] = ("",)
    if "gallery/" in route:
        words = (SHOT_AT,)
    elif "<slug:name>" in route:
        words = tuple(INJECTORS) if "attacks/" in route or "plans/" in route else (ids.log,)
    if "<command:name>" in route:
        words = (*COMMANDS, *DECISIONS)
    for word in words:
        values = {
            "<code:code>": code,
            "<uuid:attack_id>": ids.shot if "gallery/" in route else ids.attack,
            "<uuid:plan_id>": ids.plan,
            "<int:number>": str(number),
            "<slug:name>": word,
            "<command:name>": word,
            "<export:form>": "ndjson",
        }
        text = route
        for name, value in values.items():
            text = text.replace(name, value)
        assert "<" not in text, f"{route} has a part that this test does not know"
        yield text


def forms(owner: Property, run: RunHead) -> Mapping[str, str]:
    """Every field by which a form could name something of somebody else's."""
    ref = refs_of(Run.objects.get(id=run.id))[0]
    return {
        "run": run.code, "code": run.code, "target": run.code, "id": run.id, "ref": ref,
        "attack": owner.attack, "log": owner.log, "workspace": owner.log, "reason": "art17-1-a",
        "confirm": f"ERASE {run.code}", "hold": run.hold, "proposal": f'{{"tool": "{ref}"}}',
    }  # fmt: skip


def refused(visitor: Visitor, path: str, form: Mapping[str, str]) -> tuple[int, int]:
    return visitor.get(path).status_code, visitor.post(path, dict(form)).status_code


def test_every_address_with_anothers_id_answers_as_if_it_were_not_there(
    theirs: Property, stranger: Visitor
) -> None:
    before, asked = bytes_of(theirs), 0
    visitors = [(stranger, run) for run in theirs.runs] + [(Visitor(), theirs.paid)]
    absent = list(addresses(ABSENT, Ids()))
    nowhere = [refused(stranger, path, forms(theirs, theirs.paid)) for path in absent]
    for visitor, run in visitors:
        form = forms(theirs, run)
        for path, as_absent in zip(addresses(run.code, theirs.ids), nowhere, strict=True):
            answers = refused(visitor, path, form)
            assert set(answers) <= {*NOT_YOURS, NO_SUCH_METHOD}, (path, answers)
            assert any(each in NOT_YOURS for each in answers), (path, answers)
            assert answers == as_absent, path
            asked += 1
    assert asked > 150
    assert bytes_of(theirs) == before


def test_anothers_ids_in_a_form_of_ones_own_reach_nothing(
    theirs: Property, stranger: Visitor
) -> None:
    before = bytes_of(theirs)
    mine = stranger.make(hold=True)
    own = [f"/{each.pattern}" for each in urls.urlpatterns if not each.pattern.converters]
    own += list(addresses(mine.code, theirs.ids))
    for path in own:
        for answer in (
            stranger.get(path, forms(theirs, theirs.paid)),
            stranger.post(path, forms(theirs, theirs.paid)),
        ):
            assert answer.status_code in (*range(200, 500), NOT_SIGNED_YET), path
            said = body_of(answer)
            assert theirs.paid.head not in said, path
            assert f"/runs/{theirs.paid.code}/" not in said, path
    assert bytes_of(theirs) == before


def test_anothers_ref_buys_nothing(theirs: Property, stranger: Visitor) -> None:
    before = bytes_of(theirs)
    ref = Run.objects.get(id=theirs.paid.id).secrets.get(slot="payee").ref
    mine = stranger.make(pace="step")
    while now(Run.objects.get(id=mine.id)).step != "propose":
        stranger.command(mine, "step")
        mine = stranger.driven(mine.code)
    stranger.command(mine, "resume")
    proposal = (
        '{"tool": "stripe.create_payment_intent", "args": {"amount_minor": 128450, '
        f'"currency": "EUR", "payee": "{ref}", "memo": "{{{{memo}}}}"}}}}'
    )
    attack = stranger.fire(mine, "tool_injection", proposal=proposal).split("/")[-2]
    fired = Attack.objects.get(id=attack)
    assert (fired.verdict, fired.rule, fired.integrity) == ("BLOCKED", "POL-010", "HELD")
    stranger.driven(mine.code)
    assert bytes_of(theirs) == before


def body_of(answer: Any) -> str:
    parts = answer.streaming_content if answer.streaming else [answer.content]
    return b"".join(parts).decode("utf-8", "replace")
