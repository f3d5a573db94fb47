"""An envelope changed together with its own hash: named itself, and never its neighbour."""

import pytest

from engine.evidence import signer
from engine.evidence.fsck.audit import AuditReport, audit
from engine.models import Checkpoint, Envelope, Run
from engine.runtime import api
from tests.kit.house import House, bodies, sql
from tests.kit.trees import exchange, set_node

EDGE = ("LOG-008", "log", False)  # the edge in the row does not fit the leaves
LENGTH = 18  # envelopes of a run that paid, as the tests count on it


@pytest.fixture(params=["signed", "unsigned"])
def run(house: House, request: pytest.FixtureRequest) -> Run:
    """A run that paid; its log was signed, or not yet."""
    made = house.once(House.run)
    if request.param == "signed":
        signer.checkpoint(made.workspace_id)
    return made


def is_signed(run: Run) -> bool:
    return Checkpoint.objects.filter(workspace=run.workspace_id).exists()


def hashes(run: Run) -> list[str]:
    rows = Envelope.objects.filter(run=str(run.id)).order_by("n")
    return list(rows.values_list("hash", flat=True))


def rows(run: Run, *places: int) -> list[Envelope]:
    return [Envelope.objects.get(run=str(run.id), n=n) for n in places]


def forge(run: Run, n: int, prev: str = "") -> str:
    """An envelope that says something else, with the hash that it has then."""
    return exchange(rows(run, n), prev, at_ms=1)[0]


def told(report: AuditReport) -> list[tuple[str, int, str, str]]:
    """Code, place, expected and found of each damage, the first bad place first.

    Without the counts of windows (LOG-011), which differ from the forged ones as well.
    """
    found = [each for each in report.damage[::-1] if each.code != "LOG-011"]
    return [(each.code, each.at, each.expected, each.found) for each in found]


@pytest.mark.parametrize("n", [0, 8, LENGTH - 2])
def test_audit_and_the_sealed_envelope_name_it_and_which_hash_is_true(run: Run, n: int) -> None:
    assert run.length == LENGTH
    true = hashes(run)[n]
    forged = forge(run, n)
    assert told(audit()) == [("LOG-002", n, true, forged)]
    api.check(str(run.id))
    sealed = bodies(run)[-1]
    assert (sealed["rule"], sealed["at"]) == ("LOG-002", n)
    assert (sealed["expected"], sealed["found"]) == (true, forged)
    report = audit()
    assert (told(report), report.exit_status) == ([("LOG-002", n, true, forged)], 3)


def test_the_last_one_and_the_head_are_held_to_each_other(run: Run) -> None:
    true = hashes(run)[-1]
    sql(("UPDATE pipeline_run SET head = %s WHERE id = %s", ("f" * 64, run.id.hex)))
    assert told(audit()) == [("LOG-004", LENGTH - 1, true, "f" * 64)]
    sql(("UPDATE pipeline_run SET head = %s WHERE id = %s", (true, run.id.hex)))
    forged = forge(run, LENGTH - 1)
    assert told(audit()) == [("LOG-004", LENGTH - 1, true, forged)]
    api.check(str(run.id))
    sealed = bodies(run)[-1]
    assert (sealed["expected"], sealed["found"]) == (true, forged)
    assert audit().exit_status == 3


def test_of_two_neighbours_the_chain_names_one_and_the_tree_the_other(run: Run) -> None:
    true = hashes(run)
    forged = [forge(run, n) for n in (4, 5)]
    assert told(audit()) == [("LOG-002", 5, true[5], forged[1]), ("LOG-008", 4, true[4], forged[0])]
    api.check(str(run.id))
    assert bodies(run)[-1]["at"] == 5
    assert audit().exit_status == 1  # the other one is sealed nowhere


def test_of_a_rewritten_end_the_tree_names_every_envelope(run: Run) -> None:
    true = hashes(run)
    places = range(LENGTH - 3, LENGTH)
    forged = exchange(rows(run, *places), at_ms=1)
    sql(("UPDATE pipeline_run SET head = %s WHERE id = %s", (forged[-1], run.id.hex)))
    expected = [("LOG-008", n, true[n], new) for n, new in zip(places, forged, strict=True)]
    if is_signed(run):
        assert told(audit()) == expected
    else:  # no copy of them is left: the edge alone tells that one of these leaves was another
        counts = ("LOG-011", "log", False)
        found = {(each.code, each.run, each.explained) for each in audit().damage}
        assert found == {EDGE, counts}
    assert audit().exit_status == 1


def test_the_tree_decides_where_the_chain_is_led_astray(run: Run) -> None:
    """Two rewritten ones that vouch for each other, and do not fit the intact one before."""
    true = hashes(run)
    first = forge(run, 6, prev="a" * 64)
    forge(run, 7, prev=first)
    found = {(code, at) for code, at, _, _ in told(audit())}
    if is_signed(run):
        assert found == {("LOG-002", 6), ("LOG-002", 7)}
    else:  # the tree's leaves are not stored yet, and the edge fits neither
        assert found == {("LOG-002", 5), ("LOG-002", 7), ("LOG-008", 0)}
    assert hashes(run)[5] == true[5]


def test_a_leaf_changed_with_it_accuses_no_node_and_advises_no_restore(house: House) -> None:
    run = house.once(House.run)
    signer.checkpoint(run.workspace_id)
    true, seq = hashes(run)[8], rows(run, 8)[0].seq
    forged = forge(run, 8)
    set_node(run.workspace, 0, seq, bytes.fromhex(forged))
    report = audit()
    assert told(report) == [("LOG-002", 8, true, forged), ("LOG-008", seq, true, forged)]
    assert not any("restore" in each.text for each in report.damage)
