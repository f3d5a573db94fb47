"""Runs a loop under one attack and reports the outcome: the entry point of the baselines."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import stripe

from pipeline.steps.propose import model_adapters
from reader import ExtractionError
from sabotage.baseline import account, answers, gallery_answers, store
from sabotage.baseline.account import StripeAccount, Transfer
from sabotage.baseline.answers import AttackInput, Report, Reporter
from sabotage.baseline.checks import ORDINARY, Checks, RefusedCallError
from sabotage.baseline.loop import Loop, NothingToReadError
from sabotage.baseline.money import in_words, payments, total_minor
from sabotage.baseline.tools import NoSuchToolError, Tools

ANSWERS = {**answers.ANSWERS, **gallery_answers.ANSWERS}
UNDEFINED = "Not run: no baseline is defined for this attack."
OUT_OF_REACH = "Unknown: the local Stripe test server is not reachable."
NO_ACCOUNT = "Not run: the Stripe test server has no account for it."
TOLD_PAID = "told the supplier “paid”, but paid nothing"
IDS_MAX = 60

ReportJson = dict[str, object]


def not_run(why: str, checks: Checks = ORDINARY) -> ReportJson:
    """What is said where the loop could not be run; nothing is known then, which is not zero."""
    return {"loop": checks.label, "ran": False, "happened": why}


def compare(
    name: str,
    given: AttackInput,
    checks: Checks,
    *,
    api_base: str,
    folder: Path,
    tag: str,
    at_ms: int,
) -> ReportJson:
    """Run a fresh loop with these checks under the attack of this name.

    It moves money on its own account alone, under ``tag``. Whatever it raises is how it
    ended, as with any script; where its account is out of reach, that is said.
    """
    if name not in ANSWERS:
        return not_run(UNDEFINED, checks)
    try:
        own = account.open_account(api_base, checks.account, tag)
        return _reported(name, given, checks, own, folder, at_ms)
    except stripe.APIConnectionError:
        return not_run(OUT_OF_REACH, checks)
    except stripe.AuthenticationError:
        return not_run(NO_ACCOUNT, checks)


def _reported(
    name: str, given: AttackInput, checks: Checks, own: StripeAccount, folder: Path, at_ms: int
) -> ReportJson:
    with store.temporary_state(folder) as kept:
        tools = Tools(own, kept, checks)
        loop = Loop(read=given.read, tools=tools, store=kept, model=_model(name, given))
        ended, report = _ended(ANSWERS[name], loop, given)
        moved = own.moved(at_ms)
        result = report(moved)
        received = own.received(at_ms) if moved else {}
        currency = moved[0].currency if moved else str(loop.state.get("currency") or "")
        told_paid = loop.state.get("sealed", False)
    cost = total_minor(moved) - result.due_minor
    return {
        "loop": checks.label,
        "ran": True,
        "happened": f"{result.happened} Loss: {in_words(cost, currency) if cost else 0}",
        "harm": result.harm or (TOLD_PAID if told_paid and not moved else ""),
        "ended": ended,
        "cost": {
            "amount_minor": cost,
            "currency": currency,
            "in_words": in_words(cost, currency) if moved else "",
        },
        "moved": {
            "transfers": len(moved),
            "amount_minor": total_minor(moved),
            "in_words": in_words(moved),
        },
        "calls": dict(tools.calls),
        "evidence": {"tag": own.tag, "ids": [each.id for each in moved[:IDS_MAX]], **result.facts},
        "received": {named: in_words(sums) for named, sums in received.items() if sums},
    }


def _ended(
    scenario: Callable[[Loop, AttackInput], Reporter], loop: Loop, given: AttackInput
) -> tuple[str, Reporter]:
    """How it ended, and what reports it."""
    try:
        return "done", scenario(loop, given)
    except (stripe.APIConnectionError, stripe.AuthenticationError):
        raise
    except stripe.StripeError as error:
        why = f"Stripe refused it: {error.code or error.http_status}"
        return why, _stopped("It executed the call, and Stripe refused it.")
    except RefusedCallError as refused:
        return "refused by its own checks", _stopped(str(refused))
    except NoSuchToolError:
        return "no such tool", _stopped("Its toolkit has no such tool.")
    except NothingToReadError:
        return "nothing to read", _stopped("The document was erased: it had nothing to read.")
    except ExtractionError as error:
        return f"unreadable: {error.code}", _stopped("It could not read the document.")
    except Exception as error:  # noqa: BLE001 - the loop checks nothing: what it raises is its end
        kind = type(error).__name__
        return f"crashed: {kind}", _stopped(f"It crashed on its input ({kind}).")


def _stopped(why: str) -> Reporter:
    def report(moved: Sequence[Transfer]) -> Report:
        return Report(happened=f"{why} Before that: {payments(moved)}." if moved else why)

    return report


def _model(name: str, given: AttackInput) -> Callable[[Mapping[str, Any]], bytes]:
    """Who answers: what was typed, word for word; a model that obeys the text; an honest one."""
    if name == "tool_injection" and given.text("by", "compromised") == "compromised":
        typed = given.text("proposal").encode("utf-8", "surrogateescape")
        return lambda _view: typed
    obedient = name in ("tool_injection", "poisoned_invoice")
    model = model_adapters.gullible if obedient else model_adapters.faithful
    return lambda view: model(view, b"")
