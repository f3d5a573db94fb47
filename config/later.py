"""``python -m config.later PORT COMMAND…``: a command of manage.py, once the demo is healthy.

Until then it loads nothing, so that what no run waits for does not slow the start of the others.
"""

import http.client
import os
import sys
import time
from contextlib import closing, suppress
from http import HTTPStatus

from engine.ops.processes import LOOPBACK

WAIT_SECONDS_MAX = 60  # then it begins all the same
POLL_SECONDS = 2


def main(port: str, *command: str) -> None:
    """Wait, then become ``manage.py COMMAND…``."""
    deadline = time.monotonic() + WAIT_SECONDS_MAX
    while time.monotonic() < deadline:
        connection = http.client.HTTPConnection(LOOPBACK, int(port), timeout=WAIT_SECONDS_MAX)
        with suppress(OSError, http.client.HTTPException), closing(connection):
            connection.request("GET", "/healthz")
            if connection.getresponse().status == HTTPStatus.OK:
                break
        time.sleep(POLL_SECONDS)
    os.execv(sys.executable, [sys.executable, "manage.py", *command])  # noqa: S606 - no shell


if __name__ == "__main__":
    main(*sys.argv[1:])
