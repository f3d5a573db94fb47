"""The counterpart as a real process: started, read for its ready line, stopped by its own pid."""

import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO
from urllib.parse import urlsplit

REPO_ROOT = Path(__file__).resolve().parents[2]
READY_SECONDS_MAX = 20.0  # a loaded two-core machine imports slowly
STOP_SECONDS_MAX = 5.0  # promised within one; a busy machine gets slack, a hang does not


_WRAPPED = """
import runpy, sys, time
real, shift = time.time, float(sys.argv.pop(1))
time.time = lambda: real() + shift
sys.setswitchinterval(float(sys.argv.pop(1)))
runpy.run_module("stripe_sandbox", run_name="__main__")
"""
_RESTLESS_S = 0.000001  # threads take turns 5000 times as often as usual


def command(
    *,
    database: Path,
    accounts: Mapping[str, str],
    port: int = 0,
    later_seconds: int = 0,
    restless: bool = False,
    faults: bool = False,
) -> list[str]:
    """Return the command line that serves ``accounts`` (secret key to account id).

    With ``later_seconds`` the same module runs on a clock that is that far ahead; ``restless``
    makes its threads interrupt each other wherever they can; with ``faults`` it takes them.
    """
    program = ["-m", "stripe_sandbox"]
    if later_seconds or restless:
        interval = _RESTLESS_S if restless else sys.getswitchinterval()
        program = ["-c", _WRAPPED, str(later_seconds), f"{interval:f}"]
    line = [sys.executable, *program, "--port", str(port)]
    line += ["--database", str(database)]
    line += ["--faults"] if faults else []
    for key, account in accounts.items():
        line += ["--key", f"{key}={account}"]
    return line


def run_to_its_end(line: list[str]) -> subprocess.CompletedProcess[str]:
    """Run a command line that is expected to refuse, and return what it said."""
    return subprocess.run(
        line, cwd=REPO_ROOT, capture_output=True, text=True, timeout=READY_SECONDS_MAX, check=False
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """One running counterpart."""

    process: subprocess.Popen[bytes]
    url: str

    @property
    def port(self) -> int:
        """The TCP port it listens on."""
        port = urlsplit(self.url).port
        assert port is not None
        return port

    def terminate(self) -> int:
        """Send SIGTERM and return the exit status."""
        return self._end(signal.SIGTERM)

    def kill(self) -> int:
        """Send SIGKILL (kill -9) and return the exit status."""
        return self._end(signal.SIGKILL)

    def _end(self, number: signal.Signals) -> int:
        try:
            if self.process.poll() is None:
                os.kill(self.process.pid, number)
            return self.process.wait(timeout=STOP_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise
        finally:
            assert self.process.stdout is not None
            self.process.stdout.close()


def start(line: list[str], *, log: Path) -> Server:
    """Start a command line of the counterpart and return once it says that it is ready."""
    with log.open("ab") as errors:
        process = subprocess.Popen(line, cwd=REPO_ROOT, stdout=subprocess.PIPE, stderr=errors)
    assert process.stdout is not None
    said = _first_line(process.stdout)
    try:
        ready = json.loads(said)
        assert ready["ready"] is True
        return Server(process=process, url=ready["url"])
    except (ValueError, KeyError, AssertionError):
        process.kill()
        process.wait()
        process.stdout.close()
        raise RuntimeError(
            f"the counterpart did not become ready: it said {said!r}; its log: {log.read_text()}"
        ) from None


def _first_line(stream: IO[bytes]) -> bytes:
    readable, _, _ = select.select([stream], [], [], READY_SECONDS_MAX)
    return stream.readline() if readable else b""
