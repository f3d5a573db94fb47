"""The ledgers of logs: an edit is found and changes nothing; envelopes make them again."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.db import transaction

from engine.evidence import restore, signer
from engine.evidence.fsck.audit import audit
from engine.models import Envelope, Run, Workspace
from engine.runtime import api, chains, decide
from engine.runtime.agent_moves import Agents
from engine.runtime.context import Sender
from engine.runtime.transaction import Commit
from engine.store import ledgers
from nanovm_core.core import lifecycle as life
from nanovm_core.core.canonical import encode
from nanovm_core.core.envelope import canonical_hash
from nanovm_core.core.events import ResumeRequested
from nanovm_core.core.messages import Decision, Suspension
from nanovm_core.ledger.value import Ledger, encode_ledger, json_of, ledger_hash
from tests import postgres
from tests.kit.house import POLICY, House, accounts, bodies, reason, sql, succeeded

ALL = 10_000_000
BUDGETS = "".join(
    f'\n[[budgets]]\nscope = "{scope}"\nunit = "{unit}"\nmax = {most}\n'
    for scope, unit, most in (
        ("agent", "money", ALL),
        ("workspace", "calls", 90),
        ("global", "money", ALL),
        ("global", "calls", 90),
    )
)
SHARED = (POLICY % (BUDGETS, "workspace", ALL)).encode()
OTHER = "f" * 64
Value = dict[str, Any]


def in_force(folder: Path, monkeypatch: pytest.MonkeyPatch, text: bytes) -> None:
    """The operator's policy from now on."""
    file = folder / "policy.toml"
    file.write_bytes(text)
    monkeypatch.setattr(settings, "NANOVM_POLICY", file)


