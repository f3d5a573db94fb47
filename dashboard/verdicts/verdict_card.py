"""The verdict that the run page shows: of the last attack, or of the record itself."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import UUID

from dashboard.templatetags.show import lower_first, money, slots
from dashboard.verdicts import cards, narration
from dashboard.verdicts.ablation import CopyCard, copy_card_of
from dashboard.verdicts.cards import INJECTORS, Attacks, InjectorCard, Shot
from dashboard.verdicts.step_order import MOVED, StepMark, steps_of
from engine.queries import secrets
from engine.queries.log import EventRow
from engine.queries.record import RunRecord
from engine.queries.runs import RunHead
from engine.runtime.api import MODEL
from engine.store import programs
from pipeline.application import INVOICES
from pipeline.labels import CHARGE
from pipeline.queries.money import PaymentView
from pipeline.steps.reasons import REASONS, RULES, Rule
from sabotage.ablation.guards import decided_in
from sabotage.kit.code_locations import places

KINDS = {"refused": "BLOCKED", "ignored": "IGNORED", "integrity": "DETECTED"}
NO_STAGE: Mapping[str, Any] = {"word": ""}
BLAND = Rule(code="", title="", why="")


@dataclass(frozen=True, slots=True, kw_only=True)
class VerdictCard:
    """One answer of the guard and everything that backs it."""

    word: str
    summary: str  # what came of it, with the money: the line beside the button
    headline: str
    tried: str = ""  # what was attempted, with its values
    rule: str
    title: str
    why: str
    where: tuple[str, ...]
    by: str
    proposed: str
    granted: str
    expected: str
    found: str
    afterwards: str  # the state before and after
    calls: int
    calls_said: str  # which calls these are
    granted_said: str = narration.ALLOWLIST
    payments: str = ""  # what the far side's own list says
    event: int | None
    url: str
    at_ms: int
    control: Mapping[str, Any] = field(default_factory=dict)  # what the ordinary agent did
    careful: Mapping[str, Any] = field(default_factory=dict)  # what the careful agent did
    stake: str = ""  # the money that the attack put at stake, where that is known
    advice: str = ""  # where to fire it to see money at stake
    order: tuple[StepMark, ...] = ()  # the steps as an attack wanted them
    beside: CopyCard | None = None  # what is known of the attack's copy without the guard
    attack: UUID | None = None  # None where the record itself says it
    breached: bool = False

    @property
    def own(self) -> str:
        """What nanovm lost; it makes no claim where Stripe could not be asked."""
        if self.breached:
            return "breached"
        return "unknown" if self.payments == narration.NOT_KNOWN else "0 lost"

    @property
    def without(self) -> str:
        """What happens without the check, in a sentence; else what an ordinary agent did."""
        beside = self.beside
        if beside and beside.shows and not (beside.done and beside.word == "HELD"):
            return f"Without this check: {lower_first(beside.shows)}"
        said = str(self.control.get("happened", ""))
        return f"An ordinary agent: {lower_first(said)}" if said else ""

    @property
    def moved(self) -> bool:
        """Whether the row of steps shows both orders: the wanted one, and the run's own numbers."""
        return any(step.mark == MOVED for step in self.order)

    @property
    def offending(self) -> str:
        """The part of the proposal, as it is written there, that no grant covers; or nothing."""
        try:
            proposed, granted = json.loads(self.proposed), json.loads(self.granted)
        except (ValueError, RecursionError):
            return ""
        if not isinstance(proposed, dict) or not isinstance(granted, dict):
            return ""
        tool, args = proposed.get("tool"), proposed.get("args")
        if not isinstance(tool, str) or tool not in granted:
            return json.dumps(tool, ensure_ascii=False)
        given = args if isinstance(args, dict) else {}
        names = [name for name in given if name not in granted[tool]]
        return json.dumps(names[0], ensure_ascii=False) if names else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdicts:
    """All verdicts of a run's page. ``latest``: the newest, an attack's or the runtime's own."""

    latest: VerdictCard | None
    stage: Mapping[str, Any]
    all_fired: bool  # each injector once, and nothing since
    losses: tuple[tuple[str, str], ...]
    cards: tuple[InjectorCard, ...]


def rule_of(code: str) -> Rule:
    """What a rule code means; an unknown one means nothing."""
    return RULES.get(code) or REASONS.get(code) or BLAND


def of_run(record: RunRecord, attacks: Attacks, payment: PaymentView) -> Verdicts:
    """What is known of all attacks on a run, and of its record."""
    run, shots = record.run, attacks.shots
    last = {name: of_attack(run, shot) for name, shot in attacks.last.items()}
    newest = last[shots[0].injector] if shots else None
    row = record.last(KINDS)
    own = row is not None and not _covers(run, row, shots)
    order = cards.in_order()
    return Verdicts(
        latest=of_event(record, row) if row and own else newest,
        stage=_stage(newest) if newest else NO_STAGE,
        all_fired=[shot.injector for shot in reversed(shots[: len(order)])] == order,
        losses=_losses(attacks.reports),
        cards=tuple(
            InjectorCard(
                injector=INJECTORS[name],
                fired=attacks.fired.get(name, 0),
                shown=last.get(name),
                expects="" if name in last else narration.expectation(name, run, payment),
            )
            for name in order
        ),
    )


def _covers(run: RunHead, row: EventRow, shots: Sequence[Shot]) -> bool:
    """Whether the newest attack's verdict stands for what the record says last.

    A delivery of the queue's own that comes behind an attack and is dropped says nothing new:
    what became of the attack stays. Of an attack that is under way its own verdict is said alone.
    """
    if shots and (_late(row) or shots[0].created_ms >= row.at_ms):
        return True
    return cards.is_under_way(run, row.at_ms)


