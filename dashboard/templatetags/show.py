"""How values look: time, money, hashes, icons, a form's key."""

import json
import re
import secrets
from collections.abc import Hashable
from datetime import UTC, datetime
from functools import cache, lru_cache, partial
from typing import Any

from django import template
from django.conf import settings
from django.template.loader import render_to_string
from django.templatetags.static import static
from django.utils.html import format_html
from django.utils.safestring import SafeString

from dashboard.web.idempotency import FIELD, command_key
from engine.clock import now_ms
from engine.ops import timings
from engine.privacy.expiry import DAY_MS
from engine.queries import why
from engine.queries.log import LINK, EventRow
from engine.queries.runs import RunHead
from pipeline.steps.reasons import REASONS, RULES
from reader.currencies import shown

register = template.Library()

THEMES = ("light", "dark")
BUSY = {"start": "Starting…", "pause": "Pausing…", "resume": "Resuming…", "step": "Stepping…",
        "wake": "Asking…", "checked": "Recording…", "approve": "Approving…",
        "approve_once": "Approving…", "decline": "Declining…", "kill": "Stopping…",
        "fooled": "Asking…", "honest": "Asking…"}  # fmt: skip
FAR_MS = 10**13  # damaged times may be anything
NO_TIME = "not a time"
SLOT = re.compile(r"\{\{\s*([^{}]*?)\s*\}\}")  # how a model names a value of the invoice
VALUE = re.compile(
    r"(\S?[A-Z]{3} -?\d\S*|[A-Z]{2}\d\d(?: [A-Z0-9]{1,4})+|\S*-\S*|\S*\d\S{3,})"  # money; an IBAN
)
WHOLE = '<span class="whole">{}</span>'
OF_THE_POLICY = ("POL-003", "POL-020")  # the stored text is what the operator's policy says
VERDICTS = {"BLOCKED": "shield", "IGNORED": "ignored", "DETECTED": "detected", "ACCEPTED": "check"}
CHIPS = {"RUNNING": "info", "WAITING": "warn", "SUCCESS": "ok", "FAILED": "failed",
         "DECLINED": "", "PAUSED": "warn", "SUSPENDED": "warn"}  # fmt: skip
STEP_ICONS = {"done": "check", "now": "play", "waiting": "wait", "failed": "cross"}
KIND_ICONS = {"refused": "shield", "ignored": "ignored", "integrity": "detected", "failed": "cross",
              "result": "check", "intent": "arrow", "suspended": "wait", "resumed": "play",
              "terminal": "lock", "genesis": "file", "alert": "detected",
              "message": "arrow"}  # fmt: skip
PLACES = {
    "files": "files (encrypted values, and the remittance advice in the mail folder)",
    "media files": "encrypted documents",
    "mail files": "remittance advice in the mail folder",
    "register entries": "supplier's entry in the register",
}
ORDERERS = {
    "visitor": "the visitor whose workspace this is",
    "operator": "the operator, by command",
    "expiry": "nobody: the workspace was unused for too long",
    "restore": "nobody: repeated after a restore",
}
KIND_WORDS = {"genesis": "run created", "message": "hand-over", "agent": "agent state",
              "supplier": "supplier changed", "settlement": "budget settled",
              "observation": "payments compared", "upgraded": "version upgraded"}  # fmt: skip


@register.inclusion_tag("run/_checks.html")
def five_checks(run: RunHead, number: int | None) -> dict[str, Any]:
    """The five checks of the decision that an event of a run seals; nothing where it seals none."""
    return {"checks": why.checks_at(run, number) if number is not None else ()}


@register.simple_tag
@cache
def icon(name: str) -> SafeString:
    """An icon of the sprite; decoration, so that screen readers skip it."""
    return format_html(
        '<svg class="icon" aria-hidden="true"><use href="{}#{}"></use></svg>',
        static("icons.svg"),
        name,
    )


def _drawn(form: str, row: Hashable, code: str = "") -> SafeString:
    """A part of a page, drawn once for each value of its row, for all viewers."""
    return render_to_string(form, {"code": code, "row": row})


register.simple_tag(lru_cache(maxsize=4096)(_drawn), name="row_drawn")
register.simple_tag(lru_cache(maxsize=256)(_drawn), name="picture_drawn")


@register.simple_tag(takes_context=True)
def theme(context: template.Context) -> str:
    """light, dark, or empty: as the visitor chose, else as their system says."""
    request = context.get("request")
    chosen = request.COOKIES.get("theme", "") if request else ""
    return chosen if chosen in THEMES else ""


@register.filter
def refusal(code: str, text: str = "") -> str:
    """A refusal as pages say it, from its code; ``text`` is what was stored beside it.

    The stored text is part of the record and stays as it was. It is shown where it is the
    policy's own sentence, or where there is no code.
    """
    rule = RULES.get(code) or REASONS.get(code)
    if rule is None:
        return text or "The request was refused."
    return f"{rule.title}. Policy: “{text}”" if text and code in OF_THE_POLICY else rule.sentence


