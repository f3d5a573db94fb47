"""The real application on a data folder of its own, as ``manage.py demo`` starts it."""

import os
import select
import signal
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
START_SECONDS_MAX = 120
RUN_SECONDS_MAX = 600
STOP_SECONDS_MAX = 60
ADDRESS_LINE = "nanovm is running at "
FOR_THE_TESTS_ALONE = (
    *("DJANGO_ALLOW_ASYNC_UNSAFE", "REDIS_URL", "STRIPE_API_BASE", "PORT"),
    "NANOVM_QUOTA_FACTOR",
)


def environment(data: Path, **more: str) -> dict[str, str]:
    """The environment of a process that works on ``data``."""
    kept = {name: text for name, text in os.environ.items() if name not in FOR_THE_TESTS_ALONE}
    return {**kept, "NANOVM_DATA": str(data), **more}


def ran(data: Path, *words: str, **more: str) -> subprocess.CompletedProcess[str]:
    """What ``python`` did with these words, from the repository and on this data folder."""
    return subprocess.run(
        [sys.executable, *words],
        cwd=ROOT,
        env=environment(data, **more),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=RUN_SECONDS_MAX,
    )


def refusal(data: Path, *words: str, **env: str) -> str:
    """The one line with which a command ends, with status 2."""
    done = ran(data, *words, **env)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1), done.stderr
    return done.stderr


@dataclass(slots=True, kw_only=True)
class Demo:
    """A running ``manage.py demo``: where it answers, and what it said."""

    popen: subprocess.Popen[str]
    data: Path
    url: str = ""
    said: list[str] = field(default_factory=list)

    @property
    def env(self) -> dict[str, str]:
        """The environment of its web server: commands that get it use the same servers."""
        web = next(pid for pid, command in processes_of(self.data) if "config.web" in command)
        pairs = Path(f"/proc/{web}/environ").read_text().rstrip("\0").split("\0")
        return dict(pair.split("=", 1) for pair in pairs)

    def signal(self, number: signal.Signals) -> int:
        """Send it a signal; returns its exit status."""
        self.popen.send_signal(number)
        return self.popen.wait(STOP_SECONDS_MAX)

    def close(self) -> None:
        """Stop it where it still runs: SIGTERM is success, and leaves no process."""
        if self.popen.poll() is None:
            assert self.signal(signal.SIGTERM) == 0
            assert processes_of(self.data) == []
        for pipe in (self.popen.stdout, self.popen.stderr):
            if pipe is not None:
                pipe.close()


def launch(data: Path, **more: str) -> Demo:
    """Start ``manage.py demo`` without waiting for it."""
    popen = subprocess.Popen(
        [sys.executable, "manage.py", "demo"],
        cwd=ROOT,
        env=environment(data, **{"PORT": "0", **more}),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    return Demo(popen=popen, data=data)


def start(data: Path, **more: str) -> Demo:
    """Start ``manage.py demo`` and wait until it says that it runs."""
    demo = launch(data, **more)
    watchdog = threading.Timer(START_SECONDS_MAX, demo.popen.kill)
    watchdog.start()
    assert demo.popen.stdout is not None
    assert demo.popen.stderr is not None
    try:
        for line in demo.popen.stdout:
            demo.said.append(line.strip())
            if line.startswith(ADDRESS_LINE):
                demo.url = line.removeprefix(ADDRESS_LINE).strip().rstrip("/")
            if line.startswith("Everything it writes"):
                return demo
    finally:
        watchdog.cancel()
    raise AssertionError(f"the demo did not start: {demo.popen.stderr.read()}")


def processes_of(data: Path) -> list[tuple[int, str]]:
    """Process ids and command lines of all that run on this data folder, or on one in it."""
    marks = [f"NANOVM_DATA={data}{end}".encode() for end in ("\0", "/")]
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            environ = (folder / "environ").read_bytes()
            inside = (folder / "cwd").readlink().is_relative_to(data)
            command = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode()
        except OSError:  # it ended while we looked, or it is not ours
            continue
        # The queue server writes its title over its environment, but works inside the folder.
        if command and (inside or any(mark in environ for mark in marks)):
            found.append((int(folder.name), command))
    return found


def await_end(pid: int) -> None:
    """Wait until a process has ended that may be nobody's child any more."""
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        assert select.select([handle], [], [], STOP_SECONDS_MAX)[0] == [handle]
    finally:
        os.close(handle)


def wait_for_none(data: Path) -> list[tuple[int, str]]:
    """What still runs on this data folder after some time to end."""
    deadline = time.monotonic() + STOP_SECONDS_MAX
    while (left := processes_of(data)) and time.monotonic() < deadline:
        time.sleep(0.02)
    return left
