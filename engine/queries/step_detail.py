"""What a step read and set, what its model was shown and answered, and the request of a call."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from engine.application import amount_of, installed, label_of
from engine.models import Envelope, Run, Secret
from engine.queries.runs import RunHead, body_of
from engine.queries.secrets import FactView, opened_all
from engine.queries.steps import Body, of_kind
from engine.store import programs
from engine.store.records import part_of
from nanovm_core.core.program import MODEL
from nanovm_core.core.projection import DeterministicSanitizer
from nanovm_core.core.vault import PREFIX, TOMBSTONE
from nanovm_core.errors import RefusedError, VerificationError

NOT_SHOWN = {
    "document": "the document itself",
    "staging": "the extracted text: encrypted until the next step, then deleted",
}


class ProposalView(NamedTuple):
    """One answer of a model, or of someone who wrote in its place, with its verdict."""

    number: int  # of its event
    text: str
    erased: bool
    actor: str
    verdict: str
    rules: tuple[str, ...]


class RequestView(NamedTuple):
    """A request under an idempotency key, with its metadata as they are sent."""

    number: int  # of the event that recorded it
    key: str
    metadata: tuple[tuple[str, str], ...]


class StepDetail(NamedTuple):
    """Input and output of one step. ``view`` is what the model is sent."""

    read: tuple[FactView, ...]
    set: tuple[FactView, ...]
    view: Mapping[str, Any]
    instruction: str
    proposals: tuple[ProposalView, ...]
    requests: tuple[RequestView, ...]
    judged: Mapping[str, Any]  # the newest event that decided the call here; empty for none
    rules: tuple[str, ...]  # what decided it


def of_step(run: RunHead, step: str) -> StepDetail:
    """The recorded input and output of a step, personal values opened for their owner."""
    rows = Envelope.objects.filter(workspace_id=run.workspace, run=run.id).order_by("n")
    bodies = [{**body_of(data), "n": n} for n, data in rows.values_list("n", "bytes")]
    here = [body for body in bodies if body.get("step") == step]
    judged = [body for body in here if body.get("kind") in ("result", "suspended")]
    judged = [body for body in judged if _rules(body)][-1:]
    shape = programs.shape_of(Run.objects.get(id=run.id))
    asks = step in shape.steps and shape.steps[step].kind == MODEL
    own = [each for each in installed() if each.name == shape.name]
    return StepDetail(
        read=_facts(run, _merged(here, "intent", "in")),
        set=_facts(run, _merged(here, "result", "out")),
        view=shown_to_model(run) if asks else {},
        instruction="".join(each.instruction(run.model) for each in own if asks),
        proposals=_proposals(run, here, bodies),
        requests=tuple(
            _request(run, body, sent)
            for body in of_kind(here, "intent")
            for each in own
            if (sent := each.sent_beside(str(body.get("tool"))))
        ),
        judged=judged[0] if judged else {},
        rules=_rules(judged[0]) if judged else (),
    )


def _merged(bodies: list[Body], kind: str, name: str) -> Body:
    """A field of a step's envelopes of one kind; what came later counts."""
    merged: Body = {}
    for body in of_kind(bodies, kind):
        merged |= part_of(body, name)
    return merged


def _request(run: RunHead, body: Body, sent: Sequence[str]) -> RequestView:
    key = str(body.get("idempotency_key", ""))
    values = {"run": run.id, "code": run.code, "key": key}
    metadata = tuple((name, values[name]) for name in sent)
    return RequestView(number=body["n"] + 1, key=key, metadata=metadata)


def _facts(run: RunHead, values: Body) -> tuple[FactView, ...]:
    values = {name: value for name, value in values.items() if name != "proposal"}
    closed = {name for name in values if name in NOT_SHOWN}
    secrets = _opened(run, [v for name, v in values.items() if name not in closed])
    return tuple(_fact(name, values, secrets) for name in values)


def _fact(name: str, values: Body, secrets: Mapping[str, str]) -> FactView:
    value, ref = values[name], ""
    if isinstance(value, str) and value.startswith(PREFIX):
        ref, text = value, NOT_SHOWN.get(name) or secrets.get(value, "not a value of this run")
    elif name == "amount_minor" and (amount := amount_of(values)):
        text = amount
    else:
        text = str(value)
    label = label_of(name)
    return FactView(slot=name, label=label, value=_text(text), ref=ref, erased=text == TOMBSTONE)


def _opened(run: RunHead, values: list[object]) -> dict[str, str]:
    """The run's own secrets among these values: an envelope may be forged to name another's."""
    refs = [each for each in values if isinstance(each, str) and each.startswith(PREFIX)]
    own = Secret.objects.filter(run_id=run.id, ref__in=refs).values_list("ref", flat=True)
    return opened_all([*own])


def shown_to_model(run: RunHead) -> Mapping[str, Any]:
    """The projection that the model is sent; the slots that came later are hidden from it."""
    try:
        program = programs.program_of(Run.objects.get(pk=run.id))
    except (VerificationError, RefusedError):
        return {}  # damage: the page says so elsewhere
    slots, advised = program.slots, program.advice.slots
    held = {name: value for name, value in run.slots.items() if name in slots}
    refs = {name: str(ref) for name, ref in held.items() if slots[name].type == "ref"}
    refs = {name: ref for name, ref in refs.items() if name not in advised}
    values = _opened(run, [ref for name, ref in refs.items() if name != "document"])
    opened = {name: values[ref] for name, ref in refs.items() if ref in values}
    modes = {name: slot.model for name, slot in slots.items()}
    return DeterministicSanitizer(modes=modes).for_model(held, opened)


def _proposals(run: RunHead, here: list[Body], bodies: list[Body]) -> tuple[ProposalView, ...]:
    refs = {body["n"]: _proposed(body) for body in here if _proposed(body)}
    texts = _opened(run, [*refs.values()])
    return tuple(
        ProposalView(
            number=body["n"] + 1,
            text=_text(texts.get(refs[body["n"]], "")),
            erased=texts.get(refs[body["n"]]) == TOMBSTONE,
            actor=str(body.get("actor", "")),
            verdict=str(part_of(said, "decision").get("verdict", "")),
            rules=_rules(said),
        )
        for body, said in ((each, _judgement(each, bodies)) for each in here if each["n"] in refs)
    )


def _proposed(body: Body) -> str:
    given = part_of(body, "in" if body.get("kind") == "refused" else "out")
    return str(given.get("proposal", ""))


def _judgement(body: Body, bodies: list[Body]) -> Body:
    """The envelope that judged a proposal: its own refusal, or the next decision."""
    if body.get("kind") == "refused":
        return body
    after = (each for each in bodies if each["n"] > body["n"] and each.get("step") == "authorize")
    return next((each for each in after if part_of(each, "decision")), {})


def _rules(body: Body) -> tuple[str, ...]:
    listed = part_of(body, "decision").get("rules")
    return tuple(str(each) for each in listed) if isinstance(listed, list) else ()


def _text(value: str) -> str:
    """Text that a page can hold: half a surrogate pair is replaced."""
    return value.encode("utf-8", "replace").decode()
