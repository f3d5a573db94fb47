"""Five hundred copies of one message: one payment, a whole chain, and hardly a line more."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.house.demo import ROOT, environment, wait_for_none
from tests.sabotage.injectors.storm import TIMES

SECONDS_MAX = 600
GROWN_MAX = 10  # envelopes more than a run has that nobody attacked


@pytest.mark.soak
def test_five_hundred_copies_are_one_payment_and_no_flood(tmp_path: Path) -> None:
    env = environment(tmp_path, DJANGO_SETTINGS_MODULE="config.settings")
    done = subprocess.run(
        [sys.executable, "-m", "tests.sabotage.injectors.storm"],
        cwd=ROOT,
        env=env,
        capture_output=True,
        text=True,
        timeout=SECONDS_MAX,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2_000:]
    said = json.loads(done.stdout)
    assert said["door"] == "queue"
    assert said["answered"] >= TIMES - 1
    assert (said["states"], said["whole"]) == (["terminated.completed"], True)
    assert (said["verdict"], said["integrity"], said["twice"]) == ("IGNORED", "HELD", 0)
    paid = [(each["amount_minor"], each["currency"], each["status"]) for each in said["payments"]]
    assert paid == [(128_450, "EUR", "succeeded")]
    assert 0 < said["grown"] <= GROWN_MAX
    assert wait_for_none(tmp_path) == []
