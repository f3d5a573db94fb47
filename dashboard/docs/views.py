"""The policy in force, every rule, the threat model, and the documents."""

import json
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render

from dashboard.docs import addresses as site
from dashboard.docs import documents, rules
from dashboard.docs.windows import windows_of
from dashboard.templatetags.show import length
from dashboard.verdicts import verdict_card
from dashboard.web.pages import or_404, page
from dashboard.web.workspace import existing, name_of
from engine.queries import limits
from nanovm_core.core.authority.budget import WALL, Budget
from nanovm_core.core.fsm import capabilities_hash
from nanovm_core.core.lifecycle import TABLE
from pipeline import reports
from pipeline.application import INVOICES, current
from reader.currencies import shown
from sabotage.kit import code_locations

EXAMPLES = ("EUR", "JPY", "KWD")  # currencies with two, no and three decimal places
AGAIN = {"hold": "waits for a person", "deny": "is refused"}
OF_THE_SITE = {  # pages without a file, by their group of docs/index.md
    "Threat model": ("threat-model", "What this does not prove", "what is not trusted"),
    "Command line and addresses": ("addresses", "Addresses", "each page and form of this site"),
}


@page
def policy(request: HttpRequest) -> HttpResponse:
    program, workspace = current(), existing(request)
    context = {
        "sealed": [_sealed(each) for each in limits.sealed(workspace.id)] if workspace else [],
        "log": name_of(workspace) if workspace else "",
        "program": program,
        "policy": program.policy,
        "rules": (*program.rules, *program.policy.rules),
        "budgets": [_budget(each) for each in (*program.budgets, *program.policy.budgets)],
        "windows": [*windows_of(program, program.agent, workspace)],
        "source": INVOICES.policy_source().decode(),
        "capabilities": capabilities_hash(program),
        "grants": [_grant(program, name) for name in program.grants],
        "table": [(a, event, to) for (a, event), to in TABLE.items()],
    }
    return render(request, "docs/policy.html", context)


@page
def index(request: HttpRequest) -> HttpResponse:
    """Where to start, every document, and the rules, all of them or those with the words of q."""
    sought = request.GET.get("q", "").strip()
    found, every = rules.found(sought), rules.found()
    context = {
        "groups": [
            (group, [OF_THE_SITE[group], *pages] if group in OF_THE_SITE else pages)
            for group, pages in documents.groups()
        ],
        "families": found.items(),
        "sought": sought,
        "hits": sum(map(len, found.values())),
        "all": sum(map(len, every.values())),
    }
    return render(request, "docs/index.html", context)


@page
def addresses(request: HttpRequest) -> HttpResponse:
    """Every address of this site."""
    return render(request, "docs/addresses.html", {"addresses": site.addresses()})


@page
def rule(request: HttpRequest, code: str) -> HttpResponse:
    found = verdict_card.rule_of(code)
    if not found.code:
        raise Http404("there is no such rule")
    places = code_locations.places(code)
    context = {"rule": found, "family": rules.family_of(code), "places": places}
    return render(request, "docs/rule.html", context)


@page
def threat_model(request: HttpRequest) -> HttpResponse:
    again = next((each.outcome for each in current().rules if each.id == "duplicate"), "")
    context = {"again": AGAIN.get(again, "is paid again"), "known_by": reports.BY.values()}
    return render(request, "docs/threat_model.html", context)


@page
def document(request: HttpRequest, slug: str) -> HttpResponse:
    found = or_404(documents.document(slug), "there is no such document")
    return render(request, "docs/document.html", {"document": found})


def _budget(budget: Budget) -> dict[str, str]:
    """A budget in words. Without a currency it limits each one, in that one's smallest unit."""
    said = f"{budget.max} {budget.unit}"
    if budget.unit == WALL:
        said = f"{length(budget.max)} of running time, until a person resumes it"
    if budget.unit == "money":
        each = [budget.currency] if budget.currency else EXAMPLES
        said = ", ".join(shown(budget.max, currency) for currency in each)
        said += "" if budget.currency else ", and so on: a limit for each currency"
    return {"scope": budget.scope, "said": said}


def _sealed(limit: limits.SealedLimit) -> dict[str, Any]:
    return {**_budget(limit.budget), "agent": limit.agent, "seq": limit.seq, "at_ms": limit.at_ms}


def _grant(program: Any, name: str) -> dict[str, Any]:
    grant, tool = program.grants[name], program.tools[name]
    where = {arg: _limits(limit) for arg, limit in grant.where.items()}
    critical = ", ".join(f"{arg} = {_origin(source)}" for arg, source in tool.critical.items())
    args = ", ".join(f"{arg}: {spec.type}" for arg, spec in tool.args.items())
    return {"name": name, "args": args, "where": json.dumps(where), "critical": critical}


def _origin(source: Any) -> str:
    return f"${source.slot}" if source.slot else json.dumps(source.constant)


def _limits(limit: Any) -> dict[str, Any]:
    names = ("one_of", "min", "max", "prefix", "equals_slot")
    values = {name: getattr(limit, name) for name in names}
    return {name: value for name, value in values.items() if value not in (None, "", ())}
