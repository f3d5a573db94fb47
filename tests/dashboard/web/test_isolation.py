"""Two workspaces: what is one visitor's does not exist for the other, at any address."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import pytest
from django.urls import reverse

from dashboard import urls
from dashboard.models import Entry
from dashboard.web.workspace import name_of
from engine.clock import now_ms
from engine.models import Run
from engine.queries.runs import RunHead
from engine.runtime import links
from pipeline.register import erasure as supplier_erasure
from pipeline.register import suppliers
from pipeline.register.details import Details
from sabotage.models import Attack, Plan
from tests.dashboard.visitor import TRANSFER, Visitor
from tests.sabotage.runs import rows_hash

pytestmark = pytest.mark.usefixtures("db")

SHOT_AT = "widened_grant"
ABSENT = "ZZZZ-99"
ATTACKS = ("attack", "unguarded", "curl", "vary", "report")
# The addresses that name something of a workspace, and the run of the owner that they name.
OWNED = {
    **dict.fromkeys(
        (
            *("run", "news", "event", "event_bytes", "step", "calls", "crop", "sheet", "run_audit"),
            *("verify", "report_page"),
            "authenticate",
            *("receipt", "bundle", "run_export", "again", "fire", "privacy", "erased"),
            "arena_bundle",
            *("gallery_shot", "gallery_unguarded", "gallery_report"),
            *("log", "log_bundle", "log_export"),
            *("supplier", "supplier_fix", "supplier_block", "supplier_unblock", "supplier_erase"),
            *("supplier_certificate", "supplier_json", "supplier_and_runs"),
            *("supplier_held", "supplier_held_json", "with_runs_certificate", "with_runs_json"),
            *("log_receipt", "inbox_row", "inbox_judge", "link_revoke"),
        ),
        "paid",
    ),
    **dict.fromkeys((*ATTACKS, "plan", "take_back", "command", "inbox_decide"), "ready"),
    **dict.fromkeys(("certificate", "certificate_json"), "erased_run"),
}
# The pages that take a run's code in the query or in a field of their form.
BY_FIELD = {
    **dict.fromkeys(("arena", "tour"), "get"),
    "check_difference": "post",  # tests/dashboard/ops
    **dict.fromkeys(("arena_check", "arena_propose", "arena_ready", "arena_poison"), "post"),
}
# What every visitor may ask for: the address names nothing of a workspace.
OPEN = {
    *("runs_csv", "calls_folded", "calls_of_hour"),  # test_calls.py
    *("home", "theme", "runs", "new", "demo", "plain", "gallery", "gallery_news", "gallery_fire"),
    *("arena_board", "arena_start", "arena_name", "audit", "verifier", "policy", "docs", "rule"),
    *("agents", "agent", "agent_command", "agent_event", "acknowledge"),  # test_agents.py
    *("connect", "foreign", "connected", "connected_news"),  # test_connect.py
    *("threat_model", "document", "addresses", "suppliers", "register", "proof", "privacy_home"),
    *("inbox", "ops", "reconcile", "verify_file", "verify_offline"),
    *("supplier_preview", "supplier_import", "supplier_export"),
    "links",
}
# What somebody with a link may ask for, and its owner not: tests/dashboard/sharing.
BY_LINK = {"link", "link_approve", "link_erase", "link_certificate", "link_json"}
NO_SUCH_METHOD = 405  # says nothing of the id


@dataclass(frozen=True, slots=True, kw_only=True)
class Property:
    """What a visitor has: runs that paid, is ready and is erased; attacks, a plan and a log."""

    visitor: Visitor
    runs: Mapping[str, RunHead]
    attack: str
    shot: str  # an attack of the gallery
    plan: str
    log: str
    supplier: str  # one that was erased; `certificate` needs it so
    link: str = str(uuid4())

    def path(self, name: str, code: str = "") -> str:
        """The address ``name`` with these ids, or with another run's code."""
        word = {"log": self.log, "plan": "skip_step", "fire": "tool_injection"}
        values: dict[str, Any] = {
            "code": code or (self.runs[OWNED[name]].code if name in OWNED else ABSENT),
            "attack_id": self.shot if name.startswith("gallery_") else self.attack,
            "plan_id": self.plan,
            "number": 1,
            "place": 0,
            "name": "kill"
            if name in ("command", "inbox_decide")
            else word.get(name.partition("_")[0], SHOT_AT),
            "form": "ndjson",
            "supplier_id": self.supplier,
            "link_id": self.link,
        }
        [pattern] = [each for each in urls.urlpatterns if each.name == name]
        return reverse(name, kwargs={key: values[key] for key in pattern.pattern.converters})


NOTHING = Property(
    visitor=Visitor(),
    runs={},
    attack=str(uuid4()),
    shot=str(uuid4()),
    plan=str(uuid4()),
    log="n",
    supplier=str(uuid4()),
)


