"""Becomes Celery behind the walls of the reader: ``python -m config.walled -A …`` as ``celery``.

The walls are there before Django, Celery or an application is imported, or a thread has started.
"""

import os
import re
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final
from urllib.parse import parse_qsl, urlsplit

from config import walls

# What the reader's process has no use for, and must not find in its environment: empty is unset.
WITHOUT: Final[Mapping[str, str]] = {
    **dict.fromkeys(("STRIPE_SECRET_KEY", "STRIPE_WEBHOOK_SECRET", "STRIPE_API_BASE"), ""),
    **dict.fromkeys(("NANOVM_ALERT_URL", "NANOVM_ALERT_SECRET", "NANOVM_METRICS_TOKEN"), ""),
}
TOKEN: Final = re.compile(r"""token_env["']?\s*=\s*["']+([A-Z][A-Z0-9_]*)""")  # broken files too
SERVERS: Final = {
    "queue": "REDIS_URL",
    "PostgreSQL": "DATABASE_URL",
    "model": "NANOVM_MODEL_URL",
    "advisor": "NANOVM_ADVISOR_URL",
}
PORTS: Final = {  # where an address names none
    **dict.fromkeys(("redis", "rediss"), 6379),
    **dict.fromkeys(("postgres", "postgresql"), 5432),
    "http": 80,
    "https": 443,
}


def without(environ: Mapping[str, str]) -> dict[str, str]:
    """What to put into its environment: nothing, in place of each secret that others use."""
    file = Path(environ.get("NANOVM_GATE") or os.devnull, "upstreams.toml")
    text = file.read_text(errors="replace") if file.is_file() else ""
    return {**WITHOUT, **dict.fromkeys(TOKEN.findall(text), "")}


def ports(environ: Mapping[str, str]) -> dict[str, int]:
    """The port of each server that the environment names, but for those behind a socket's file."""
    found = {}
    for name, setting in SERVERS.items():
        with suppress(ValueError):  # the settings refuse the address, and say why
            parts = urlsplit(environ.get(setting, ""))
            if parts.scheme in PORTS and not (parts.hostname or "%").startswith("%"):
                found[name] = parts.port or PORTS[parts.scheme]
    return found


def files(environ: Mapping[str, str]) -> list[Path]:
    """The files that the environment names: policy, the gate's programs, TLS with PostgreSQL."""
    options = parse_qsl(urlsplit(environ.get("DATABASE_URL", "")).query)
    named = [path for name, path in options if name in ("sslcert", "sslkey", "sslrootcert")]
    own = (environ.get("NANOVM_POLICY"), environ.get("NANOVM_GATE"))
    return [Path(each) for each in (*own, *named) if each]


def main() -> None:
    """Put the walls up, then run the worker that the arguments describe."""
    os.environ.update(without(os.environ))
    data = Path(os.environ.get("NANOVM_DATA") or walls.PROJECT / walls.NOT_CODE)
    walls.close(data.expanduser().absolute(), ports(os.environ), files(os.environ))
    from celery.__main__ import main as celery

    sys.exit(celery())


if __name__ == "__main__":
    main()