@pytest.fixture
def paused(house: House, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """A run before its payment, in the log of one that paid; all accounts have been used."""
    in_force(tmp_path, monkeypatch, SHARED)
    first = house.run()
    kept = {each.id: bytes(each.ledger) for each in Workspace.objects.all()}
    OLDER.update(kept)
    house.run(workspace=first.workspace)
    return house.paused(workspace=first.workspace)


OLDER: dict[Any, bytes] = {}  # the ledger of each log as it was before its last run


def row(of: Run, *, shared: bool) -> Workspace:
    """The log of a run, or the house log."""
    found = ledgers.house() if shared else Workspace.objects.get(id=of.workspace_id)
    assert found is not None
    return found


def put(log: Workspace, data: object) -> None:
    sql(("UPDATE pipeline_workspace SET ledger = %s WHERE id = %s", (data, log.id.hex)))


# --- edits -----------------------------------------------------------------------------------


def edits(log: Workspace, parts: set[str]) -> Iterator[tuple[str, bytes]]:
    """Each field of these parts raised, lowered, taken away and added."""
    found = ledgers.stored(log)
    assert found is not None
    value: Value = json_of(found)
    for path in paths(value):
        *to, last = path
        if path[0] not in parts or "reader" in path:  # of agents, one has each of the fields
            continue
        for change in ("raise", "lower", "delete"):
            copy = json.loads(json.dumps(value))
            part = copy
            for name in to:
                part = part[name]
            if change == "delete":
                del part[last]
            elif isinstance(part[last], int):
                part[last] += 1 if change == "raise" else -1
            elif isinstance(part[last], str):
                part[last] = OTHER if change == "raise" else ""
            elif isinstance(part[last], dict):
                part[last]["workspace/X"] = 10**9 if change == "raise" else 0
            else:
                part[last] = [0, 0] if change == "raise" else [7, 7]
            yield f"{change} {path}", encode(copy)
    yield from states(value)


def others(log: Workspace, other: Workspace) -> Iterator[tuple[str, bytes]]:
    """What else may be in the place of a whole ledger."""
    yield "older", OLDER[log.id]
    yield "of another log", bytes(other.ledger)
    yield "empty", b""
    yield "the empty one", encode_ledger(Ledger())
    yield "cut off", bytes(log.ledger)[:-1]
    yield "no JSON", b"{"


def states(value: Value) -> Iterator[tuple[str, bytes]]:
    """Each agent in each other state, and another one beside it."""
    for name, agent in value["agents"].items():
        for state in ("running", "suspended.user_paused", "terminated.killed"):
            agents = {**value["agents"], name: {**agent, "state": state}}
            yield f"{name} {state}", encode({**value, "agents": agents})
        yield f"{name} twice", encode({**value, "agents": {**value["agents"], "clerk": agent}})


def paths(value: Any) -> Iterator[tuple[Any, ...]]:
    """The way to each value within a value."""
    places = value.items() if isinstance(value, dict) else enumerate(value)
    for name, part in places:
        yield (name,)
        if isinstance(part, dict | list):
            yield from ((name, *rest) for rest in paths(part))


def ruled(run: Run) -> None:
    """A rule suspends the payer of a run."""
    with transaction.atomic():
        commit = Commit([run.name])
        asked = Suspension("payer", "storm", "Three payments failed.")
        Agents(commit.ledgers, commit.runs[run.name].workspace).suspend(asked)
        commit.write()


def decision(run: Run) -> tuple[Decision, Mapping[str, Ledger], list[Value]]:
    """What is decided when a run goes on, the ledgers after it, and the alerts; none is kept."""
    with transaction.atomic():
        commit = Commit([run.name])
        event = ResumeRequested(program=run.program_hash)
        found = decide.apply(commit, commit.runs[run.name], [event], Sender("visitor"))
        commit.write()
        logs = Workspace.objects.filter(id__in=[each.id for each in commit.logs.values()])
        after = {each.origin: ledgers.stored(each) or Ledger() for each in logs}
        alerts = [each for each in bodies("log") if "expected" in each]
        transaction.set_rollback(True)
    return found, after, alerts


def timeless(found: Decision, after: Mapping[str, Ledger]) -> object:
    """A decision and ledgers without what depends on when it was."""
    said = [draft.body.get("budget") for draft in found.drafts]
    found_alerts = {"ledger", "agent/payer"}  # an edit opens the first
    assert all(found_alerts >= each.alerts.keys() for each in after.values())
    kept = {name: each.alerts.get("agent/payer") for name, each in after.items()}
    values = {name: each._replace(at_ms=0, alerts={}) for name, each in after.items()}
    return found.snapshot.state, found.snapshot.step, found.budgets, said, values, kept


@pytest.mark.parametrize(
    "part", [40 if postgres.WANTED else 32, pytest.param(1, marks=pytest.mark.soak)]
)
@pytest.mark.parametrize(  # to a server all of them are one column: it gets one of them
    "which",
    [
        pytest.param("of a log", marks=pytest.mark.postgres),
        "of a log whose payer is suspended",
        "of the house",
    ],
)
def test_an_edited_ledger_is_named_and_decides_nothing(
    house: House, paused: Run, which: str, part: int
) -> None:
    """By fsck before, and by an alert of the next decision, which is what it would have been.

    Of the edits of single fields one in ``part``: the kinds of edits take turns.
    """
    log, other = row(paused, shared=which == "of the house"), chains.create()
    if "suspended" in which:
        ruled(paused)
        log.refresh_from_db()
    true, count = bytes(log.ledger), 0
    whole, after, alerts = decision(paused)
    assert (audit().exit_status, alerts) == (0, [])
    assert (whole.refusal is None) == ("suspended" not in which)
    parts = {"agents", "alerts"} if "suspended" in which else {*Ledger._fields} - {"agents"}
    for name, data in (*[*edits(log, parts)][::part], *others(log, other)):
        if data == true:
            continue
        put(log, data)
        report = json.loads(house.command("fsck", "--json").stdout)
        named = {(each["log"], each["code"]) for each in report["damage"]}
        assert named == {(log.origin, "LOG-011")}, name
        again, edited, [alert] = decision(paused)
        assert timeless(again, edited) == timeless(whole, after), name
        assert alert["expected"] == ledger_hash(true), name
        assert (alert["found"], alert["rule"]) == (ledger_hash(data), "LOG-011"), name
        count += 1
    assert count >= 40 // part
    put(log, true)
    assert audit().exit_status == 0


@pytest.mark.parametrize("edit", [encode_ledger(Ledger(limits={"workspace/*": 1})), "text"])
def test_an_edit_is_put_back_with_the_next_commit_and_the_run_pays_once(
    house: House, paused: Run, edit: object
) -> None:
    log = row(paused, shared=False)
    put(log, edit)
    assert house.command("fsck", "--json").returncode == 1
    assert house.resumed(paused).state == life.COMPLETED
    assert len(succeeded(paused)) == 1
    assert accounts(paused)["workspace/EUR"].limit == ALL
    assert audit().damage == ()
    assert [each["kind"] for each in bodies("log")].count("alert") == 1
    signer.checkpoint(log.id)
    assert audit().exit_status == 0


# --- damage of what seals it -----------------------------------------------------------------


@pytest.mark.parametrize("limit", [ALL, 1])
def test_where_the_newest_envelope_is_damaged_the_tighter_of_fold_and_row_counts(
    house: House, paused: Run, limit: int
) -> None:
    """Its run fails; another one of the log goes on, unless the row says that nothing is left."""
    other = house.paused(workspace=paused.workspace)
    log = row(paused, shared=False)
    value = ledgers.stored(log)
    assert value is not None
    free = {name: [0, 0] for name in value.accounts}
    limits = {name: min(most, limit) for name, most in value.limits.items()}
    put(log, encode({**json_of(value), "accounts": free, "limits": limits}))
    where = "WHERE workspace_id = %s AND seq = %s"
    sql((f"UPDATE pipeline_envelope SET bytes = %s {where}", (b"{}", log.id.hex, log.size - 1)))
    assert house.resumed(paused).state == (life.COMPLETED if limit == ALL else life.EXHAUSTED)
    assert house.resumed(other).state == life.FAILED
    kept = accounts(paused)
    assert kept["workspace/EUR"].limit == limit
    assert kept["workspace/EUR"].spent == 12_000 * (3 if limit == ALL else 2)
    [alert] = [each for each in bodies("log") if each["kind"] == "alert"]
    assert alert["ledger"]["limits"] == limits
    assert {each.explained for each in audit().damage} == {True}


def test_a_ledger_named_by_an_envelope_that_was_rewritten_with_its_hash_is_not_believed(
    house: House, paused: Run
) -> None:
    """The chain of its run ends otherwise than the run's row says; the run fails, others go on."""
    log = row(paused, shared=False)
    value = json_of(ledgers.stored(log) or Ledger())
    free = encode({**value, "accounts": {name: [0, 0] for name in value["accounts"]}})
    newest = Envelope.objects.get(workspace=log, seq=log.size - 1)
    true, edited = (ledger_hash(each).encode() for each in (bytes(log.ledger), free))
    data = bytes(newest.bytes).replace(true, edited)
    where = "WHERE workspace_id = %s AND seq = %s"
    change = f"UPDATE pipeline_envelope SET bytes = %s, hash = %s {where}"
    sql((change, (data, canonical_hash(data), log.id.hex, newest.seq)))
    put(log, free)
    assert (newest.run, house.resumed(paused).state) == (str(paused.id), life.FAILED)
    assert accounts(paused)["workspace/EUR"].spent == 24_000
    assert [each["rule"] for each in bodies("log") if each["kind"] == "alert"] == ["LOG-011"]
    assert house.run(workspace=log).state == life.COMPLETED
    assert accounts(paused)["workspace/EUR"].spent == 36_000


def test_where_the_newest_envelope_is_gone_and_the_log_goes_on_nothing_is_free_again(
    house: House, paused: Run
) -> None:
    log = row(paused, shared=False)
    gone = "DELETE FROM pipeline_envelope WHERE workspace_id = %s AND seq = %s"
    sql((gone, (log.id.hex, log.size - 1)))
    put(log, OLDER[log.id])
    before = accounts(paused)["workspace/EUR"].spent
    new = house.run(workspace=log)
    assert new.state == life.COMPLETED
    assert (before, accounts(new)["workspace/EUR"].spent) == (12_000, 36_000)


def test_an_alert_is_sealed_where_the_row_of_the_log_was_set_back_too(
    house: House, paused: Run
) -> None:
    log = row(paused, shared=False)
    put(log, OLDER[log.id])
    head = Envelope.objects.get(workspace=log, run="log", n=0).hash
    back = "UPDATE pipeline_workspace SET log_length = 1, log_head = %s WHERE id = %s"
    sql((back, (head, log.id.hex)))
    assert house.resumed(paused).state == life.COMPLETED
    assert accounts(paused)["workspace/EUR"].spent == 36_000


# --- policies --------------------------------------------------------------------------------


def test_a_policy_in_force_is_sealed_with_its_limits_and_holds_for_runs_under_way(
    house: House, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def sealed() -> list[tuple[str, Value]]:
        found = [each for each in bodies("log") if "limits" in each]
        assert [each["kind"] for each in found] == ["genesis", "policy", "policy"][: len(found)]
        return [(each["policy"], each["limits"]) for each in found]

    in_force(tmp_path, monkeypatch, (POLICY % ("", "workspace", 200_000)).encode())
    first = house.run()
    waiting = house.paused(workspace=first.workspace)
    assert [limits for _, limits in sealed()] == [{"workspace/*": 200_000}]
    in_force(tmp_path, monkeypatch, (POLICY % ("", "workspace", 100)).encode())
    new = house.new(workspace=first.workspace)
    assert (house.resumed(waiting).state, reason(waiting)) == (life.EXHAUSTED, "BUD-001")
    in_force(tmp_path, monkeypatch, (POLICY % ("", "workspace", 300_000)).encode())
    last = house.new(workspace=first.workspace)
    assert house.resumed(waiting).state == life.COMPLETED
    assert sealed()[1:] == [
        (new.policy_hash, {"workspace/*": 100}),
        (last.policy_hash, {"workspace/*": 300_000}),
    ]
    assert audit().damage == ()


# --- the house log ---------------------------------------------------------------------------


@pytest.mark.postgres
def test_what_all_workspaces_share_is_settled_once_a_commit_in_the_house_log(
    house: House, paused: Run
) -> None:
    house_log = row(paused, shared=True)
    chain = [each for each in bodies("log") if each["log"] == house_log.origin]
    assert [each["kind"] for each in chain[:2]] == ["genesis", "policy"]
    assert {each["kind"] for each in chain[2:]} == {"settlement"}
    value = ledgers.stored(house_log)
    assert value is not None
    assert value.accounts["global/EUR"] == (0, 24_000)
    assert value.accounts["global/calls"].spent == 4
    assert not value.accounts.keys() & (ledgers.stored(paused.workspace) or value).accounts.keys()
    touched = Envelope.objects.filter(run="log", kind="settlement").count()
    elsewhere = house.run()
    assert elsewhere.state == life.COMPLETED
    assert Envelope.objects.filter(run="log", kind="settlement").count() == touched // 2 * 3
    assert signer.checkpoint(house_log.id).size == row(paused, shared=True).size
    assert audit().damage == ()


def test_a_restore_goes_on_with_the_house_log_in_its_successor(house: House, paused: Run) -> None:
    before = row(paused, shared=True)
    restore.restore("operator")
    after = row(paused, shared=True)
    assert (after.id != before.id, Workspace.objects.filter(ledgers.is_house()).count()) == (
        True,
        2,
    )
    spent = (ledgers.stored(after) or Ledger()).accounts["global/EUR"]
    assert spent == (0, 24_000)
    assert house.run().state == life.COMPLETED
    assert (ledgers.stored(row(paused, shared=True)) or Ledger()).accounts[
        "global/EUR"
    ].spent == 36_000
    assert api.check(str(paused.id)) is None
    assert audit().exit_status == 0
