"""A tree of small programs is run as its supervisors decide; nothing of it waits for anything."""

import os
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from django.conf import settings

from config import supervisor as demo
from engine.ops import members, process_file, processes
from engine.ops import supervisor as runner
from engine.ops.members import ENDED, GAVE_UP, STARTED, STOPPED, Happened, Member, Spawn
from engine.ops.processes import Child, ProcessError
from engine.ops.supervisor import Supervisor
from nanovm_core import supervision
from nanovm_core.supervision import SIMPLE_ONE_FOR_ONE, TEMPORARY, TRANSIENT, Spec
from sabotage.kit.waiting import wait_until

READY = "import time\nprint('{\"ready\": true}', flush=True)\n"
RUNS = f"{READY}time.sleep(60)"
DEAF = f"import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n{RUNS}"
ENDS = "raise SystemExit('a reason')"
SILENT = "import time\ntime.sleep(60)"
WAIT_MS = 30_000
Names = tuple[str, ...]


class House:
    """A tree whose programs do what ``code`` says by then, and what was told and said of it."""

    def __init__(self, data: Path, spec: Spec, code: dict[str, str], **instances: Names) -> None:
        self.data, self.code, self.given = data, code, list[tuple[str, Spawn]]()
        self.told, self.said, self.sealed = list[Happened](), list[str](), True
        names = [*leaves(spec), *(name for each in instances.values() for name in each)]
        self.it = Supervisor(
            spec,
            [Member(name=name, spawn=self.spawner(name), agent=name) for name in names],
            told=self.told.append,
            sealed=lambda _: self.sealed,
            say=self.said.append,
            instances=instances,
        )

    def spawner(self, name: str) -> Callable[[Spawn], Child]:
        def spawn(given: Spawn) -> Child:
            self.given.append((name, given))
            code = self.code.get(name, RUNS)
            if code == "OSError":
                raise BlockingIOError(11, "Resource temporarily unavailable")
            made = processes.spawn(name, f"the {name}", [sys.executable, "-c", code], self.data)
            made.url = f"it://secret@{name}:1"
            made.answers = lambda: bool(processes.announced(made.written()))
            return made

        return spawn

    def process(self, name: str) -> process_file.Process:
        return self.it.status().processes[name]

    def kill(self, name: str, number: int = signal.SIGKILL) -> None:
        os.kill(self.process(name).pid, number)

    def until(self, true: Callable[[], bool]) -> None:
        """Tend it until something is true."""

        def tended() -> bool:
            self.it.tend()
            return true()

        assert wait_until(tended, WAIT_MS), (self.it.status(), self.said)

    def runs(self, **incarnations: int) -> bool:
        found = {name: self.process(name) for name in incarnations}
        return all(
            each.state == process_file.RUNNING and each.incarnation == incarnations[name]
            for name, each in found.items()
        )

    def happened(self, *kinds: str) -> list[tuple[str, str]]:
        return [(each.what, each.name) for each in self.told if each.what in (kinds or (STARTED,))]


def leaves(spec: Spec) -> Iterator[str]:
    for each in spec.children:
        if isinstance(each, Spec):
            yield from leaves(each)
        elif spec.strategy != SIMPLE_ONE_FOR_ONE:
            yield each.name


def child(name: str, restart: str = "permanent", shutdown_ms: int = 5_000) -> supervision.Child:
    return supervision.Child(name, restart, shutdown_ms)


@pytest.fixture
def started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., House]]:
    """Start a tree; it is stopped at the end. Waits between restarts are short."""
    monkeypatch.setattr(supervision, "BACKOFF_MS", 1)
    made: list[House] = []

    def start(spec: Spec, code: dict[str, str] | None = None, **instances: Names) -> House:
        made.append(House(tmp_path, spec, code or {}, **instances))
        made[-1].it.start()
        return made[-1]

    yield start
    for each in made:
        each.it.stop(0)
        assert not [name for name in each.it.status().processes if each.process(name).pid]


ABC = (child("a"), child("b"), child("c"))
RESTARTED = {  # b is killed: what happens, in this order
    "one_for_one": [(ENDED, "b"), (STARTED, "b")],
    "rest_for_one": [(ENDED, "b"), (STOPPED, "c"), (STARTED, "b"), (STARTED, "c")],
    "one_for_all": [(ENDED, "b"), *[(STOPPED, each) for each in "ca"]]
    + [(STARTED, each) for each in "abc"],
}


@pytest.mark.parametrize("strategy", RESTARTED)
def test_the_former_one_is_gone_before_the_next_starts_at_its_address_with_another_tag(
    started: Callable[..., House], strategy: str
) -> None:
    house = started(Spec("root", strategy, children=ABC))
    before = house.process("b").pid
    again = [name for what, name in RESTARTED[strategy] if what == STARTED]
    del house.told[:]
    house.code["b"] = f"import os\nassert not os.path.exists('/proc/{before}')\n{RUNS}"
    house.kill("b")
    house.until(lambda: house.runs(**dict.fromkeys(again, 2)))
    assert house.happened(STARTED, ENDED, STOPPED) == RESTARTED[strategy]
    assert len(house.it.status().supervisors["root"].ends_ms) == 1  # failure
    first, last = (given for name, given in house.given if name == "b")
    assert (first.url, last.url) == ("", "it://secret@b:1")
    assert first.tag != last.tag
    assert "The b was started; it has 60 s to answer at b:1." in house.said
    assert [house.process(n).restarts for n in "abc"] == [int(n in again) for n in "abc"]


