"""``moonlight_payment``: the operator's Stripe key is used behind everybody's back."""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from django.conf import settings

from engine.clock import now_ms
from engine.entropy import random_bytes
from engine.models import Envelope, Run, Workspace
from engine.ops import said
from engine.runtime import chains
from nanovm_core.agents import BY_RULE, CHAIN
from nanovm_core.core.envelope import LOG_RUN, body_of, decode_snapshot
from pipeline.reconcile import differences, turns
from pipeline.reconcile.sealed import hash_of
from pipeline.reports import decision
from pipeline.steps.charge import gateway
from sabotage.baseline import account as theft
from sabotage.baseline.account import EDIT, NAMED, NAMELESS, REFUND
from sabotage.gallery.kit import fixture, invoices
from sabotage.gallery.kit.scenario import Scenario
from sabotage.kit.code_locations import named_in
from sabotage.kit.evidence import Evidence
from sabotage.kit.injector import Assessment, Fired, InjectionError, Injector, Target, Value, choice
from sabotage.kit.waiting import wait_until

NAME = "moonlight_payment"
BILL_MINOR, PAYER, DIFFERENCE = 41_200, "payer", "difference"
ALIVE_MS, FOUND_MS_MAX = 15_000, 60_000  # since the controller spoke; for two turns of it
RULES = dict.fromkeys((NAMED, NAMELESS), "REC-001") | dict.fromkeys((REFUND, EDIT), "REC-003")
DECIDED = {"REC-001": ("_judge_unnamed", "NOT_ALLOWED"), "REC-003": ("_compare", "OTHER")}
NOT_LOCAL = "It uses the operator's Stripe key, so it is fired at the local counterpart alone."
CONTROLLER, OWN_TURNS = "the controller", "two turns, as no controller was at work"
UNSEEN, WENT_ON = "Stripe has {}, and no log says so.", "The payer made its next payment."


def next_invoice(workspace: Workspace, _values: Mapping[str, Value]) -> Run:
    """The run that is to pay after the attack."""
    return _run(workspace, stepping=True)


def inject(target: Target) -> Fired:
    """Have an invoice paid, use the key, have both sides compared, and let the next one be paid."""
    if not settings.STRIPE["local"]:
        raise InjectionError(NOT_LOCAL)
    how, log = str(target.values["how"]), fixture.reloaded(target.run).workspace
    paid = _run(log)
    fixture.start(paid)
    if decode_snapshot(bytes(fixture.reloaded(paid).snapshot)).slots.get("payment_status") is None:
        raise InjectionError("The first invoice was not paid. Fire again.")
    fixture.bring(target.run, "charge")
    told_in = chains.house() if how == NAMELESS else log.id
    facts: dict[str, Any] = {
        "how": how,
        "paid_run": str(paid.id),
        "log": str(told_in),
        "log_size": Workspace.objects.get(id=told_in).size,
    }
    run, nobody = {"run": str(paid.id)}, {"run": "", "key": ""}
    put = {NAMED: {**run, "key": random_bytes(32).hex()}}.get(how, nobody)
    stolen = theft.StripeAccount(client=gateway.configured(), tag=str(paid.id))
    facts["payment"] = hash_of(stolen.use_stolen(how, run, put))
    facts["compared_by"] = _compare(facts)
    fixture.resume(target.run)
    if seen := _sealed(facts).get(DIFFERENCE):  # the counts of open ones are everybody's
        differences.check(told_in, seen["in"]["difference"], fixture.OPERATOR)
    return Fired(facts=facts)


def _compare(facts: Mapping[str, Any]) -> str:
    """Wait for the controller if one is at work, else take two turns; who compared."""
    last = said.heard(differences.ACTOR)
    if last is not None and now_ms() - last.at_ms < ALIVE_MS:
        wait_until(lambda: DIFFERENCE in _sealed(facts), FOUND_MS_MAX)
        return CONTROLLER
    both = turns.Turns()
    for _ in range(2):
        both.turn(now_ms())
    return OWN_TURNS


def _sealed(facts: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """What the log sealed since: the difference of this payment or run, its alert, who stopped."""
    rule, about = RULES[facts["how"]], {facts["payment"], facts["paid_run"]}
    rows = Envelope.objects.filter(workspace_id=UUID(facts["log"]), seq__gte=facts["log_size"])
    found: dict[str, Mapping[str, Any]] = {}
    for row in rows.filter(run__in=(LOG_RUN, CHAIN + PAYER)).order_by("seq"):
        body = {**body_of(bytes(row.bytes)), "event": row.n + 1, "hash": row.hash}
        alerts = body.get("alerts", {}).values()
        if row.kind == "observation" and body.get("rule") == rule:
            found |= {DIFFERENCE: body} if about & {*body["in"].values()} else {}
        elif any(each.get("rule") == rule for each in alerts):
            found["alert"] = body
        elif body.get("rule") == rule and body["state"]["to"] == BY_RULE:
            found["suspended"] = body
    return found


def assess(found: Evidence, fired: Fired) -> Assessment:
    """DETECTED where the log has the difference with its alert, and the run's payer is stopped."""
    facts: Mapping[str, Any] = fired.facts
    how, seen = facts["how"], _sealed(facts)
    went_on = how != NAMELESS and bool(found.stripe.succeeded)
    told = {DIFFERENCE, "alert", *(() if how == NAMELESS else ("suspended",))} <= seen.keys()
    rule = RULES[how] if told and not went_on else ""
    breaches = {UNSEEN.format(how): DIFFERENCE not in seen, WENT_ON: went_on}
    return Assessment(
        verdict="DETECTED" if rule else "ACCEPTED",
        rule=rule,
        where=named_in("pipeline/reconcile/compare.py", *DECIDED[rule]) if rule else "",
        event=next((each.number for each in found.sealed if each.rule), None),
        facts={
            **{name: {"event": each["event"], "hash": each["hash"]} for name, each in seen.items()},
            "both_sides": seen.get(DIFFERENCE, {}).get("out", {}),
            "next_invoice": decision(found.run),
            "paid": _paid(facts, Run.objects.get(id=facts["paid_run"]), found.run),
        },
        breaches=tuple(text for text, true in breaches.items() if true),
    )


def _paid(facts: Mapping[str, Any], *runs: Run) -> list[dict[str, object]]:
    """What was paid for these runs and with the key, by Stripe's own list."""
    codes = {str(run.id): run.code for run in runs}
    return [
        {
            "run": codes.get(run, ""),
            "amount_minor": each["amount"],
            "currency": each["currency"].upper(),
        }
        for each in gateway.listed("payment_intents", runs[0].created_ms)
        for run in [str(gateway.metadata(each).get("run", ""))]
        if each["status"] == "succeeded"
        and (run in codes or hash_of(each["id"]) == facts["payment"])
    ]


def _run(log: Workspace, *, stepping: bool = False) -> Run:
    document = invoices.asking(BILL_MINOR, theft.STOLEN_CURRENCY, f"MOON-{log.id.hex[-6:]}")
    return fixture.fresh(log, document, stepping=stepping)


SCENARIO = Scenario(
    injector=Injector(
        name=NAME,
        claim="What bypasses the runtime at Stripe is found; it stops the payer of a run it names.",
        wants="Use the stolen Stripe key directly: no run, no call, no warrant.",
        stopped_by="The controller: it compares Stripe's own list with the calls that the log "
        "allowed. Who has the key can pay; it is found within two comparisons, not prevented.",
        params=(choice("how", "At Stripe there is", RULES),),
        inject=inject,
        assess=assess,
    ),
    make_run=next_invoice,
    why_alone="It suspends the payer: yours goes on.",
)
