"""What a span says of an envelope, and what none ever says."""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import product
from typing import Any
from uuid import UUID

from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

from engine.models import Envelope, Workspace
from engine.queries.telemetry.spans import Log, Spans
from engine.runtime import api, chains
from engine.store.logs import LogLine
from gate import calls, identity
from nanovm_core.core.canonical import decode, encode
from nanovm_core.core.envelope import canonical_hash
from tests.engine.telemetry.receiver import attributes
from tests.gate.conftest import Desk, desk
from tests.kit.house import PAY, House

assert desk  # the fixture
CANARY = "DE89370400440532013000"
CANARIES = (
    CANARY,
    f"agent:{CANARY.lower()}",
    f"https://x.example/{CANARY}",
    "de-89370400440532013000",
)
PLACE = ("log", "seq", "run", "n")


def stored(log: Workspace) -> Iterator[tuple[Log, LogLine]]:
    """The envelopes of a log, as the follower reads them."""
    found = Log(log.id.hex, log.origin, log.size, log.created_ms, True)
    for each in Envelope.objects.filter(workspace=log).order_by("seq"):
        place = (each.seq, each.run, each.n)
        yield found, LogLine(*place, bytes(each.bytes), each.hash, each.kind)


def exported(
    log: Workspace, change: Callable[[LogLine], LogLine] = lambda line: line
) -> list[Span]:
    """The spans of a log, as they are sent."""
    spans = Spans()
    found = encode_spans([spans.of(log, change(line)) for log, line in stored(log)])
    return [*found.resource_spans[0].scope_spans[0].spans]


def test_a_run_is_a_trace_with_a_span_for_each_envelope(house: House) -> None:
    run = house.run()
    spans = exported(run.workspace)
    assert len({each.span_id for each in spans}) == len(spans) == Envelope.objects.count()
    own = [each for each in spans if UUID(bytes=each.trace_id) == run.id]
    assert len(own) == run.length
    assert {each.parent_span_id for each in own} == {b"", own[0].span_id}
    of_log = [each for each in spans if UUID(bytes=each.trace_id) == run.workspace_id]
    assert {attributes(each)["nanovm.kind"] for each in of_log} == {"genesis", "supplier"}
    hashes = {*Envelope.objects.values_list("hash", flat=True)}
    assert {attributes(each)["nanovm.envelope"] for each in spans} == hashes
    assert attributes(own[0])["nanovm.policy"] == run.policy_hash
    assert not any(each.status.code for each in spans)
    assert exported(run.workspace) == spans


def test_a_difference_from_stripe_is_an_error_and_its_end_is_none(house: House) -> None:
    run = house.run()
    for body in ({"rule": "REC-001"}, {"outcome": "agrees"}):
        chains.observe(run.workspace_id, body, actor="controller")
    found, ended = exported(run.workspace)[-2:]
    assert attributes(found)["error.type"] == "REC-001"
    assert (found.status.code, ended.status.code) == (Status.STATUS_CODE_ERROR, 0)


def test_a_call_of_a_tool_lasts_from_its_intent_to_its_answer(house: House) -> None:
    run = house.run()
    [paid] = [each for each in exported(run.workspace) if each.name == f"execute_tool {PAY}"]
    said = attributes(paid)
    intent, result = Envelope.objects.filter(
        run=run.name, n__in=(said["nanovm.n"] - 1, said["nanovm.n"])
    )
    body: Any = decode(bytes(intent.bytes))
    assert paid.start_time_unix_nano == body["at_ms"] * 1_000_000
    assert paid.end_time_unix_nano == decode(bytes(result.bytes))["at_ms"] * 1_000_000  # type: ignore[index,call-overload,operator]
    assert (
        said.items()
        >= {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": PAY,
            "gen_ai.tool.call.id": body["idempotency_key"],
            "gen_ai.agent.name": "payer",
            "nanovm.step": "charge",
            "nanovm.outcome": "done",
        }.items()
    )
    log, line = next(each for each in stored(run.workspace) if each[1].hash == result.hash)
    alone = Spans().of(log, line)  # as after a crash: it has not seen the intent
    assert encode_spans([alone]).resource_spans[0].scope_spans[0].spans[0] == paid


