"""Performs a tool at its upstream: what is sent, how often, and what a missing answer means."""

from collections.abc import Sequence
from typing import Any

from engine.errors import NotSentError, OutcomeUnknownError, PermanentError, TransientError
from engine.models import AdapterCall
from engine.work import Answer, Work, done
from gate.application import RESULT
from gate.upstreams import listed
from nanovm_core.core import canonical
from nanovm_core.core.authority.capabilities import ArgSpec
from nanovm_core.core.events import EffectUnknown
from nanovm_core.decimals import Number, decimal_of

NO_ANSWER, SENT_NOTHING = "GAT-009", NotSentError.__name__
EARLIER = "An earlier try may have called the tool. Look there, then decide."


def perform(work: Work) -> Answer:
    """Perform a tool that the program has ``at`` an upstream; its answer is sealed as JSON.

    It is sent once, under the effect's key. What may have been done before is done again only
    where the upstream's ``repeats`` names the tool, or a person lets it.

    Raises:
        NotSentError: GAT-009, it was not reached or is too busy; nothing was done.
        PermanentError: GAT-008, it is not the pinned tool; GAT-020, the upstream is not set up;
            GAT-021, it says that it failed or took no call; PII-…. No try may have acted.
        OutcomeUnknownError: GAT-009, it was called and did not answer, now or before; GAT-012, its
            answer cannot be read; all of these after a try that may have acted, or paid.
        TransientError: GAT-009, the same for a tool of ``repeats``.
    """
    acted = _acted_before(work)
    try:
        return done(work, {}, work.sealed({RESULT: _result(work, acted)}))
    except PermanentError as error:
        if acted:
            raise OutcomeUnknownError(error.code, f"{error.text} {EARLIER}") from error
        raise


def _result(work: Work, acted: Sequence[str]) -> bytes:
    from gate.upstreams import wires  # most processes ask no upstream, and it takes a second

    tool, key = work.program.tools[work.effect.tool], work.effect.key
    upstream = listed.named(tool.at)
    repeats = tool.name in upstream.repeats
    if not repeats and acted and acted[-1] != EffectUnknown.__name__:  # else a person said: again
        raise OutcomeUnknownError(NO_ANSWER, EARLIER)
    call = wires.Call(tool.name, tool.pinned, written(work), key, bool(tool.money), repeats)
    try:
        return wires.perform(upstream, call)
    except OutcomeUnknownError as error:
        if repeats and error.code == NO_ANSWER:
            raise TransientError(error.code, error.text) from error
        raise


def _acted_before(work: Work) -> Sequence[str]:
    """What came of each earlier try that may have acted, by the adapters' own record of each."""
    calls = AdapterCall.objects.filter(run=work.run.id, key=work.effect.key)
    found = [*calls.order_by("number").values_list("outcome", flat=True)][:-1]
    return [each for each in found or ["begun"] * work.begun_before if each != SENT_NOTHING]


def written(work: Work) -> bytes:
    """The arguments as the upstream's JSON object: refs opened, decimals as numbers again."""
    specs = work.program.tools[work.effect.tool].args
    args = {name: _sent(work, name, specs[name]) for name in work.effect.args}
    return canonical.written(args)


def _sent(work: Work, name: str, spec: ArgSpec) -> Any:
    value = work.effect.args[name]
    if spec.type == "ref":
        try:
            return work.opened(name).decode()
        except UnicodeDecodeError as error:
            raise PermanentError("PII-002", f"The secret in {name} is no text.") from error
    if spec.item != "decimal":
        return value
    items: Any = value if isinstance(value, list | tuple) else [value]
    found = [Number(decimal_of(each, spec.places)) for each in items]
    return found if spec.type == "list" else found[0]
