"""Queries show one workspace its own rows, and judge what is stored as a stranger would."""

from collections.abc import Callable
from typing import NamedTuple

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from engine.evidence import signer
from engine.models import Envelope, Run, Secret, Workspace
from engine.queries import evidence, log, runs, secrets, steps, timeline
from engine.queries.record import record_of
from engine.runtime import chains
from nanovm_core.proof import notes
from pipeline.queries import money, personal, run_list, stuck_runs
from pipeline.queries.run_list import Asked
from samples import path
from tests.kit.house import House, sql


class Pair(NamedTuple):
    """Two workspaces: one with a run that paid and one that is held, one with another."""

    mine: Workspace
    paid: runs.RunHead
    held: runs.RunHead
    theirs: Workspace
    other: runs.RunHead


@pytest.fixture
def pair(house: House) -> Pair:
    """The two workspaces, in a recorded folder."""
    return house.once(two_workspaces)


def two_workspaces(house: House) -> Pair:
    """The two workspaces; the first log is signed."""
    paid = house.run()
    held = house.run(path("over_limit").read_bytes(), workspace=paid.workspace)
    other = house.run(path("over_limit").read_bytes(), workspace=chains.create())
    signer.checkpoint(paid.workspace_id)
    heads = [runs.by_id(str(each.id)) for each in (paid, held, other)]
    return Pair(paid.workspace, heads[0], heads[1], other.workspace, heads[2])


SEEN: dict[str, Callable[[Workspace], set[str]]] = {
    "listing": lambda mine: {each.id for each in run_list.page(mine, Asked()).runs},
    "timeline": lambda mine: {
        each.run for each in timeline.page(mine.id, timeline.Filter(), size=500).rows
    },
    "export": lambda mine: {each.run for each in timeline.matching(mine.id, timeline.Filter())},
    "stuck runs": lambda mine: {each.id for each, _ in stuck_runs.of_workspace(mine.id)},
    "heads": lambda mine: {
        *runs.heads_of(mine.id, [str(pk) for pk in Run.objects.values_list("pk", flat=True)])
    },
}


@pytest.mark.parametrize("name", SEEN)
def test_a_list_shows_the_runs_of_its_workspace_and_of_no_other(pair: Pair, name: str) -> None:
    mine, theirs = SEEN[name](pair.mine), SEEN[name](pair.theirs)
    assert pair.held.id in mine
    assert pair.other.id in theirs
    assert not mine & theirs - {"log", "agent:payer", "agent:reader"}


def test_a_run_is_found_by_its_code_in_its_own_workspace_alone(pair: Pair) -> None:
    found = runs.by_code(pair.mine.id, pair.paid.code)
    assert found is not None
    assert found.id == pair.paid.id
    assert runs.by_code(pair.theirs.id, pair.paid.code) is None
    assert runs.by_code(None, pair.paid.code) is None


def test_an_envelope_that_another_log_holds_under_a_run_s_name_is_none_of_the_run_s(
    pair: Pair,
) -> None:
    run = pair.paid
    said: dict[str, Callable[[], object]] = {
        "log": lambda: log.envelopes(run).count(),
        "steps": lambda: [each.refusals for each in steps.of_run(record_of(run))],
        "payment": lambda: money.payment_of(record_of(run), {}).intent,
        "signed": lambda: evidence.signing_status(run).total,
        "proved": lambda: evidence.proved(run).unsigned,
    }
    before = {name: ask() for name, ask in said.items()}
    for n, kind in ((90, "refused"), (91, "intent")):
        data = b'{"kind":"%s","step":"charge","idempotency_key":"x"}' % kind.encode()
        Envelope.objects.create(
            workspace=pair.theirs, seq=900 + n, run=run.id, n=n, bytes=data, hash="", kind=kind
        )
    assert {name: ask() for name, ask in said.items()} == before


def test_a_changed_envelope_is_named_by_the_chain_and_by_the_signed_tree(pair: Pair) -> None:
    row = Envelope.objects.get(run=pair.paid.id, n=3)
    data = bytes(row.bytes).replace(b'"at_ms":1', b'"at_ms":2', 1)
    change = "UPDATE pipeline_envelope SET bytes = %s WHERE run = %s AND n = 3"
    assert {each.fault for each in log.chain(pair.paid)} == {""}
    assert evidence.proved(pair.paid).grade == evidence.UNPINNED
    sql((change, (data, pair.paid.id)))
    faults = [place for place, each in enumerate(log.chain(pair.paid)) if each.fault]
    assert faults[0] == 3
    proved = evidence.proved(pair.paid)
    assert (proved.grade, {*proved.faults}) == (evidence.INVALID, {3})


def test_a_chain_that_ends_before_its_row_s_head_is_named(pair: Pair) -> None:
    links = log.chain(pair.paid)
    assert log.head_fault(pair.paid, links) == ""
    assert "but 17 are stored" in log.head_fault(pair.paid, links[:-1])
    sql(("UPDATE pipeline_run SET head = %s WHERE code = %s", ("0" * 64, pair.paid.code)))
    assert "is not the run's stored head" in log.head_fault(runs.by_id(pair.paid.id), links)


def test_the_key_that_a_reader_brought_decides_and_not_the_server_s_own(pair: Pair) -> None:
    own = signer.verifiers(pair.mine.origin)[0].vkey
    assert evidence.proved(pair.paid, own).grade == evidence.SIGNED
    other = notes.verifier(pair.mine.origin, Ed25519PrivateKey.generate()).vkey
    assert evidence.proved(pair.paid, other).grade == evidence.INVALID


def test_a_checkpoint_covers_what_was_sealed_before_it_alone(pair: Pair) -> None:
    size = Workspace.objects.get(id=pair.mine.id).size
    assert evidence.covering(pair.mine, size - 1) is not None
    assert evidence.covering(pair.mine, size) is None


def test_a_damaged_value_is_shown_as_damaged_and_the_others_as_they_are(pair: Pair) -> None:
    Secret.objects.filter(run_id=pair.paid.id, slot="seller").update(ciphertext=b"x" * 80)
    facts = {each.slot: each.value for each in personal.of_run(pair.paid).facts}
    assert facts["seller"] == secrets.DAMAGED
    assert secrets.DAMAGED not in {facts[slot] for slot in facts if slot != "seller"}
