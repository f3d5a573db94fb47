"""The envelope format: kinds and fields, the chains of agents, and the lineages of runs."""

import json
from collections.abc import Mapping
from typing import Any

import pytest

from tests.core.proof import bundles as kit

RUN, PAYER, OTHER = kit.run_id(0), kit.run_id(1), kit.run_id(2)
AGENT = "agent:payer"
MOVED = {"from": "running.idle", "event": "TaskAssigned", "to": "running.active"}
SECRETS = [{"slot": "payee", "ref": kit.REF, "c": kit.HASH}]
KINDS: dict[str, tuple[str, dict[str, Any]]] = {  # a run that the kind fits, and its own fields
    "message": (OTHER, {"from": "reader", "to": "payer", "of": "payment", "chain": kit.HASH}),
    "agent": (AGENT, {"state": MOVED}),
    "supplier": ("log", {"state": MOVED, "secrets": SECRETS}),
    "settlement": ("log", {"tokens": 12, "budget": {"spent": {"EUR": 1}, "released": {"EUR": 2}}}),
    "alert": (AGENT, {"rule": "GOV-001", "text": "the restart limit"}),
    "observation": ("log", {"at": 7, "count": 3, "hash": kit.HASH, "drifts": ["REC-001"]}),
    "upgraded": ("log", {"to": "1.1.0"}),
}
FIELDS: dict[str, Any] = {  # of any kind
    "decided_by": "within-limit",
    "origin": {"amount_minor": "register"},
    "given": {"ledger": {"workspace/EUR": 1}, "revoked": ["charge"]},
    "calls": 1,
}
OF_GENESIS: dict[str, Any] = {"lineage": OTHER, "incarnation": 2, "of": RUN}


def grown(run: str, kind: str, **fields: Any) -> kit.Log:
    """A signed log whose last envelope is this one; only its rule can find it bad."""
    log = kit.whole_log()
    if run != "log":
        log.add(run, "genesis")
    log.add(run, kind, **fields)
    return log


def verdict(log: kit.Log) -> tuple[int, str]:
    return kit.judged(kit.packed(kit.log_members(log)), "--key", kit.LOG_KEY.vkey)


def found_at(log: kit.Log) -> bool:
    """Whether the last envelope, and no other, is called bad."""
    code, text = verdict(log)
    return code == 1 and text.splitlines()[1].startswith(f"seq {len(log.lines) - 1}: ")


def run_verdict(log: kit.Log, run: str, *runs: str) -> tuple[int, str]:
    data = kit.packed(kit.run_members(log, run, runs=runs))
    return kit.judged(data, "--key", kit.LOG_KEY.vkey)


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_takes_its_own_fields(kind: str) -> None:
    run, fields = KINDS[kind]
    assert verdict(grown(run, kind, **fields))[0] == 0
    assert verdict(grown(run, kind))[0] == 0


def test_supplier_belongs_on_the_log() -> None:
    for run in (OTHER, AGENT):
        assert found_at(grown(run, "supplier"))


@pytest.mark.parametrize("kind", ["message", "agent", "supplier", "settlement", "observation"])
def test_such_a_kind_has_no_further_fields(kind: str) -> None:
    further: dict[str, Any] = {"why": "because", "lineage": RUN, "length": 1}
    for name, value in further.items():
        assert found_at(grown(KINDS[kind][0], kind, **{name: value}))


@pytest.mark.parametrize("name", FIELDS)
def test_field_of_any_kind(name: str) -> None:
    for run, kind in ((OTHER, "result"), (OTHER, "ignored"), ("log", "policy")):
        assert verdict(grown(run, kind, **{name: FIELDS[name]}))[0] == 0
    log = kit.whole_log()
    log.add(OTHER, "genesis", **{name: FIELDS[name]})
    assert verdict(log)[0] == 0


@pytest.mark.parametrize("name", OF_GENESIS)
def test_field_of_a_genesis_alone(name: str) -> None:
    log = kit.whole_log()
    log.add(OTHER, "genesis", **{name: OF_GENESIS[name]})
    assert verdict(log)[0] == 0
    log.add(OTHER, "result", **{name: OF_GENESIS[name]})
    assert found_at(log)


OF_RESULT: Mapping[str, tuple[Any, ...]] = {
    "decided_by": (1, None, ["rule"]),
    "origin": ("register", {"amount_minor": 1}, []),
    "given": ("ledger", ["ledger"], 1),
    "calls": (-1, "1", True, {}),
}
STATES: tuple[Any, ...] = ("running", {"from": 1}, {"by": "x"})
BAD: tuple[tuple[str, str, Mapping[str, Any]], ...] = (
    *((OTHER, "result", {name: bad}) for name, bads in OF_RESULT.items() for bad in bads),
    *((OTHER, "result", {"budget": {name: 1}}) for name in ("gone", "tokens")),
    *((OTHER, "message", {name: 1}) for name in ("from", "to", "of", "chain")),
    *((AGENT, "agent", {"state": bad}) for bad in STATES),
    ("log", "settlement", {"tokens": "1"}),
    ("log", "settlement", {"tokens": -1}),
    *(("log", "observation", {name: "x"}) for name in ("at", "count", "hash", "drifts")),
)


