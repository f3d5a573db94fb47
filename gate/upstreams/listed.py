"""Reads ``upstreams.toml`` in the folder NANOVM_GATE: who performs tools, and how."""

import os
import re
from dataclasses import MISSING, dataclass
from urllib.parse import urlsplit

from django.conf import settings

from engine.errors import PermanentError
from engine.store import state_file
from nanovm_core.errors import ProgramError
from nanovm_core.loading.readers import NAME, integer, names, tables, text
from nanovm_core.loading.strict_toml import Row, Sheet

CODE = "GAT-020"
SIZE_BYTES_MAX, COUNT_MAX = 65_536, 64
TIMEOUT_MS_MAX = 120_000  # from the connection to the last byte
TOKEN = re.compile("[!-~]+")  # what a header can have
LOOPBACK = ("localhost", "127.0.0.1", "::1")
_NEEDED = {"kind": text(among=("mcp", "http")), "url": text()}
_OTHERS = {
    "token_env": text(re.compile(r"[A-Z][A-Z0-9_]{0,63}")),
    "timeout_ms": integer(1, TIMEOUT_MS_MAX),
    "repeats": names,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Upstream:
    """A server that performs tools, as the file lists it."""

    kind: str
    url: str
    token_env: str = ""
    timeout_ms: int = 20_000
    repeats: tuple[str, ...] = ()

    @property
    def headers(self) -> dict[str, str]:
        """What authorizes a call there; PermanentError GAT-020 where the variable is not set."""
        token = os.environ.get(self.token_env, "")
        if self.token_env and not TOKEN.fullmatch(token):
            raise PermanentError(CODE, f"{self.token_env} has no token that a header can have.")
        return {"Authorization": f"Bearer {token}"} if token else {}


def named(name: str) -> Upstream:
    """The upstream of this name, as the operator's file lists it now.

    Raises:
        PermanentError: GAT-020, with the place of a fault; nothing was sent.
    """
    if settings.NANOVM_GATE is None:
        raise PermanentError(CODE, f"NANOVM_GATE names no folder that lists {name!r}.")
    try:
        found = load(state_file.read_plain(settings.NANOVM_GATE / "upstreams.toml"))
    except OSError as error:
        raise PermanentError(CODE, f"upstreams.toml: {error.strerror}.") from error
    except ProgramError as error:
        raise PermanentError(CODE, f"upstreams.toml: {error.text}.") from error
    if name not in found:
        raise PermanentError(CODE, f"upstreams.toml lists no upstream {name!r}.")
    return found[name]


def load(source: bytes) -> dict[str, Upstream]:
    """The upstreams of a file, by name.

    Raises:
        ProgramError: GAT-020, with line and column.
    """
    sheet = Sheet(source, code=CODE, what="list of upstreams", size_max=SIZE_BYTES_MAX)
    sheet.root.only({"upstreams"})
    found = tables(_read, "{0}: upstream {1}", NAME, COUNT_MAX)(sheet.root, "upstreams", MISSING)
    sheet.close()
    return dict(found)


def _read(row: Row) -> Upstream:
    row.only({*_NEEDED, *_OTHERS})
    fields = {**_NEEDED, **{key: read for key, read in _OTHERS.items() if key in row.table}}
    given = {key: read(row, key, MISSING) for key, read in fields.items()}
    try:
        parts = urlsplit(given["url"])
        is_safe = parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in LOOPBACK)
        more = parts.username or parts.query or parts.fragment or parts.port == 0
    except ValueError:  # of its port, or of brackets
        parts, is_safe, more = urlsplit(""), False, ""
    if not is_safe or not parts.hostname or more:
        row.fault("url", "url must be https, or http on this machine, with a host and a path only")
    return Upstream(**given)
