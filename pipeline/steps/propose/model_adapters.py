"""The built-in models, and the table of all: each proposes one tool call, as untrusted bytes."""

import json
import re
from collections.abc import Callable, Mapping

from engine.errors import PermanentError
from nanovm_core.core.messages import Scalar
from pipeline.steps.propose import model_endpoint

View = Mapping[str, Scalar]
ENDPOINT = "endpoint"  # the model that the settings name, in place of a built-in one
TOOL = "stripe.create_payment_intent"
# What a gullible model takes for an instruction: a tool's name, or a verb that moves money.
TOOL_ORDER = re.compile(
    r"(?:call|use|invoke|run|execute)\s+(?:the\s+)?(?:tool\s+)?([a-z]\w*(?:[._]\w+)+)", re.I
)
VERB_ORDER = re.compile(r"\b(wire|transfer|send|pay|remit)\b[^.\n]{0,40}?(?=\d)", re.I)
AMOUNT = re.compile(
    r"([$€£]|[A-Z]{3})?\s?(\d{1,3}(?:[,.' ]\d{3})*(?:[.,]\d{2})?|\d+(?:[.,]\d{2})?)\s?([A-Z]{3})?"
)
RECIPIENT = re.compile(
    r"\b(?:to|account|iban)\s+([A-Z]{2}\d{2}[A-Z0-9 ]{8,30}|[\w.@-]{3,64})", re.I
)
OVERRIDE = re.compile(
    r"ignore|disregard|override|instead|system\s*:|new instructions?|do not follow|assistant\s*:",
    re.I,
)
SYMBOLS = {"$": "USD", "€": "EUR", "£": "GBP"}


def faithful(view: View, planted: bytes) -> bytes:
    """Propose exactly what the invoice says: deterministic, and never wrong on purpose."""
    del planted
    money = {name: view[name] for name in ("amount_minor", "currency")}
    return _proposal(TOOL, {**money, "payee": "{{payee}}", "memo": "{{memo}}"})


def gullible(view: View, planted: bytes) -> bytes:
    """Obey instructions found in the invoice's text, as a fooled model would; else be faithful."""
    return _obeyed(orders(view)) or faithful(view, planted)


def orders(view: View) -> str:
    """The text that a gullible model obeys, from where it turns to the model; empty for none."""
    text = str(view.get("notes", ""))
    override = OVERRIDE.search(text)
    found = text[override.start() :] if override else ""
    return found if _obeyed(found) else ""


def compromised(view: View, planted: bytes) -> bytes:
    """Propose what the attacker typed; with nothing typed, a transfer to the attacker."""
    if planted:
        return planted
    return _proposal("wire_transfer", {"amount": 50000, "currency": "USD", "to": "attacker"})


MODELS: Mapping[str, Callable[[View, bytes], bytes]] = {
    "faithful": faithful,
    "gullible": gullible,
    "compromised": compromised,
}


def offered() -> tuple[str, ...]:
    """The models that a run may use; the endpoint is one where the settings name it."""
    return (*MODELS, ENDPOINT) if model_endpoint.configured() else tuple(MODELS)


def ask_once(model: str, view: View, planted: bytes, tokens_max: int) -> model_endpoint.Completion:
    """Ask the model once: its proposal, and the tokens that question and answer count as.

    ``tokens_max``: what the step reserves for both. Raises as ``complete``, and PermanentError
    MDL-003 where the question leaves nothing of it for an answer: then it is not asked.
    """
    said = model_endpoint.INSTRUCTION.encode() if model == ENDPOINT else b""
    left = tokens_max - tokens(view, said)
    if left < 1:
        asked = f"The question counts as {tokens_max - left:,} tokens"
        text = f"{asked}, and the step reserves {tokens_max:,} for it and its answer: not sent."
        raise PermanentError(model_endpoint.NO_ROOM, text)
    if model != ENDPOINT:
        raw = MODELS[model](view, planted)
        return model_endpoint.Completion(raw, tokens(view, raw))
    endpoint = model_endpoint.configured()
    if endpoint is None:
        text = "No endpoint is set for the model of this run: name it in NANOVM_MODEL_URL."
        raise PermanentError(model_endpoint.NO_ANSWER, text)
    found = model_endpoint.complete(endpoint, view, left)
    return model_endpoint.Completion(found.raw, max(found.tokens, tokens(view, said + found.raw)))


def tokens(view: View, answer: bytes) -> int:
    """An estimate of the tokens of a question and its answer: one for each four bytes begun.

    The built-in models have no tokenizer, and a provider may report too little; the budget of
    tokens counts at least this.
    """
    asked = len(json.dumps(dict(view)).encode())
    return -(-(asked + len(answer)) // 4)


def _obeyed(text: str) -> bytes | None:
    return _json_order(text) or _worded_order(text)


def _json_order(text: str) -> bytes | None:
    start = text.find('{"tool"')
    if start < 0:
        return None
    try:
        value, _ = json.JSONDecoder().raw_decode(text[start:])
    except ValueError:
        return None
    return json.dumps(value).encode()


def _worded_order(text: str) -> bytes | None:
    order = TOOL_ORDER.search(text) or VERB_ORDER.search(text)
    if order is None:
        return None
    name = order.group(1) if order.re is TOOL_ORDER else f"{order.group(1).lower()}_money"
    rest = text[order.end() :]
    args: dict[str, Scalar] = {}
    amount, recipient = AMOUNT.search(rest), RECIPIENT.search(rest)
    if amount:
        digits = re.sub(r"\D", "", amount.group(2))
        cents = re.search(r"[.,]\d{2}$", amount.group(2)) is not None
        args["amount_minor"] = int(digits) if cents else int(digits) * 100
        sign = amount.group(1) or amount.group(3) or ""
        args["currency"] = SYMBOLS.get(sign, sign or "USD")
    if recipient:
        args["to"] = recipient.group(1).strip()
    return _proposal(name, args)


def _proposal(tool: str, args: Mapping[str, Scalar]) -> bytes:
    return json.dumps({"tool": tool, "args": dict(args)}).encode()