def test_two_ends_in_one_look_are_one_failure_of_a_group_and_two_of_single_ones(
    started: Callable[..., House],
) -> None:
    for strategy, ends in (("one_for_all", 1), ("one_for_one", 2)):
        house = started(Spec(strategy, strategy, children=ABC))
        for name in "ab":
            house.kill(name)
            children = {each.title: each for each in house.it.children()}
            children[f"the {name}"].popen.wait()
        house.until(lambda house=house: house.runs(a=2, b=2))  # type: ignore[misc]
        assert len(house.it.status().supervisors[strategy].ends_ms) == ends
        house.it.stop(0)


@pytest.mark.parametrize("code", [ENDS, SILENT, "OSError"])
def test_a_crash_loop_ends_in_one_sentence_and_the_others_run_on(
    started: Callable[..., House], monkeypatch: pytest.MonkeyPatch, code: str
) -> None:
    """One that ends in its first moment, one that never answers, one that cannot be started."""
    if code == SILENT:
        monkeypatch.setattr(members, "START_SECONDS_MAX", 0.05)
    below = Spec("agents", max_restarts=2, children=(child("a"), child("b")), restart=TRANSIENT)
    house = started(Spec("root", children=(below, child("web"))))
    house.code["b"] = code
    house.kill("b")
    house.until(lambda: GAVE_UP in {each.what for each in house.told})
    house.until(lambda: house.process("a").state == process_file.STOPPED)
    assert house.runs(web=1)
    for _ in range(3):  # it stays so
        house.it.tend()
    assert house.process("b").state == process_file.STOPPED
    given_up = next(each for each in house.told if each.what == GAVE_UP)
    assert given_up.below == ("a", "b")
    assert "The supervisor agents counted 3 failures in 60 s" in given_up.text
    assert ("a reason" in house.said[-2]) == (
        code == ENDS
    )  # the last words, for the terminal alone
    assert "a reason" not in str(house.told) + str(house.it.status())
    assert house.said[-1] == "The supervisor agents gave up. It is not started again."
    assert f"mend what {house.data / 'logs' / 'b.log'} says" in house.said[-2]


def test_the_root_that_gives_up_ends_all_in_one_sentence(started: Callable[..., House]) -> None:
    house = started(Spec("root", max_restarts=1, children=ABC))
    house.code["b"] = ENDS
    house.kill("b")
    with pytest.raises(ProcessError) as caught:
        house.until(lambda: False)
    assert str(caught.value) == (
        "The b ended with status 1: a reason. The supervisor root counted 2 failures in 60 s, so "
        f"the rest was stopped too: mend what {house.data / 'logs' / 'b.log'} says, then start it "
        "again."
    )


def test_a_slow_stop_holds_up_nobody_else_and_ends_with_a_kill(
    started: Callable[..., House],
) -> None:
    group = Spec("group", "one_for_all", children=(child("a"), child("deaf", shutdown_ms=700)))
    house = started(Spec("root", children=(group, child("web"))), {"deaf": DEAF})
    house.kill("a")
    began = time.monotonic()
    house.until(lambda: house.process("a").state == process_file.DOWN)
    house.kill("web")
    house.until(lambda: house.runs(web=2))
    house.until(lambda: house.runs(a=2, deaf=2))
    assert house.happened(STARTED)[-3:] == [(STARTED, name) for name in ("web", "a", "deaf")]
    assert time.monotonic() - began >= 0.7


def test_one_that_a_signal_holds_is_killed_and_counts_as_a_failure(
    started: Callable[..., House], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(members, "HELD_MS_MAX", 100)
    house = started(Spec("root", children=(child("a", TRANSIENT), child("b"))))
    house.kill("a", signal.SIGSTOP)
    house.until(lambda: house.runs(a=2))
    assert "The a was held by a signal for 0.1 s. It is started again in 0.001 s." in house.said


def test_a_start_waits_for_the_sealed_end_before_it_but_not_for_long(
    started: Callable[..., House], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "SEALED_MS_MAX", 60_000)
    house = started(Spec("root", children=ABC))
    house.sealed = False
    house.kill("a")
    house.until(lambda: house.process("a").state == process_file.DOWN)
    time.sleep(0.01)
    house.it.tend()
    assert house.happened() == [(STARTED, name) for name in "abc"]
    monkeypatch.setattr(runner, "SEALED_MS_MAX", 100)
    house.until(lambda: house.runs(a=2))


def test_instances_and_those_that_are_not_started_again(started: Callable[..., House]) -> None:
    readers = Spec("readers", SIMPLE_ONE_FOR_ONE, children=(child("reader"),))
    three = (child("a", TRANSIENT), child("b", TEMPORARY), readers)
    code = {"a": f"{READY}time.sleep(0.2)"}
    house = started(Spec("root", children=three), code, readers=("reader-1", "reader-2"))
    house.kill("b")
    house.kill("reader-2")
    house.until(lambda: house.runs(**{"reader-1": 1, "reader-2": 2}))
    house.until(lambda: {house.process(n).state for n in "ab"} == {process_file.STOPPED})
    assert house.it.status().supervisors["readers"].children == ["reader-1", "reader-2"]


def test_the_file_survives_a_full_disk_and_tells_what_was_last_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def full(*_: object, **__: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(settings, "NANOVM_DATA", tmp_path)
    first = process_file.Processes(
        {}, {"a": process_file.Process("a", 7, walls={"files": ["kek"]})}
    )
    process_file.write(first)
    with monkeypatch.context() as patched:
        patched.setattr(Path, "write_text", full)
        process_file.write(process_file.Processes())
    assert "No space left on device" in caplog.text
    assert process_file.read() == first
    process_file.remove()
    assert process_file.read() == process_file.Processes()


def test_a_server_that_does_not_answer_in_time_is_not_well(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo, "HEALTHY_SECONDS_MAX", 0.05)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        assert demo._unhealthy(url) == "web: timed out"
    assert str(demo._unhealthy(url)).startswith("web: [Errno")
