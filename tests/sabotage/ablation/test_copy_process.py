"""Copies without a guard: breached where it carries the claim, and nothing is left of them."""

import fcntl
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.conf import settings

from mutations import ablation
from mutations.ablation import ClaimResult
from mutations.copy import NICE
from sabotage.ablation import copy_process
from sabotage.ablation.copy_process import BusyError, CopyError, run_copy
from sabotage.ablation.guards import Claim, claim_of, claims
from sabotage.kit import throwaway
from tests.house.demo import ROOT, environment, processes_of, wait_for_none

SECONDS_MAX = 120
TAMPERED = """[[claim]]
injector = "skip_step"
when = { skip = "charge without authorize" }
moment = "the payment is to be made"
without = ["vault-r-size"]
shows = "Nothing."
"""
# An owner whose copy starts a program, prints its priority, and then waits for ever.
OWNER = """
import sys
import django
django.setup()
from sabotage.ablation import copy_process
from sabotage.ablation.guards import claims
started = copy_process.subprocess.Popen

def held(command, **given):
    given["stderr"] = None  # the owner's
    return started([*command[: command.index("-m")], "-c", sys.argv[1]], **given)

copy_process.subprocess.Popen = held
copy_process.run_copy(claims()[0], {})
"""
HELD_COPY = """
import os, signal, sys, time
import django
django.setup()
from django.conf import settings
from mutations import copy, copy_attack
from pipeline.ops.stripe_counterpart import spawn_stripe_counterpart

def attack_copy(asked):
    child = spawn_stripe_counterpart(settings.NANOVM_DATA)
    while not child.answers():  # before, it may not be a program of its own yet
        time.sleep(0.05)
    print(os.getpriority(os.PRIO_PROCESS, child.popen.pid), file=sys.stderr, flush=True)
    signal.pause()

copy_attack.attack_copy = attack_copy
copy.main()
"""


@pytest.fixture(autouse=True)
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A data folder of its own, in which no copy and no process of one is left."""
    monkeypatch.setattr(settings, "NANOVM_DATA", tmp_path)
    yield tmp_path
    assert wait_for_none(tmp_path / "copies") == []


def one_guard() -> Claim:
    """The claim that a single guard carries."""
    claim = claim_of("skip_step", {"skip": "charge without authorize"})
    assert claim is not None
    assert claim.without == ("owed-by-holder",)
    return claim


def copies_in(data: Path) -> list[Path]:
    return [path for path in (data / "copies").iterdir() if path.is_dir()]


def test_a_guard_whose_removal_changes_nothing_is_a_failure(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    evidence = {"breaches": [], "headline": "", "payments": "", "far_side": {"reachable": False}}
    held = {"integrity": "HELD", "got_through": False, "evidence": evidence}
    monkeypatch.setattr(copy_process, "run_copy", lambda *_, **__: held)
    file = tmp_path / "guards.toml"
    file.write_text(TAMPERED)
    assert ablation.main(["--guards", str(file)]) == 1
    said = capsys.readouterr().out
    assert "(vault-r-size): the removal of its guards changes nothing." in said
    assert "1 attacks, each with and without its guards; 1 failed." in said
    assert not ClaimResult(one_guard(), "BREACHED", "BREACHED", "", "it gets through").good
    assert ClaimResult(one_guard(), "HELD", "BREACHED").good


@pytest.mark.soak
@pytest.mark.parametrize(
    "claim", claims(), ids=lambda each: " ".join((each.injector, *map(str, each.when.values())))
)
def test_each_attack_is_held_and_each_of_its_guards_is_needed(claim: Claim) -> None:
    tried = ablation.try_claim(claim, layers=True)
    assert (tried.whole, tried.bare, tried.fault) == ("HELD", "BREACHED", "")


def test_a_copy_has_none_of_the_products_keys_and_servers(
    monkeypatch: pytest.MonkeyPatch, data: Path
) -> None:
    for name in ("STRIPE_SECRET_KEY", "REDIS_URL", "DATABASE_URL", "NANOVM_POLICY"):
        monkeypatch.setenv(name, "the product's own")
    env = throwaway.environment(data)
    assert "the product's own" not in env.values()
    assert env["NANOVM_DATA"] == str(data)


def test_one_copy_at_a_time(data: Path) -> None:
    (data / "copies").mkdir()
    with (data / "copies" / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(BusyError, match="Another copy is running"):
            run_copy(one_guard(), {})


def test_a_copy_that_takes_too_long_is_stopped_with_all_that_it_started(data: Path) -> None:
    with pytest.raises(CopyError, match="did not finish in 2 s"):
        run_copy(one_guard(), one_guard().each[0], seconds_max=2)
    assert copies_in(data) == []


def test_a_copy_that_breaks_says_why() -> None:
    with pytest.raises(CopyError, match="mutations: No mutation is called 'no-such-guard'"):
        run_copy(one_guard(), {}, without=["no-such-guard"])


def test_a_killed_owner_leaves_no_process_and_the_next_one_clears_its_folder(data: Path) -> None:
    owner = subprocess.Popen(
        [sys.executable, "-c", OWNER, HELD_COPY],
        cwd=ROOT,
        env=environment(data, DJANGO_SETTINGS_MODULE="config.settings"),
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert owner.stderr is not None
        lowered = min(os.getpriority(os.PRIO_PROCESS, 0) + NICE, 19)
        assert owner.stderr.readline() == f"{lowered}\n"
        assert len(processes_of(data / "copies")) == 2  # the copy, and what it started
    finally:
        owner.kill()
        owner.communicate(timeout=SECONDS_MAX)  # the copy's end of the pipe is closed, too
    assert wait_for_none(data / "copies") == []
    left = copies_in(data)
    assert len(left) == 1
    with throwaway.folder_in(data / "copies", "copy") as fresh:
        assert copies_in(data) == [fresh] != left
