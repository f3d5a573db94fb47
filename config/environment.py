"""What the settings take from the environment, checked once."""

import os
import secrets
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TypedDict
from urllib.parse import urlsplit

from django.core.exceptions import ImproperlyConfigured

LOOPBACK_HOSTS = ("127.0.0.1", "localhost", "[::1]")
UPLOAD_SIZE_BYTES_MAX = 11 * 1024 * 1024  # the largest PDF (10 MB) and the form around it
SANDBOX_KEY = "sk_test_nanovm_demo"
TEST_KEY_PREFIXES = ("sk_test_", "rk_test_")
LIVE_KEY_PREFIXES = ("sk_live_", "rk_live_")


class StripeSettings(TypedDict):
    """Which Stripe the application talks to; ``local`` means our own counterpart."""

    key: str
    api_base: str | None
    local: bool


def data_folder(environ: Mapping[str, str], default: Path) -> Path:
    """The folder that holds everything the application writes; made (0700) where missing."""
    folder = Path(environ.get("NANOVM_DATA") or default).expanduser().absolute()
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for name in ("logs", "media", "mail"):
            (folder / name).mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise ImproperlyConfigured(
            f"The data folder {folder} cannot be made ({error.strerror}); "
            "set NANOVM_DATA to a folder that you may write to."
        ) from error
    return folder


def secret_key(folder: Path) -> str:
    """The signing key of this data folder, made at the first start.

    Several processes may start at once: one of them makes the key, and all read the same.
    """
    path = folder / "secret_key"
    if not path.exists():
        _write_once(path, secrets.token_urlsafe(64))
    return path.read_text(encoding="ascii").strip()


def _write_once(path: Path, text: str) -> None:
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=".secret_key.")  # mode 0600
    try:
        with os.fdopen(handle, "w", encoding="ascii") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.link(name, path)  # atomic, and refuses to replace the key that another process made
    except FileExistsError:
        return
    finally:
        Path(name).unlink()


def stripe_settings(environ: Mapping[str, str]) -> StripeSettings:
    """Key and address for Stripe's test mode or for the local counterpart.

    Raises:
        ImproperlyConfigured: for a live key, for anything that is no test key, and for an
            ``STRIPE_API_BASE`` that is not on this machine. The key is never repeated.
    """
    key = environ.get("STRIPE_SECRET_KEY", "")
    api_base = environ.get("STRIPE_API_BASE") or None
    if key.startswith(LIVE_KEY_PREFIXES):
        raise ImproperlyConfigured(
            "STRIPE_SECRET_KEY is a live key, and this application never moves real money; "
            "use a test key (sk_test_…) or unset it to pay at the local counterpart."
        )
    if key and not key.startswith(TEST_KEY_PREFIXES):
        raise ImproperlyConfigured(
            "STRIPE_SECRET_KEY is not a Stripe test key; "
            "use one that starts with sk_test_ or rk_test_, or unset it."
        )
    if api_base and urlsplit(api_base).hostname not in ("127.0.0.1", "localhost", "::1"):
        raise ImproperlyConfigured(
            "STRIPE_API_BASE names another machine, but it is the address of the local "
            "counterpart; use a loopback address or unset it."
        )
    local = api_base is not None or not key
    return {"key": key or SANDBOX_KEY, "api_base": api_base, "local": local}


def allowed_hosts(environ: Mapping[str, str]) -> list[str]:
    """The loopback names and those in ``NANOVM_HOSTS``, separated by commas."""
    named = [host.strip() for host in environ.get("NANOVM_HOSTS", "").split(",")]
    return [*LOOPBACK_HOSTS, *(host for host in named if host)]
