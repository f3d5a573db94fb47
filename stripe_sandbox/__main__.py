"""``python -m stripe_sandbox``: start the counterpart, print its address, stop on a signal."""

import argparse
import ctypes
import json
import os
import signal
import sys
import threading
from collections.abc import Sequence
from typing import NoReturn

from stripe_sandbox.authentication import readdress
from stripe_sandbox.faults import Faults
from stripe_sandbox.sandbox import Sandbox
from stripe_sandbox.server import HOST, SandboxServer
from stripe_sandbox.store import Store, StoreError
from stripe_sandbox.webhooks.courier import Courier

WRONG_USE = 2
RETRY_MS = 1000
STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)
_PR_SET_PDEATHSIG = 1


class _Arguments(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        _stop(message)


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve until SIGTERM or SIGINT; returns 0 then, and 2 where it could not start."""
    chosen = _parser().parse_args(arguments)
    if chosen.die_with_parent:
        _die_with_parent()
    accounts = _accounts(chosen.key)
    # Blocked in every thread and taken by sigwait: a handler that runs just before the main thread
    # blocks on a lock wakes nobody, and the stop is lost.
    signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS)
    try:
        store = Store(chosen.database)
    except StoreError as error:
        _stop(f"{error}; give a writable file to --database")
    courier = Courier(store, first_pause_s=chosen.retry_ms / 1000)
    faults = Faults() if chosen.faults else None
    sandbox = Sandbox(
        store, accounts, faults=faults, changed=courier.wake, has_connect=not chosen.no_connect
    )
    try:
        server = SandboxServer(chosen.port, sandbox, verbose=chosen.verbose)
    except (OSError, OverflowError) as error:
        _stop(f"cannot listen on {HOST}:{chosen.port}: {error}; choose another --port, or 0")
    readdress(store, server.url)
    courier.start()
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    print(json.dumps({"ready": True, "url": server.url}), flush=True)
    signal.sigwait(STOP_SIGNALS)
    server.shutdown()
    server.server_close()
    courier.stop()
    store.close()
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = _Arguments(prog="python -m stripe_sandbox", description=__doc__, allow_abbrev=False)
    parser.add_argument("--port", type=int, default=0, help="port on 127.0.0.1; 0 takes a free one")
    parser.add_argument("--database", required=True, help="SQLite file, made where there is none")
    parser.add_argument(
        "--key",
        action="append",
        required=True,
        metavar="sk_test_…=ACCOUNT",
        help="a secret key and the name of the account it opens; may be given several times",
    )
    parser.add_argument("--verbose", action="store_true", help="log requests to standard error")
    parser.add_argument(
        "--faults", action="store_true", help="let anybody ask for faults at /faults (for tests)"
    )
    parser.add_argument(
        "--no-connect",
        action="store_true",
        help="refuse to make accounts, as Stripe does before a platform signed up for Connect",
    )
    parser.add_argument(
        "--retry-ms",
        type=int,
        default=RETRY_MS,
        help="pause before an event that was not accepted is sent again; four times that later",
    )
    parser.add_argument(
        "--die-with-parent", action="store_true", help="end when the starting process ends (Linux)"
    )
    return parser


def _accounts(given: Sequence[str]) -> dict[str, str]:
    """Return account names by key; no message repeats a key, a live one least of all."""
    accounts: dict[str, str] = {}
    for text in given:
        key, _, account = text.partition("=")
        if "_live_" in key:
            _stop("a live key was given to --key; this counterpart takes keys of test mode alone")
        if not key.startswith("sk_test_") or len(key) == len("sk_test_") or not account:
            _stop("--key must be sk_test_… = account name, with no spaces around the equals sign")
        if accounts.setdefault(key, account) != account:
            _stop("one key was given to --key for two accounts; give each account a key of its own")
    return accounts


def _die_with_parent() -> None:
    """Ask the kernel to kill this process when its parent dies; the records survive that.

    SIGKILL, because nothing here can delay it, and every answer is on disk before
    it is sent.
    """
    if not sys.platform.startswith("linux"):
        print("stripe_sandbox: --die-with-parent has no effect here", file=sys.stderr)
        return
    parent = os.getppid()
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0) != 0:
        _stop(f"the kernel refused --die-with-parent: {os.strerror(ctypes.get_errno())}")
    if os.getppid() != parent:  # it died before the request was in force
        sys.exit(0)


def _stop(message: str) -> NoReturn:
    print(f"stripe_sandbox: {message}", file=sys.stderr)
    sys.exit(WRONG_USE)


if __name__ == "__main__":
    sys.exit(main())
