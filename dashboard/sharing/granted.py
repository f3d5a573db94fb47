"""What a link grants, in words and as an address; and what a form for a new one names."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.db.models import Q

from dashboard.gallery import shots
from dashboard.verdicts import cards, verdict_card
from dashboard.web import workspace
from engine.clock import now_ms
from engine.models import Link, Run, Workspace
from engine.queries import runs
from engine.runtime import links
from engine.store.records import hold_of
from nanovm_core.core.lifecycle import APPROVAL
from pipeline.models import Supplier
from pipeline.register import suppliers, versions
from sabotage.gallery import SCENARIOS
from sabotage.models import Attack

KINDS = {
    links.VIEW: "View a run",
    links.VERDICT: "View a verdict",
    links.AUDIT: "Audit the workspace",
    links.APPROVE: "Approve a payment or a call",
    links.ERASE: "Erase a supplier and its runs",
}
HOUR_MS = 3_600_000
LIVES = {1: "1 hour", 24: "1 day", 7 * 24: "7 days", 30 * 24: "30 days"}  # by hours
SEES_ALL = (links.APPROVE, links.ERASE)  # who decides has to see whom it is about


class TargetError(Exception):
    """The form for a link names nothing that can be shared; the sentence says what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Granted:
    """A link as people read it. ``url``: where its use leads; empty where that is gone."""

    link: Link
    what: str
    url: str
    attack: Attack | None = None

    @property
    def kind(self) -> str:
        """What it grants."""
        return KINDS[self.link.grants]

    @property
    def state(self) -> str:
        """As its row says, for its owner's list; empty while it is open."""
        if self.link.workspace.successor_id is not None:
            return "ended by a restore"
        if self.link.revoked_ms is not None:
            return "revoked"
        return "expired" if self.link.until_ms <= now_ms() else ""


def of_link(link: Link) -> Granted:
    """What a link grants."""
    if link.grants == links.AUDIT:
        what = f"the log {link.workspace.origin} and its runs"
        return Granted(link=link, what=what, url=f"/audit/{link.target}/")
    if link.grants == links.ERASE:
        row = Supplier.objects.filter(id=link.target).first()
        what = f"supplier {row.code}" if row else ""
        return Granted(link=link, what=what, url=f"/l/{link.id}/erase/")
    if link.grants == links.VERDICT:
        attack = Attack.objects.select_related("run").filter(id=link.target).first()
        what = f"the verdict on {attack.injector}" if attack else ""
        return Granted(link=link, what=what, url=_url_of(attack), attack=attack)
    code = Run.objects.filter(id=link.target).values_list("code", flat=True).first()
    decides = link.grants == links.APPROVE and link.spent_ms is None
    url = f"/l/{link.id}/approve/" if decides else f"/runs/{code}/"
    return Granted(link=link, what=f"run {code}", url=url)


def target_of(owner: Workspace, grants: str, named: str) -> str:
    """The id of what a form names: a run's code, an attack's id, a supplier's code or id.

    Raises:
        TargetError: where it is nothing of this workspace that can be shared so.
    """
    if grants == links.AUDIT:
        return workspace.name_of(owner)
    finders = {links.VERDICT: _attack_id, links.ERASE: _supplier_id}
    found = finders.get(grants, _run_id)(owner, named.strip())
    if grants == links.APPROVE and not is_asked(found):
        raise TargetError("That run waits for no decision now, so there is nothing to approve.")
    return found


def is_asked(run_id: str) -> bool:
    """Whether a run waits for a person's decision."""
    run = Run.objects.filter(id=run_id).first()
    return run is not None and run.state == APPROVAL and bool(hold_of(run))


def card_of(granted: Granted) -> Mapping[str, str]:
    """Title and description of a shared verdict, for chats that show a card; else of any link.

    It has no personal value: the caller opened none.
    """
    attack = granted.attack
    if attack is None:
        return {"title": f"{granted.kind}: {granted.what}", "text": "A link to nanovm."}
    found = runs.head_of(attack.run)
    shot = cards.find(found, attack.pk)
    if attack.injector in SCENARIOS or shot is None:
        shown: Any = shots.shown_of(attack)
        word, own = shown.verdict, "breached" if shown.breached else "0 lost"
    else:
        shown = verdict_card.of_attack(found, shot)
        word, own = shown.word, shown.own
    lost = [f"nanovm: {own}", _lost("careful agent", shown.careful)]
    lost.append(_lost("ordinary agent", shown.control))
    text = f"{shown.headline} {'. '.join(filter(None, lost))}."
    return {"title": f"{word}: {attack.injector}", "text": text}


def _lost(name: str, told: Mapping[str, Any]) -> str:
    if not told.get("ran"):
        return ""
    cost = told.get("cost") or {}
    return f"{name}: {cost['in_words'] if cost.get('amount_minor') else '0'} lost"


def _url_of(attack: Attack | None) -> str:
    if attack is None:
        return ""
    if attack.injector in SCENARIOS:
        return shots.url_of(attack.injector, attack.pk)
    return f"/runs/{attack.run.code}/attacks/{attack.pk}/"


def _run_id(owner: Workspace, named: str) -> str:
    found = runs.by_code(owner.id, named.upper())
    if found is None:
        raise TargetError(f"You have no run “{named[:20]}”. Type a code such as 7F3K-02.")
    return found.id


def _attack_id(owner: Workspace, named: str) -> str:
    row = Attack.objects.select_related("run").filter(pk__in=_id_in(named)).first()
    if row is not None and row.injector in SCENARIOS:
        row = shots.find(owner.id, row.injector, row.pk)
    elif row is not None and runs.by_code(owner.id, row.run.code) is None:
        row = None
    if row is None or not row.verdict:
        raise TargetError("You have no such verdict. Open its page, and press Share there.")
    return str(row.pk)


def _supplier_id(owner: Workspace, named: str) -> str:
    rows = Supplier.objects.filter(workspace=owner).exclude(state=suppliers.OWN)
    rows = rows.exclude(state=versions.ERASED)
    found = rows.filter(Q(code=named.upper()) | Q(id__in=_id_in(named))).first()
    if found is None:
        raise TargetError(f"You have no supplier “{named[:20]}”. Type its code.")
    return str(found.id)


def _id_in(named: str) -> list[str]:
    return [named] if runs.UUID_FORM.fullmatch(named) else []
