"""How many sockets are open at once: of one workspace, and of one client's address."""

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

from django.conf import settings

from dashboard.web import quotas, workspace
from dashboard.web.client import client_address

FULL = 4429  # the close code: try again later; a page then asks for its news from time to time
WORDS = {"workspace": "in this workspace", "address": "from your network address"}


class CountedSockets:
    """Lets as many sockets in as its process may hold for one owner; tells the next in words.

    Each is counted where it runs, so nothing is left counted when a process ends.
    """

    def __init__(self, application: Any) -> None:
        self.application = application
        self.open: Counter[tuple[str, str]] = Counter()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Go on, or say what is full, and close."""
        owners = [*_owners(scope)]
        for whose, owner in owners:
            most = quotas.SOCKETS_MAX[whose] * settings.NANOVM_QUOTA_FACTOR
            if most and self.open[whose, owner] >= most:
                await _tell(receive, send, whose, most)
                return
        self.open.update(owners)
        try:
            await self.application(scope, receive, send)
        finally:
            self.open -= Counter(owners)


def _owners(scope: Any) -> Iterator[tuple[str, str]]:
    owner = workspace.of_headers(scope["headers"])
    if owner:
        yield "workspace", str(owner)
    yield "address", client_address(scope)


async def _tell(receive: Any, send: Any, whose: str, most: int) -> None:
    """A browser shows a page no reason of a refused handshake: accept, say it, and close."""
    text = (
        f"{most} live pages are open {WORDS[whose]}, the most at once. This one is updated every "
        "3 seconds instead. Close another one to have it live."
    )
    await receive()
    await send({"type": "websocket.accept"})
    await send({"type": "websocket.send", "text": json.dumps({"kind": "full", "say": text})})
    await send({"type": "websocket.close", "code": FULL, "reason": "too many live pages"})
