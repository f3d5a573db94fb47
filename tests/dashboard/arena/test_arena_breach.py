"""A real bypass: one guard is gone in a process of its own, and what was taken is seen and kept.

``python -m tests.dashboard.arena.test_arena_breach FOLDER`` is that process.
"""

import json
import os
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
from pipeline.ops.processes import stripe_counterpart

ROOT = Path(__file__).resolve().parents[3]
Said = dict[str, tuple[int, str]]


def main(folder: str) -> None:
    """Propose a cent more from the box, in a database of its own, and print the pages."""
    os.environ |= {"NANOVM_DATA": folder, "DJANGO_SETTINGS_MODULE": "config.settings"}
    import django

    django.setup()
    from django.core.management import call_command
    from django.test import Client

    from dashboard.arena import box
    from dashboard.web import workspace
    from pipeline.queries import runs
    from pipeline.runtime import queue
    from pipeline.worker import drive

    call_command("migrate", verbosity=0, interactive=False)
    queue.wake = lambda run_id, in_ms=0: drive.drive_patiently(run_id)
    visitor = Client(headers={"host": "localhost"})
    code = visitor.post("/attack/start/")["Location"].partition("run=")[2]
    owner = visitor.get("/attack/").wsgi_request
    typed = box.filled(box.presets()["cent-more"], runs.by_code(workspace.current(owner), code))
    form = {"proposal": typed.text, "mode": typed.mode, "run": code}
    attack = visitor.post("/attack/propose/", form)["Location"]
    bundle = f"/attack/bundles/{attack.split('/')[-2]}/"
    pages = {"attack": attack, "arena": "/attack/", "run": f"/runs/{code}/", "bundle": bundle}
    said = {name: visitor.get(path) for name, path in pages.items()}
    said["whole"] = visitor.get(f"{bundle}?proposal=1")
    said["stranger"] = Client(headers={"host": "localhost"}).get(bundle)
    print(json.dumps({name: [one.status_code, one.content.decode()] for name, one in said.items()}))


def bypassed(folder: Path, *without: str) -> Said:
    """What the pages of a process say in which a cent more was proposed."""
    command = [sys.executable, "-m", *without, __name__, str(folder)]
    with stripe_counterpart(folder / "stripe") as url:
        env = os.environ | {"STRIPE_API_BASE": url}
        done = subprocess.run(
            command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=240
        )
    assert done.returncode == 0, done.stderr[-2000:]
    return {name: (code, text) for name, (code, text) in json.loads(done.stdout).items()}


@pytest.fixture(scope="module")
def breached(tmp_path_factory: pytest.TempPathFactory) -> Said:
    folder = tmp_path_factory.mktemp("unguarded")
    return bypassed(folder, "mutations", "provenance", "--")


@pytest.mark.soak  # test_arena.py has the page of the same proposal, with every guard
def test_with_every_guard_nothing_is_breached(tmp_path: Path) -> None:
    said = bypassed(tmp_path)
    assert said["attack"][0] == said["arena"][0] == 200
    assert "POL-010" in said["attack"][1]
    assert "BREACHED" not in said["attack"][1] + said["run"][1]
    assert re.search(r'id="total-breaches">0<', said["arena"][1])
    assert said["bundle"][0] == 404


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
        history=tuple(Recorded(*each) for each in context["history"]),
        revoked=frozenset(context["revoked"]),
    )
    refusal = transition(program, now, event, known).refusal
    assert refusal is not None
    assert refusal.code == "POL-010"


if __name__ == "__main__":
    main(sys.argv[1])
