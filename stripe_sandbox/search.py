"""Search: the part of Stripe's query language that finds PaymentIntents by metadata and status."""

import re
from dataclasses import dataclass

from stripe_sandbox import parameters
from stripe_sandbox.context import Context
from stripe_sandbox.errors import ApiError, ApiResult, invalid_request, missing
from stripe_sandbox.forms import Form
from stripe_sandbox.lists import limit_of
from stripe_sandbox.resources.expansion import expanded, expansions_of
from stripe_sandbox.store import Condition, Window, field_is, metadata_is

CLAUSES_MAX = 10
"""As Stripe limits a query."""
_TEXT = r"""(?:'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")"""
_CLAUSE = re.compile(
    rf"(?:metadata\[(?P<key>{_TEXT})\]|(?P<field>currency|status)):(?P<value>{_TEXT})"
)
_AND = re.compile(r"\s+(?:AND\s+)?", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """A checked request for one page of what a query finds."""

    window: Window
    expand: tuple[str, ...]


def read_search(form: Form) -> Search:
    """Read GET /v1/payment_intents/search; a query beyond the subset is refused, not guessed."""
    parameters.reject_unknown(form, ("expand", "limit", "page", "query"))
    parameters.required(form, "query")
    query = parameters.text_of(form, "query") or ""
    window = Window(
        limit=limit_of(form),
        after=parameters.text_of(form, "page"),
        conditions=conditions_of(query),
    )
    return Search(window=window, expand=expansions_of(form, "payment_intent", in_list=True))


def search_page(context: Context, search: Search) -> ApiResult:
    """Return one page, newest first; unlike Stripe's index, it knows the newest change."""
    account, after = context.account, search.window.after
    if after is not None and account.find("payment_intent", after) is None:
        raise missing("page", after, "page", 400)
    objects, has_more = account.page("payment_intent", search.window)
    body = {
        "object": "search_result",
        "data": [expanded(account, each, search.expand) for each in objects],
        "has_more": has_more,
        "next_page": objects[-1]["id"] if has_more else None,
        "url": "/v1/payment_intents/search",
    }
    return ApiResult(status=200, body=body)


def conditions_of(query: str) -> tuple[Condition, ...]:
    """Return what each clause of a query asks for; all of them must hold."""
    conditions: list[Condition] = []
    text, at = query.strip(), 0
    while at < len(text) or not conditions:
        clause = _CLAUSE.match(text, at)
        if clause is None or len(conditions) == CLAUSES_MAX:
            raise _beyond(query)
        conditions.append(_condition(clause))
        at = clause.end()
        joint = _AND.match(text, at)
        if joint is None and at < len(text):
            raise _beyond(query)
        at = joint.end() if joint else at
    return tuple(conditions)


def _condition(clause: re.Match[str]) -> Condition:
    value = _unquoted(clause["value"])
    if clause["key"] is not None:
        return metadata_is(_unquoted(clause["key"]), value)
    return field_is(clause["field"], value.lower())


def _unquoted(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text[1:-1])


def _beyond(query: str) -> ApiError:
    return invalid_request(
        f"The local Stripe counterpart cannot answer the query {query[:200]!r}. It knows up to "
        f"{CLAUSES_MAX} clauses metadata['key']:'value', status:'value' and currency:'value', "
        "joined by AND.",
        param="query",
    )
