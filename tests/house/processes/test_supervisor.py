"""A child that ends is started again with a back-off, and only so often."""

import socket
import sys
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from django.conf import settings

from config import restarts, supervisor
from config.supervisor import Permanent
from engine.ops import processes
from engine.ops.processes import Child, ProcessError
from nanovm_core import supervision
from nanovm_core.supervision import Spec
from pipeline.ops.stripe_counterpart import spawn_stripe_counterpart

MAX_RESTARTS = Spec("it").max_restarts


def child(data: Path, code: str) -> Child:
    """A program that does this."""
    return processes.spawn("it", "the program", [sys.executable, "-c", code], data)


def tended(each: Permanent, said: list[str]) -> None:
    """Tend it until it is given up, as the supervisor does."""
    record = restarts.Restarts()
    while True:
        each.tend(record, said.append)


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A data folder; waits between restarts are short."""
    monkeypatch.setattr(settings, "NANOVM_DATA", tmp_path)
    monkeypatch.setattr(supervision, "BACKOFF_MS", 1)
    return tmp_path


def test_one_that_ends_again_and_again_is_given_up_in_a_sentence(data: Path) -> None:
    addresses: list[str] = []

    def spawn(url: str) -> Child:
        addresses.append(url)
        made = child(data, "import sys; sys.exit('a reason')")
        made.url, made.answers = "it://the same", lambda: False
        return made

    said: list[str] = []
    with pytest.raises(ProcessError) as caught:
        tended(Permanent(name="it", spawn=spawn), said)
    assert str(caught.value) == (
        "The program ended with status 1: a reason. It ended 6 times within 60 s, so the rest "
        f"was stopped too: mend what {data / 'logs' / 'it.log'} says, then start it again."
    )
    assert addresses == ["", *["it://the same"] * MAX_RESTARTS]
    assert said[:2] == [
        "The program ended with status 1: a reason. It is started again in 0.001 s.",
        "The program was started; it has 60 s to answer at the same.",
    ]
    assert len(said) == 2 * MAX_RESTARTS
    recorded = restarts.recorded()
    assert recorded is not None
    assert recorded["it"]["count"] == MAX_RESTARTS
    restarts.Restarts().remove()
    assert restarts.recorded() is None


def test_one_that_starts_again_and_stays_silent_counts_as_ended(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only a restarted one has to answer: of the first, the start itself awaits that."""
    monkeypatch.setattr(supervisor, "START_SECONDS_MAX", 0.05)

    def spawn(url: str) -> Child:
        made = child(data, "import time; time.sleep(60)" if url else "raise SystemExit(1)")
        made.url, made.answers = "here", lambda: False
        return made

    said: list[str] = []
    with pytest.raises(ProcessError, match=r"The program did not answer in 0\.05 s\. It ended 6"):
        tended(Permanent(name="it", spawn=spawn), said)


def test_the_first_address_is_kept_over_quick_ends_and_nothing_runs_before_it_answers(
    data: Path,
) -> None:
    addresses: list[str] = []

    def spawn(url: str) -> Child:
        """One that announces an address of its own, where it lives so long: real counterparts."""
        addresses.append(url)
        made = spawn_stripe_counterpart(data, "--port", str(urlsplit(url).port or 0))
        if 1 < len(addresses) < 4:
            made.popen.kill()  # before it announced anything
        return made

    each, said, record = Permanent(name="stripe", spawn=spawn), list[str](), restarts.Restarts()
    try:
        first = processes.ready(each.child).url
        each.child.popen.kill()
        while not (said and said[-1].endswith("runs again.")):
            each.tend(record, said.append)
        assert each.child.url == first
    finally:
        processes.stop([each.child])
    assert addresses == ["", *[first] * 3]
    assert [line for line in said if "runs again" in line] == said[-1:]
    assert f"has 60 s to answer at {urlsplit(first).netloc}." in said[-2]


def test_one_that_cannot_be_started_again_for_now_is_tried_again(data: Path) -> None:
    starts: list[str] = []

    def spawn(url: str) -> Child:
        starts.append(url)
        if len(starts) == 2:
            raise BlockingIOError(11, "Resource temporarily unavailable")
        made = child(data, "import time; time.sleep(60)" if url else "raise SystemExit(1)")
        made.url, made.answers = "here", lambda: True
        return made

    each, said, record = Permanent(name="it", spawn=spawn), list[str](), restarts.Restarts()
    try:
        while said[-1:] != ["The program runs again."]:
            each.tend(record, said.append)
    finally:
        processes.stop([each.child])
    assert starts == ["", "here", "here"]
    assert said[1].startswith("The program could not be started ([Errno 11] Resource temporarily")
    assert restarts.recorded() == record.children
    assert record.children["it"]["count"] == 1


def test_a_full_disk_ends_no_supervisor(
    data: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def full(*_: object, **__: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_text", full)
    record = restarts.Restarts()
    record.restarted("it")
    assert record.children["it"]["count"] == 1
    assert "No space left on device" in caplog.text


def test_a_server_that_does_not_answer_in_time_is_not_well(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervisor, "HEALTHY_SECONDS_MAX", 0.05)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        assert supervisor._unhealthy(url) == "web: timed out"
    assert str(supervisor._unhealthy(url)).startswith("web: [Errno")
