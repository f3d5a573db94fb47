"""A real bypass: while one guard is gone, what was taken is seen and kept."""

import json
import re
from importlib import import_module
from typing import Any

import pytest

from dashboard.arena import box
from nanovm_core.core.canonical import encode
from nanovm_core.core.envelope import decode_snapshot
from nanovm_core.core.events import Context, ProposalReceived
from nanovm_core.core.fsm import transition
from nanovm_core.loading import load_policy, load_program
from sabotage.models import Attack
from tests.dashboard.arena.test_arena import propose
from tests.dashboard.visitor import Visitor, by_code

GUARD = import_module("nanovm_core.core.gate.tool_guard")  # its package has a function of the name
Said = dict[str, tuple[int, str]]


def proposed(visitor: Visitor) -> Attack:
    """Propose a cent more from the box; a worker does at once what it is woken for."""
    with visitor.pressed("/attack/start/") as there:
        run = by_code(there.partition("run=")[2])
        typed = box.filled(box.presets()["cent-more"], run)
        return propose(visitor, run, typed.text, typed.mode)


@pytest.fixture(scope="module")
def breached(owner: Visitor) -> Said:
    """The pages after a cent more was paid, because no argument was compared."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(GUARD, "same", lambda *_: True)
        attack = proposed(owner)
    run = f"/runs/{attack.run.code}/"
    bundle = f"/attack/bundles/{attack.pk}/"
    pages = {"attack": f"{run}attacks/{attack.pk}/", "arena": "/attack/", "run": run}
    pages |= {"bundle": bundle, "whole": f"{bundle}?proposal=1"}
    said = {name: owner.get(path) for name, path in pages.items()}
    said["stranger"] = Visitor().get(bundle)
    return {name: (one.status_code, one.content.decode()) for name, one in said.items()}


@pytest.mark.usefixtures("db")
def test_with_every_guard_nothing_is_breached(visitor: Visitor) -> None:
    attack = proposed(visitor)
    assert (attack.verdict, attack.rule, attack.integrity) == ("BLOCKED", "POL-010", "HELD")
    assert "BREACHED" not in visitor.read(f"/runs/{attack.run.code}/")
    visitor.read(f"/attack/bundles/{attack.pk}/", 404)


def test_a_bypass_is_breached_on_every_page(breached: Said) -> None:
    for name in ("attack", "arena", "run"):
        code, page = breached[name]
        assert (code, "BREACHED" in page) == (200, True), name
    assert re.search(r'id="total-breaches">1<', breached["arena"][1])
    assert re.search(r'id="level-7" data-state="breached"', breached["arena"][1])
    assert 'action="/attack/bundles/' in breached["attack"][1]
    assert "whose amount_minor differs from the document" in breached["attack"][1]


def test_its_bundle_holds_the_bytes_only_where_they_are_wanted(breached: Said) -> None:
    lean, whole = json.loads(breached["bundle"][1]), json.loads(breached["whole"][1])
    assert set(lean["proposal"]) == {"ref", "commitment"}
    assert b"128451" in bytes.fromhex(whole["proposal"]["hex"])
    assert lean["verdict"] == {"word": "ACCEPTED", "integrity": "BREACHED"}
    assert all(re.fullmatch("[0-9a-f]{64}", each) for each in lean["code"].values())
    assert breached["stranger"][0] == 404


def test_its_bundle_repeats_the_decision_and_the_guard_refuses_it(breached: Said) -> None:
    kept: dict[str, Any] = json.loads(breached["whole"][1])
    program = load_program(kept["program"].encode()).under(load_policy(kept["policy"].encode()))
    assert (program.hash, program.policy.hash) == (kept["program_hash"], kept["policy_hash"])
    context = kept["context"]
    now = decode_snapshot(encode(context["snapshot"]))
    assert now.owed is not None
    event = ProposalReceived(raw=bytes.fromhex(kept["proposal"]["hex"]), key=now.owed.key)
    known = Context(
        at_ms=kept["at_ms"],
        actor="visitor",
        ledger=context["ledger"],
        counts=context["counts"],
        revoked=frozenset(context["revoked"]),
    )
    refusal = transition(program, now, event, known).refusal
    assert refusal is not None
    assert refusal.code == "POL-010"