def test_what_a_caller_names_is_not_exported(desk: Desk) -> None:
    identity.issue(desk.log.id, CANARY.lower(), "desk", by="visitor")
    desk.ask("a")
    desk.ask("b", CANARY)
    desk.ask(CANARY, "send", to=CANARY)
    desk.ask("d", to="all")
    desk.ask("e")
    calls.report(desk.holder, "a", "failed", code=CANARY, text=CANARY)
    calls.report(desk.holder, "e", "failed", text=CANARY)
    api.decline(str(desk.run("d").id), "visitor")
    bodies = b"".join(bytes(each) for each in Envelope.objects.values_list("bytes", flat=True))
    spans = exported(desk.log)
    assert CANARY.encode() in bodies
    assert CANARY.lower() not in str(spans).lower()
    bad = [attributes(each) for each in spans if each.status.code]
    assert [each["error.type"] for each in bad if each["nanovm.kind"] == "refused"] == ["CAP-001"]
    failed = [each["error.type"] for each in bad if each["nanovm.kind"] == "failed"]
    assert failed == ["GAT-015"] * 2
    said = [attributes(each) for each in spans]
    assert {each.get("gen_ai.agent.name") for each in said} == {None, "payer"}
    of_caller = {each.get("gen_ai.agent.id") for each in said} - {None}
    assert of_caller == {each.trace_id.hex() for each in spans if each.name == "agent"}
    assert ["mail-to-all"] in [each.get("nanovm.rules") for each in said]
    assert "mail" in {each.get("gen_ai.tool.name") for each in said}


def canaried(value: Any, canary: str) -> Any:
    """The same value with the canary in each text."""
    if isinstance(value, Mapping):
        return {key: canaried(each, canary) for key, each in value.items()} | {CANARY: canary}
    if isinstance(value, list):
        return [canaried(each, canary) for each in value]
    return canary if isinstance(value, str) else value


def test_no_field_brings_text_out(house: House) -> None:
    """Each field by itself, and all at once, in every envelope of a run and its log."""
    run, sent, spans = house.run(), [], Spans()
    for (log, line), canary in product(stored(run.workspace), CANARIES):
        body: Any = decode(line.data)
        others = {name: canaried(body[name], canary) for name in body.keys() - PLACE}
        for changed in (others, *({name: each} for name, each in others.items())):
            sent.append(spans.of(log, resealed(line, body | changed)))
    assert len(sent) > 1_000
    said = str(encode_spans(sent)).lower()
    assert CANARY.lower() not in said
    assert CANARY[2:] not in said


def resealed(line: LogLine, body: Mapping[str, Any]) -> LogLine:
    data = encode(body)
    return line._replace(data=data, hash=canonical_hash(data))


DAMAGE: Mapping[str, Callable[[LogLine], LogLine]] = {
    "bytes": lambda line: line._replace(data=line.data.replace(b"visitor", CANARY.encode())),
    "no JSON": lambda line: line._replace(data=b"\xff" + CANARY.encode()),
    "hash": lambda line: line._replace(hash=CANARY),
    "another chain": lambda line: line._replace(run=CANARY),
    "n": lambda line: resealed(line._replace(n=CANARY), decode(line.data) | {"n": CANARY}),  # type: ignore[arg-type,operator]
    "seq": lambda line: line._replace(seq=line.seq + 1),
}


def damaged_at(place: int, change: Callable[[LogLine], LogLine], line: LogLine) -> LogLine:
    return change(line) if line.seq == place else line


def test_damaged_bytes_say_only_that(house: House) -> None:
    run = house.started()
    place = Envelope.objects.get(run=run.name, n=0).seq
    for change in DAMAGE.values():
        spans = exported(run.workspace, partial(damaged_at, place, change))
        [damaged] = [each for each in spans if each.name == "damaged"]
        said = attributes(damaged)
        assert said.keys() == {"nanovm.log", "nanovm.seq", "nanovm.damaged", "error.type"}
        assert damaged.start_time_unix_nano == run.workspace.created_ms * 1_000_000
        assert CANARY not in str(spans)