def property_of(owner: Visitor, paid: RunHead) -> Property:
    """All that a visitor can have, made beside a run that paid."""
    ready, erased = owner.make(hold=True), owner.make("over_limit")
    owner.erase(erased)
    workspace = Run.objects.get(id=paid.id).workspace
    attack = owner.fire(ready, "tool_injection", proposal=TRANSFER).split("/")[-2]
    owner.post(f"/attack/gallery/{SHOT_AT}/")
    shot = Attack.objects.get(injector=SHOT_AT)
    Attack.objects.update(integrity="BREACHED")  # so that there is a report
    Entry.objects.create(attack_id=attack, workspace=workspace, at_ms=1, reproduction={"v": 1})
    planned = {"injector": "skip_step", "step": 5, "state": "planned"}
    plan = Plan.objects.create(  # a press of the button needs a queue
        id=uuid4(), run_id=ready.id, created_ms=1, changed_ms=1, **planned
    )
    (supplier,) = suppliers.register(workspace.id, [Details(name="A")], actor="visitor")
    supplier_erasure.erase_supplier(supplier.row, "art17-1-a", "visitor")
    supplier_erasure.erase_with_runs(supplier.row, "art17-1-a", "visitor")
    until_ms = now_ms() + links.DAY_MS
    given: dict[str, Any] = {"until_ms": until_ms, "narrowed": True, "actor": "visitor"}
    link, _ = links.make(workspace.id, links.VIEW, paid.id, **given)
    return Property(
        visitor=owner,
        runs={"paid": paid, "ready": ready, "erased_run": erased},
        attack=attack,
        shot=str(shot.id),
        plan=str(plan.pk),
        log=name_of(workspace),
        supplier=str(supplier.row.id),
        link=str(link.id),
    )


@pytest.fixture(scope="module")
def theirs(owner: Visitor, paid: RunHead) -> Property:
    return property_of(owner, paid)


@pytest.fixture(scope="module")
def stranger(theirs: Property) -> Visitor:
    """A visitor with a workspace and a run of their own."""
    other = Visitor()
    other.make(hold=True)
    return other


def form_of(run: RunHead, owner: Property) -> dict[str, str]:
    """A form that would have an effect, and whose fields name the owner's run."""
    return {
        "run": run.code, "reason": "art17-1-a", "confirm": f"ERASE {run.code}", "hold": run.hold,
        "proposal": TRANSFER, "text": "a note", "plan_step": "5",
        "attack": owner.attack, "log": owner.log, "workspace": owner.log,
    }  # fmt: skip


def answers(visitor: Visitor, path: str, form: dict[str, str]) -> tuple[int, int]:
    return visitor.get(path).status_code, visitor.post(path, form).status_code


def state_of(owner: Property) -> str:
    return rows_hash(Run.objects.get(id=owner.runs["paid"].id).workspace)


def test_every_address_is_listed() -> None:
    """A new address fails here until it is said whose it is."""
    listed = [*OWNED, *BY_FIELD, *OPEN, *BY_LINK]
    assert sorted(str(each.name) for each in urls.urlpatterns) == sorted(listed)


@pytest.mark.parametrize("name", OWNED)
def test_an_address_with_anothers_ids_answers_as_if_it_were_not_there(
    theirs: Property, stranger: Visitor, name: str
) -> None:
    path, before = theirs.path(name), state_of(theirs)
    nowhere = NOTHING.path(name, ABSENT)
    assert theirs.visitor.get(path).status_code != 404
    form = form_of(theirs.runs[OWNED[name]], theirs)
    for visitor in (stranger, Visitor()):
        found = answers(visitor, path, form)
        assert found == answers(visitor, nowhere, form)
        assert set(found) <= {404, NO_SUCH_METHOD}
        assert 404 in found
    assert state_of(theirs) == before


@pytest.mark.parametrize("name", BY_FIELD)
def test_a_field_that_names_anothers_run_finds_none(
    theirs: Property, stranger: Visitor, name: str
) -> None:
    path, before = reverse(name, args=(2,) if name == "tour" else ()), state_of(theirs)
    for run in theirs.runs.values():
        form = form_of(run, theirs)
        for visitor in (stranger, Visitor()):
            asked = getattr(visitor, BY_FIELD[name])
            assert asked(path, form).status_code == 404, run.label
    assert theirs.visitor.get(path, {"run": run.code}).status_code in (200, NO_SUCH_METHOD)
    assert state_of(theirs) == before


@pytest.mark.parametrize("name", ATTACKS)
def test_anothers_attack_is_not_found_under_ones_own_run(
    theirs: Property, stranger: Visitor, name: str
) -> None:
    mine = stranger.make(hold=True)
    assert 404 in answers(stranger, theirs.path(name, mine.code), {})


def test_anothers_plan_is_not_taken_back_under_ones_own_run(
    theirs: Property, stranger: Visitor
) -> None:
    mine, before = stranger.make(hold=True), state_of(theirs)
    assert stranger.post(theirs.path("take_back", mine.code)).status_code == 422
    assert state_of(theirs) == before


def test_no_list_shows_anothers_run(theirs: Property, stranger: Visitor) -> None:
    run = theirs.runs["paid"]
    for path in ("/", "/runs/", "/audit/", f"/audit/?run={run.code}", f"/runs/?q={run.code}",
                 "/runs/?attack=tool_injection", "/attack/", "/attack/gallery/",
                 "/attack/gallery/news/", "/suppliers/", "/privacy/", "/inbox/",
                 "/runs/?sort=supplier", "/ops/", "/reconcile/", "/inbox/?tab=differences",
                 f"/inbox/?decided={run.code}"):  # fmt: skip
        page = stranger.read(path)
        assert f"/runs/{run.code}/" not in page, path
        assert theirs.attack not in page, path
        assert theirs.shot not in page, path
        assert run.head not in page, path
        assert theirs.supplier not in page, path


def test_an_attack_belongs_to_its_run(theirs: Property) -> None:
    other = theirs.visitor.make(hold=True)
    theirs.visitor.read(theirs.path("attack", other.code), 404)
