"""The report of a breach: every fact of it that names no person."""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from django.http import Http404, HttpResponse

from dashboard.arena.judge import BREACHED, code_version
from dashboard.templatetags.show import pretty
from dashboard.web.downloads import attached
from engine.models import Run
from pipeline.steps.propose.model_adapters import TOOL
from sabotage.models import Attack

HOW = """\
## What to do with it

1. Download from the attack's page the run's bundle, which anyone can check with verify.py, and the
   reproduction bundle if there is one.
2. Check them before you send them: a bundle can contain data of the invoice.
3. Send them to the operator of this installation. If the fault is in nanovm itself, report it to
   the maintainers privately first: the report can be used for an attack.
"""


def download(attack: Attack, name: str) -> HttpResponse:
    """The report as a file; 404 where the attack did not get through."""
    if attack.integrity != BREACHED:
        raise Http404("this attack did not get through, so there is no report")
    response = HttpResponse(text_of(attack), content_type="text/markdown; charset=utf-8")
    return attached(response, f"breach-{name}-{attack.pk}.md")


def text_of(attack: Attack) -> str:
    """The report, in Markdown. What was typed is in it by the name of its secret alone."""
    run = Run.objects.get(pk=attack.run_id)
    return "\n".join((*_lines(attack, run), "", HOW))


def _lines(attack: Attack, run: Run) -> Iterator[str]:
    yield f"# {BREACHED}: {attack.injector} on run {run.code}"
    yield ""
    for name, value in _facts(attack, run).items():
        yield f"- {name}: {value}"
    yield from ("", "## What got out", "")
    yield from (f"- {each}" for each in _breaches(attack.evidence))
    for title, value in (("What was fired", attack.params), ("The evidence", attack.evidence)):
        # Indented, so that nothing within can end it.
        yield from ("", f"## {title}", "", *(f"    {line}" for line in pretty(value).split("\n")))


def _facts(attack: Attack, run: Run) -> Mapping[str, object]:
    fired = datetime.fromtimestamp(attack.created_ms // 1000, UTC)
    return {
        "attack": attack.pk,
        "run": run.pk,
        "fired": f"{fired:%Y-%m-%d %H:%M:%S} UTC",
        "verdict": attack.verdict,
        "rule": attack.rule or "none",
        "decided in": attack.where or "no check stopped it",
        "state before": attack.state_before,
        "state after": attack.state_after,
        "program": run.program_hash,
        "policy": run.policy_hash,
        "record": f"{run.length} events, head {run.head}",
        "the one tool a model may call": TOOL,
        **{f"source of {name}": digest for name, digest in code_version().items()},
    }


def _breaches(evidence: Mapping[str, Any]) -> tuple[str, ...]:
    told = (*evidence.get("breaches", ()), *evidence.get("seen_by_the_attack", ()))
    return tuple(map(str, told)) or ("It was accepted, and differs from the document.",)
