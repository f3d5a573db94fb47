"""A real bypass: one guard is gone in a process of its own, and what was taken is seen and kept."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from nanovm_core.core.canonical import encode
from nanovm_core.core.envelope import decode_snapshot
from nanovm_core.core.events import Context, ProposalReceived
from nanovm_core.core.fsm import transition
from nanovm_core.core.messages import Recorded
from nanovm_core.loading import load_policy, load_program
from tests.dashboard.visitor import words

ROOT = Path(__file__).resolve().parents[3]
PROGRAM = "tests.dashboard.arena.arena_bypass"
Said = dict[str, tuple[int, str]]


def bypassed(folder: Path, *without: str) -> Said:
    """What the pages of a process say in which a cent more was proposed."""
    command = [sys.executable, "-m", *without, PROGRAM, str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr[-2000:]
    return {name: (code, text) for name, (code, text) in json.loads(done.stdout).items()}


@pytest.fixture(scope="module")
def breached(tmp_path_factory: pytest.TempPathFactory) -> Said:
    folder = tmp_path_factory.mktemp("unguarded")
    return bypassed(folder, "mutations", "provenance", "--")


def test_with_every_guard_nothing_is_breached(tmp_path: Path) -> None:
    said = bypassed(tmp_path)
    assert said["attack"][0] == said["arena"][0] == 200
    assert "POL-010" in said["attack"][1]
    assert "BREACHED" not in words(said["attack"][1] + said["run"][1])
    assert re.search(r'id="total-breaches">0<', said["arena"][1])
    assert said["bundle"][0] == 404


def test_a_bypass_is_breached_on_every_page(breached: Said) -> None:
    for name in ("attack", "arena", "run"):
        code, page = breached[name]
        assert (code, "BREACHED" in words(page)) == (200, True), name
    assert re.search(r'id="total-breaches">1<', breached["arena"][1])
    assert re.search(r'id="level-7" data-state="breached"', breached["arena"][1])
    assert 'action="/attack/bundles/' in breached["attack"][1]
    assert "whose amount_minor is not the document's" in words(breached["attack"][1])


def test_its_bundle_holds_the_bytes_only_where_they_are_wanted(breached: Said) -> None:
    lean, whole = json.loads(breached["bundle"][1]), json.loads(breached["whole"][1])
    assert set(lean["proposal"]) == {"ref", "commitment"}
    assert b"128451" in bytes.fromhex(whole["proposal"]["hex"])
    assert lean["verdict"] == {"word": "ACCEPTED", "integrity": "BREACHED"}
    assert all(re.fullmatch("[0-9a-f]{64}", each) for each in lean["code"].values())
    assert breached["stranger"][0] == 404


def test_its_bundle_repeats_the_decision_and_the_guard_refuses_it(breached: Said) -> None:
    kept = json.loads(breached["whole"][1])
    decision = transition(*replayed(kept))
    assert decision.refusal is not None
    assert decision.refusal.code == "POL-010"


def replayed(kept: dict[str, Any]) -> Any:
    """Program, snapshot, event and context of a bundle, from nothing but the bundle."""
    program = load_program(kept["program"].encode()).under(load_policy(kept["policy"].encode()))
    assert (program.hash, program.policy.hash) == (kept["program_hash"], kept["policy_hash"])
    context = kept["context"]
    now = decode_snapshot(encode(context["snapshot"]))
    assert now.owed is not None
    event = ProposalReceived(
        raw=bytes.fromhex(kept["proposal"]["hex"]),
        key=now.owed.key,
    )
    known = Context(
        at_ms=kept["at_ms"],
        actor="visitor",
        ledger=context["ledger"],
        history=tuple(Recorded(*each) for each in context["history"]),
        revoked=frozenset(context["revoked"]),
    )
    return program, now, event, known