@pytest.mark.parametrize("number", range(len(BAD)))
def test_bad_value_of_a_field(number: int) -> None:
    run, kind, fields = BAD[number]
    log = grown(run, kind)
    log.lines[-1] = kit.dumps({**json.loads(log.lines[-1]), **fields})
    assert found_at(log)


@pytest.mark.parametrize("value", ["x", 1, RUN + "0", "log", AGENT])
def test_a_lineage_is_a_run(value: object) -> None:
    log = kit.whole_log()
    log.add(OTHER, "genesis", lineage=value)
    assert found_at(log)


@pytest.mark.parametrize("name", ["a", "reader-2", "z" * 30])
def test_agents_have_chains_of_their_own(name: str) -> None:
    run = f"agent:{name}"
    log = grown(run, "agent", state=MOVED)
    log.add("agent:other", "genesis")
    log.add(run, "alert")
    assert verdict(log)[0] == 0
    assert run_verdict(log, run)[0] == 0
    log = grown(run, "agent")
    log.add("agent:other", "agent")  # without a genesis
    assert found_at(log)
    log = grown(run, "agent")
    log.add("agent:other", "genesis")
    log.add(run, "alert", prev=kit.leaf(log.lines[-1]).hex())
    assert verdict(log)[0] == 1


@pytest.mark.parametrize("name", ["", "1a", "-a", "A", "a" * 31, "a_b", "a\n", "ä"])
def test_no_agent_has_such_a_name(name: str) -> None:
    log = kit.whole_log()
    log.add(f"agent:{name}", "genesis")
    assert found_at(log)


@pytest.mark.parametrize("kind", ["settlement", "alert", "message", "observation"])
def test_what_is_learned_after_the_end_of_a_run_goes_elsewhere(kind: str) -> None:
    log = kit.whole_log()
    log.add("log", kind)
    log.add(AGENT, "genesis")
    log.add(AGENT, kind)
    assert verdict(log)[0] == 0
    log.add(RUN, kind)
    assert found_at(log)


def lineage() -> kit.Log:
    """A reader and the two incarnations of a payer, beside another run."""
    log = kit.Log()
    log.add("log", "genesis")
    log.add(RUN, "genesis", lineage=RUN, incarnation=1)
    log.add(PAYER, "genesis", lineage=RUN, incarnation=1)
    log.add(OTHER, "genesis", lineage=RUN, incarnation=2)
    log.add(kit.run_id(3), "genesis")
    for run in (RUN, PAYER, kit.run_id(3), OTHER):
        log.add(run, "intent")
        log.add(run, "terminal")
    return log


ALL = (RUN, PAYER, OTHER)


def test_bundle_of_a_lineage_holds_its_chains() -> None:
    code, text = run_verdict(lineage(), RUN, *ALL)
    assert (code, f"run {RUN}: 9 envelopes in 3 chains in the signed" in text) == (0, True)
    assert "it has ended" in text
    log = lineage()
    log.add(kit.run_id(4), "genesis", lineage=RUN)
    log.add(RUN, "ignored")  # of a chain that has ended
    code, text = run_verdict(log, RUN, *ALL, kit.run_id(4))
    assert (code, "it has not ended" in text) == (0, True)


@pytest.mark.parametrize(
    ("run", "runs"),
    [
        (RUN, (*ALL, kit.run_id(3))),  # another run's genesis names no lineage
        (RUN, (*ALL, "log")),
        (RUN, (PAYER, OTHER)),  # without the run itself
        (PAYER, (PAYER,)),  # it is of another lineage
        (PAYER, ALL),
    ],
)
def test_bundle_of_another_choice_of_chains_is_invalid(run: str, runs: tuple[str, ...]) -> None:
    assert run_verdict(lineage(), run, *runs)[0] == 1


def test_each_chain_of_a_lineage_is_checked() -> None:
    for run in ALL:
        log = lineage()
        log.add(run, "refused", prev=kit.HASH)
        assert run_verdict(log, RUN, *ALL)[0] == 1
        log = lineage()
        log.add(run, "refused", n=4)
        assert run_verdict(log, RUN, *ALL)[0] == 1
        log = lineage()
        log.add(run, "intent")  # after its end
        assert run_verdict(log, RUN, *ALL)[0] == 1


def test_export_of_a_run_holds_one_chain() -> None:
    log = lineage()
    lines = [log.lines[seq] for seq in log.of(PAYER)]
    code, text = kit.judged(kit.export(lines, log.note()))
    assert (code, "UNPROVEN" in text) == (3, True)
    mixed = sorted((*log.of(PAYER), log.of(OTHER)[0]))
    assert kit.judged(kit.export([log.lines[seq] for seq in mixed], log.note()))[0] == 1


def test_receipt_of_an_agents_envelope() -> None:
    log = grown(AGENT, "agent")
    assert kit.judged(kit.receipt(log, len(log.lines) - 1), "--key", kit.LOG_KEY.vkey)[0] == 0
    bad = kit.receipt(log, len(log.lines) - 1, run="agent:A")
    assert kit.judged(bad, "--key", kit.LOG_KEY.vkey)[0] == 1