@register.filter
def rule_link(code: str) -> SafeString:
    """A code with a link to what it means, where it is one of ours, which not all are."""
    is_ours = code in RULES or code in REASONS
    return format_html('<a href="/docs/rules/{0}/">{0}</a>' if is_ours else "{}", code)


@register.simple_tag
def once_key() -> SafeString:
    """The hidden field that makes a form count once, however often it is sent."""
    key = secrets.token_hex(16)
    return format_html('<input type="hidden" name="{}" value="{}">', FIELD, key)


@register.simple_tag
def counterpart() -> str:
    """What stands for Stripe here."""
    local = settings.STRIPE["local"]
    return "local Stripe test server" if local else "Stripe test mode"


@register.filter
def kind_words(kind: str) -> str:
    """An event's kind as a list says it."""
    return KIND_WORDS.get(kind) or words(kind)


@register.filter
def event_words(row: EventRow) -> str:
    """What an event was, as a list says it: its kind, or who hands over to whom."""
    giver, taker = row.handed
    if row.kind == LINK and row.state_event:
        return f"{words(row.state_event)} ({row.outcome})"
    return f"{giver}→{taker}" if taker else kind_words(row.kind)


@register.filter
def chain_words(run: str) -> str:
    """A chain that belongs to no run, as a list names it: an agent's, or the log's own."""
    return run.replace(":", " ") if run.startswith("agent:") else "log"


@register.filter
def kept_words(line: str) -> str:
    """What an erasure keeps, as pages say it; the certificate itself says envelopes."""
    return "audit log events" if line == "envelopes" else line


@register.filter
def place_words(place: str) -> str:
    """A place that an erasure emptied, as pages say it."""
    return PLACES.get(place, words(place))


@register.filter
def orderer(actor: str) -> str:
    """Who ordered an erasure, as pages say it."""
    if actor.startswith("link-"):
        return f"the holder of the link {actor.removeprefix('link-')}"
    return ORDERERS.get(actor, actor)


@register.filter
def integrity_word(value: str) -> str:
    """A verdict on a run's integrity as pages say it; the stored value stays HELD."""
    return "intact" if value == "HELD" else value


@register.filter
def clock(at_ms: int | None) -> SafeString | str:
    """A moment in UTC, machine-readable."""
    return _time(at_ms, "%Y-%m-%d %H:%M:%S UTC")


@register.filter
def hour(at_ms: int | None) -> SafeString | str:
    """A moment within a run: the time of day with milliseconds, UTC."""
    return _time(at_ms, "%H:%M:%S", fraction=f".{(at_ms or 0) % 1000:03}")


@register.filter
def time_of_day(at_ms: int | None) -> SafeString | str:
    """A moment as people read it beside a fact: the time of day, UTC."""
    return _time(at_ms, "%H:%M:%S")


@lru_cache(maxsize=4096)
def _time(at_ms: int | None, shape: str, fraction: str = "") -> SafeString | str:
    if not at_ms:
        return ""
    found = moment(at_ms)
    if found is None:
        return NO_TIME
    return format_html(
        '<time datetime="{}{}Z" title="{} UTC">{}{}</time>',
        *(f"{found:%Y-%m-%dT%H:%M:%S}", fraction, f"{found:%Y-%m-%d %H:%M:%S}"),
        *(f"{found:{shape}}", fraction),
    )