def _late(row: EventRow) -> bool:
    """Of the model's own refused answers one is an attack, and the others repeat it."""
    return (row.kind, row.actor) in (("ignored", "queue"), ("refused", MODEL))


def of_attack(run: RunHead, shot: Shot) -> VerdictCard:
    evidence = shot.evidence
    rule = rule_of(shot.rule)
    return VerdictCard(
        word=shot.verdict,
        summary=narration.summary(replace(shot, invoice=run.slots)),
        headline=narration.outcome(shot),
        tried=narration.attempt(shot),
        rule=shot.rule,
        title=rule.title,
        why=rule.why,
        where=decided_in(shot.injector, shot.params, shot.rule, shot.where),
        by=shot.injector,
        proposed=slots(_text(evidence.get("proposal", evidence.get("proposed", "")))),
        granted=_granted(evidence["granted"]) if "granted" in evidence else granted(run),
        expected=shot.expected,
        found=shot.found,
        afterwards=narration.afterwards(shot),
        calls=_number(evidence.get("calls")) or 0,
        calls_said="(adapter log)",
        granted_said=narration.granted_said(shot),
        payments=narration.payments(evidence),
        event=_number(evidence.get("event")),
        url=f"/runs/{run.code}/attacks/{shot.id}/",
        at_ms=shot.created_ms,
        control=shot.control,
        careful=shot.careful,
        stake=narration.stake(shot),
        advice=narration.advice(shot),
        order=steps_of(shot),
        beside=copy_card_of(shot.injector, shot.params, shot.unguarded),
        attack=UUID(shot.id),
        breached=shot.breached,
    )


def _stage(verdict: VerdictCard) -> Mapping[str, Any]:
    """The last attack, with its verdict in a word that is read from afar."""
    word = "ALLOWED" if verdict.word == "ACCEPTED" else "HELD"
    if verdict.own == "unknown":
        word = "NOT KNOWN"
    word = "BREACHED" if verdict.breached else word
    return {
        "word": word,
        "said": {"HELD": "STOPPED", "BREACHED": "GOT THROUGH"}.get(word, word),
        "verdict": verdict,
        "summary": verdict.summary.removeprefix("Stopped: ").removeprefix("Ignored: "),
    }


def _losses(controls: Sequence[Mapping[str, Any]]) -> tuple[tuple[str, str], ...]:
    """What each kind of agent lost under these attacks together; "0" where it lost nothing."""
    reports = {
        "careful agent": [each.get("careful", {}) for each in controls],
        "ordinary agent": controls,
    }
    return tuple(
        (name, _lost(ran))
        for name, told in reports.items()
        if (ran := [each for each in told if each.get("ran")])
    )


def _lost(reports: Sequence[Mapping[str, Any]]) -> str:
    sums: Counter[str] = Counter()
    for each in reports:
        sums[each["cost"]["currency"]] += each["cost"]["amount_minor"]
    return " and ".join(money(lost, name) for name, lost in sums.items() if lost) or "0"


def of_event(record: RunRecord, row: EventRow) -> VerdictCard:
    """The verdict that an envelope records. The proposal is read from the vault, if it is there."""
    run, rule = record.run, rule_of(row.rule)
    fields = next(entry.body for entry in record.entries if entry.row is row)
    brought = fields.get("in") or {}
    proposal = brought.get("proposal", "") if isinstance(brought, dict) else ""
    return VerdictCard(
        word=KINDS[row.kind],
        summary=_headline(row, rule),
        headline=_headline(row, rule),
        rule=row.rule,
        title=rule.title,
        why=rule.why,
        where=places(row.rule),
        by=row.actor,
        proposed=slots(secrets.open_secret(str(proposal))) if proposal else "",
        granted=granted(run) if proposal else "",
        expected=str(fields.get("expected", "")),
        found=str(fields.get("found", "")),
        afterwards=_moved(row),
        calls=sum(call.tool == CHARGE for call in record.calls),
        calls_said="calls to Stripe in all (adapter log)",
        event=row.number,
        url=f"/runs/{run.code}/events/{row.number}/",
        at_ms=row.at_ms,
    )


def granted(run: RunHead) -> str:
    """The tools this run may call, as JSON; empty if its program is not the shipped one."""
    program = programs.compiled(INVOICES.source())
    if program.hash != run.program:
        return ""
    tools = {
        name: {arg: spec.type for arg, spec in program.tools[name].args.items()}
        for name in program.grants
    }
    return json.dumps(tools, indent=2)


def _moved(row: EventRow) -> str:
    if row.moved:
        return f"{row.state_from} → {row.state_to}"
    return f"{row.state_to} (unchanged)"


def _headline(row: EventRow, rule: Rule) -> str:
    who = "The model's proposal" if row.actor == "model" else "The request"
    if row.kind == "refused":
        return f"{who} was refused: {rule.title or row.rule}"
    if row.kind == "ignored":
        return f"{row.state_event} came after the end of the run and was ignored"
    return "The stored record was changed outside the application. The run is quarantined"


def _granted(value: Any) -> str:
    return narration.NO_PENDING if value == {"owed": "nothing"} else _text(value)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        return json.dumps(value, indent=2, ensure_ascii=False, sort_keys=True)
    try:
        laid_out = json.dumps(json.loads(value), indent=2, ensure_ascii=False)
        laid_out.encode()  # half a surrogate pair, spelled as an escape, is no text to show
        return laid_out
    except (ValueError, RecursionError):
        return value


def _number(value: Any) -> int | None:
    return value if isinstance(value, int) else None