def moment(at_ms: int) -> datetime | None:
    """The moment; None where a number, out of a damaged row maybe, lies outside all years."""
    try:
        return datetime.fromtimestamp(at_ms // 1000, UTC)
    except (OverflowError, ValueError, OSError):
        return None


@register.filter
def values(text: object, erased: object = None) -> SafeString:
    """Text in which no value (an amount, a number, a code, a name) breaks; marked where erased."""
    if erased:
        return format_html('<span class="tombstone">{}</span>', text)
    parts = VALUE.split(str(text))
    return format_html("{}" + (WHOLE + "{}") * (len(parts) // 2), *parts)


def on_the_clock(at_ms: int) -> str:
    """The time of day, UTC."""
    return f"{at_ms // 3_600_000 % 24:02}:{at_ms // 60_000 % 60:02}:{at_ms // 1_000 % 60:02}"


def length(span_ms: int) -> str:
    """A duration as short as it can be read: 48 ms, 3.4 s, 12 min, 5 h, 3 d."""
    span_ms = min(max(0, span_ms), FAR_MS)
    if span_ms < 1_000:
        return f"{span_ms} ms"
    if span_ms < 100_000:
        return f"{span_ms // 1_000}.{span_ms % 1_000 // 100} s"
    minutes = span_ms // 60_000
    if minutes < 120:
        return f"{minutes} min"
    return f"{minutes // 60} h" if minutes < 48 * 60 else f"{minutes // 1_440} d"


@register.filter
def age(at_ms: int | None) -> SafeString | str:
    """How long ago something was, as short as it can be read; the moment is in the title."""
    span_ms = max(0, now_ms() - (at_ms or 0))
    ago = f"{span_ms // 1_000} s" if span_ms < 100_000 else length(span_ms)
    return _time(at_ms, f"{ago} ago")


@register.filter
def took(duration_ms: int | None) -> str:
    if duration_ms is None:
        return ""
    if duration_ms < 1000:
        return f"{duration_ms} ms"
    if duration_ms >= 2 * DAY_MS:
        return f"{duration_ms // DAY_MS} days"
    return f"{duration_ms // 1000}.{duration_ms % 1000 // 100} s"


TIME_PARTS = {
    timings.CHILD: "Process that reads PDFs",
    timings.MODEL: "Model",
    timings.GATE: "Kernel's decisions",
    timings.COMMIT: "Commit",
    timings.STRIPE: "Stripe",
    timings.VAULT: "Vault",
    timings.REST: "Everything else",
    timings.WHOLE: "In all",
}


@register.filter
def money(amount_minor: int | None, currency: str) -> str:
    """An amount in minor units as people write it: 123456 EUR is EUR 1,234.56."""
    return "" if amount_minor is None else shown(amount_minor, currency)


@register.filter
def brief(digest: str) -> SafeString | str:
    """A hash shortened for a list; its whole is in the title and on its own page."""
    if len(digest) < 20:
        return digest
    return format_html(
        '<span class="hash" title="{}">{}…{}</span>', digest, digest[:8], digest[-8:]
    )


@register.filter
def pretty(value: Any) -> str:
    """JSON for reading; never for hashing."""
    return slots(json.dumps(value, indent=2, ensure_ascii=False, sort_keys=True))


@register.filter
def slots(value: object) -> str:
    """A text with each ``{{payee}}`` in words; what was sent and is hashed stays as it was."""
    return SLOT.sub(lambda found: f"the invoice's {words(found[1])}", str(value))


@register.filter
def grouped(iban: str) -> str:
    """An account number in groups of four, as people read and compare it."""
    return " ".join(iban[at : at + 4] for at in range(0, len(iban), 4))


@register.filter
def is_nested(value: Any) -> bool:
    return isinstance(value, dict | list)


@register.filter
def destroyed(outcome: object) -> str:
    """What an erasure did in one place: a count of what went, or why it did not go."""
    return f"{outcome} destroyed" if isinstance(outcome, int) else str(outcome)


@register.filter
def words(name: str) -> str:
    return name.replace("_", " ").replace("-", " ")


@register.filter
def lower_first(text: str) -> str:
    """A button's words within a sentence."""
    return text[:1].lower() + text[1:]


def _looked_up(table: dict[str, str], other: str, word: str) -> str:
    return table.get(word, other)


for _name, _table, _other in (
    *(("chip_tone", CHIPS, ""), ("step_icon", STEP_ICONS, "dot")),
    *(("kind_icon", KIND_ICONS, "dot"), ("verdict_icon", VERDICTS, "held")),
    ("time_part", TIME_PARTS, ""),
):
    register.filter(_name, partial(_looked_up, _table, _other))


@register.simple_tag
def mark_difference(found: str, expected: str) -> SafeString:
    """``found`` with the first character that differs from ``expected`` marked."""
    places = (i for i, (a, b) in enumerate(zip(found, expected, strict=False)) if a != b)
    at = next(places, len(found))
    return _marked(found[:at], found[at : at + 1], found[at + 1 :])


@register.simple_tag
def mark_part(text: str, part: str) -> SafeString:
    """``text`` with the first occurrence of ``part`` marked."""
    return _marked(*(text.partition(part) if part else (text, "", "")))


def _marked(before: str, part: str, after: str) -> SafeString:
    return format_html("{}<mark>{}</mark>{}" if part else "{}{}{}", before, part, after)


@register.simple_tag(takes_context=True)
def act(
    context: template.Context,
    name: str,
    label: str,
    picture: str = "",
    kind: str = "",
    place: str = "act",
) -> SafeString:
    """A button that posts a command for the run, by htmx where it is there.

    Its key stands for the run's last change of state: two clicks between two changes are one
    command, and the button stays the same element while the run does its steps. In the phone's
    bottom bar (``place``) the same command has the same key, and another id. ``decides_at`` of the
    context: where the form leads, if not to the run's page.
    """
    run = context["run"]
    url = f"{context.get('decides_at', '/runs/')}{run.code}/{name}/"
    key = command_key(run, name, context["epoch"])
    return format_html(
        '<button class="btn {}" form="act" formaction="{}" hx-post="{}" hx-swap="none" '
        'hx-sync="this:drop" id="{}-{}" name="{}" value="{}" data-busy="{}" data-needs-server>'
        "{}<span>{}</span></button>",
        *(kind, url, url, place, name, FIELD, key, BUSY[name]),
        *(icon(picture) if picture else "", values(label)),
    )


@register.filter
def condition_value(value: object) -> str:
    """A value as the condition language writes it."""
    if isinstance(value, tuple):
        return f"[{', '.join(condition_value(each) for each in value)}]"
    return f"'{value}'" if isinstance(value, str) else str(value).lower()
