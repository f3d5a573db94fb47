"""Every setting that the environment gives: its default, and what its text must be."""

import os
import re
import secrets
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from ipaddress import ip_network
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any, NamedTuple, TypedDict
from urllib.parse import urlsplit

from django.core.exceptions import ImproperlyConfigured

from config.database import ADMITTED, postgres

BASE_DIR = Path(__file__).resolve().parent.parent
LOOPBACK_NAMES = ("127.0.0.1", "localhost", "::1")
LOOPBACK_HOSTS = ["127.0.0.1", "localhost", "[::1]"]
UPLOAD_SIZE_BYTES_MAX = 11 * 1024 * 1024  # the largest PDF (10 MB) and the form around it
DAYS_MAX = 36_525  # a hundred years
SANDBOX_KEY = "sk_test_nanovm_demo"


class StripeSettings(TypedDict):
    """Which Stripe the application talks to; ``local`` means our own counterpart."""

    key: str
    api_base: str | None
    local: bool


def _whole(least: int, most: int) -> Callable[[str], int]:
    def read(text: str) -> int:
        number = int(_like("[0-9]+")(text))
        if not least <= number <= most:
            raise ValueError
        return number

    return read


def _like(pattern: str) -> Callable[[str], str]:
    def read(text: str) -> str:
        if not re.fullmatch(pattern, text):
            raise ValueError
        return text

    return read


def _listed(read: Callable[[str], Any]) -> Callable[[str], list[Any]]:
    return lambda text: [read(each.strip()) for each in text.split(",") if each.strip()]


def _base(text: str) -> str:
    """A whole address to which a path can be added: without a user, a query or a fragment."""
    parts = urlsplit(_like(r'https?://[!"$->A-~]+')(text))
    if not parts.hostname or parts.port == 0:
        raise ValueError
    return text


def _origins(text: str) -> list[str]:
    """Scheme and host of each; not some with TLS beside some without: a cookie goes to both."""
    named = _listed(_base)(text)
    schemes = {urlsplit(origin).scheme for origin in named}
    if len(schemes) > 1 or "*" in text or any(urlsplit(origin).path for origin in named):
        raise ValueError
    return named


def _loopback(text: str) -> str:
    if urlsplit(text).hostname not in LOOPBACK_NAMES:
        raise ValueError
    return text


class Setting(NamedTuple):
    """The value where it is unset or empty, and what reads its text, or raises ValueError."""

    default: Any = None
    read: Callable[[str], Any] = str
    must_be: str = "text"


SETTINGS = {
    "NANOVM_DATA": Setting(BASE_DIR / "var", lambda text: Path(text).expanduser().absolute()),
    "DATABASE_URL": Setting(
        None,
        postgres,
        "the address of one PostgreSQL database, postgresql://user:password@host:5432/name, with "
        "signs like @ and / in a part percent-encoded and no option after ? but "
        f"{', '.join(ADMITTED)}, each once (unset, SQLite is used)",
    ),
    "REDIS_URL": Setting(),
    "NANOVM_HOSTS": Setting([], _listed(str)),
    "NANOVM_ORIGINS": Setting(
        [],
        _origins,
        "what precedes the path in your visitors' address bar, such as https://pay.example, or "
        "several such origins with commas, either all with https: or all with http:",
    ),
    "NANOVM_PROXY": Setting(
        [],
        _listed(ip_network),
        "the address or network from which your reverse proxy connects, such as 127.0.0.1",
    ),
    "NANOVM_POLICY": Setting(None, Path),
    "NANOVM_GATE": Setting(None, Path),
    "NANOVM_RETENTION": Setting(0, _whole(0, DAYS_MAX), f"a number of days, 0 to {DAYS_MAX}"),
    "NANOVM_EXPIRE_DAYS": Setting(
        90, _whole(0, DAYS_MAX), f"a number of days, 1 to {DAYS_MAX}, or 0 for never"
    ),
    "NANOVM_QUOTA_FACTOR": Setting(
        1, _whole(0, 1_000), "a whole number, 1 to 1000, or 0 for no quotas"
    ),
    "NANOVM_AGENT": Setting(
        "",
        _like("[a-z][a-z0-9-]{0,29}"),
        "the name of an agent, such as reader (unset: all agents)",
    ),
    "NANOVM_PROCESS": Setting("", _like("[0-9a-f]{8}"), "8 lower-case hexadecimal digits"),
    "NANOVM_WORKER_THREADS": Setting(
        4,
        _whole(1, sys.maxsize),
        "the number of threads of all workers of an agent together, 1 or more",
    ),
    "NANOVM_READERS": Setting(1, _whole(1, 16), "a number of processes, 1 to 16"),
    "NANOVM_COPIES_AHEAD": Setting(1, _whole(0, 1), "1 for on, or 0 for off"),
    "NANOVM_MODEL_URL": Setting(
        "",
        _base,
        "the base address of an endpoint, such as http://127.0.0.1:11434/v1, without a user, a "
        "query or a fragment",
    ),
    "NANOVM_MODEL_NAME": Setting(""),
    "NANOVM_MODEL_KEY": Setting("", _like("[!-~]+"), "a key in plain ASCII without spaces"),
    "NANOVM_ADVISOR_URL": Setting(
        "",
        _base,
        "the base address of an endpoint, such as http://127.0.0.1:11434/v1, without a user, a "
        "query or a fragment",
    ),
    "NANOVM_ADVISOR_NAME": Setting(""),
    "NANOVM_ADVISOR_KEY": Setting("", _like("[!-~]+"), "a key in plain ASCII without spaces"),
    "NANOVM_ALERT_URL": Setting(
        "",
        _base,
        "the address that takes alerts, such as https://pay.example/alerts, without a user, a "
        "query or a fragment",
    ),
    "NANOVM_ALERT_SECRET": Setting(
        "", _like("[!-~]{16,}"), "a secret of 16 characters or more in plain ASCII without spaces"
    ),
    "NANOVM_METRICS_TOKEN": Setting(
        "", _like("[!-~]{16,}"), "a secret of 16 characters or more in plain ASCII without spaces"
    ),
    "STRIPE_SECRET_KEY": Setting(
        "",
        _like("[rs]k_test_.*"),
        "a Stripe test key, which starts with sk_test_ or rk_test_: this application never moves "
        "real money (unset, payments go to the local counterpart)",
    ),
    "NANOVM_STRIPE_SHARED": Setting(
        0, _whole(0, 1), "1 where other systems use this Stripe account too, or 0"
    ),
    "STRIPE_API_BASE": Setting(
        None, _loopback, "the address of a local counterpart of Stripe on this machine"
    ),
    "STRIPE_WEBHOOK_SECRET": Setting(
        "", _like("whsec_[!-~]*"), "the signing secret (whsec_…) of a webhook endpoint"
    ),
}


def value(name: str, environ: Mapping[str, str] = os.environ) -> Any:
    """A setting's value.

    Raises:
        ImproperlyConfigured: its text is refused. The text is not repeated: it may be a secret.
    """
    setting, text = SETTINGS[name], environ.get(name)
    try:
        return setting.read(text) if text else setting.default
    except ValueError:
        raise ImproperlyConfigured(
            f"{name} is not {setting.must_be}; correct it or unset it."
        ) from None


def data_folder(environ: Mapping[str, str] = os.environ) -> Path:
    """The folder that holds everything the application writes; made (0700) where missing."""
    folder: Path = value("NANOVM_DATA", environ)
    with _usable(folder):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for name in ("logs", "media", "mail"):
            (folder / name).mkdir(mode=0o700, exist_ok=True)
    return folder


def secret_key(folder: Path) -> str:
    """The signing key of this data folder, made at the first start.

    Several processes may start at once: one of them makes the key, and all read the same.
    """
    path = folder / "secret_key"
    with _usable(path):
        if not path.exists():
            with (  # mode 0600, deleted at the end
                NamedTemporaryFile(
                    "w", encoding="ascii", dir=folder, prefix=".secret_key."
                ) as file,
                suppress(FileExistsError),
            ):
                file.write(secrets.token_urlsafe(64))
                file.flush()
                os.fsync(file.fileno())
                os.link(file.name, path)  # atomic; it never replaces another process's key
        return path.read_text(encoding="ascii").strip()


@contextmanager
def _usable(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise ImproperlyConfigured(
            f"{path} cannot be made or read ({error.strerror}); see that its disk has room, or "
            "set NANOVM_DATA to a folder that you may write to."
        ) from error


def stripe_settings(environ: Mapping[str, str] = os.environ) -> StripeSettings:
    """Key and address for Stripe's test mode or for the local counterpart."""
    key, api_base = value("STRIPE_SECRET_KEY", environ), value("STRIPE_API_BASE", environ)
    local = api_base is not None or not key
    return {"key": key or SANDBOX_KEY, "api_base": api_base, "local": local}


def endpoint_settings(
    of: str = "NANOVM_MODEL", environ: Mapping[str, str] = os.environ
) -> dict[str, str] | None:
    """``url``, ``name`` and ``key`` of the endpoint that may answer as the model, or None.

    ``of``: how its settings begin; NANOVM_ADVISOR for the advisor's.

    Raises:
        ImproperlyConfigured: also for an address without a model's name, and for a key that
            would cross a network in the clear.
    """
    url = value(f"{of}_URL", environ)
    if not url:
        return None
    name, key = value(f"{of}_NAME", environ), value(f"{of}_KEY", environ)
    if not name:
        raise ImproperlyConfigured(f"{of}_URL is set; name its model in {of}_NAME.")
    if key and not url.startswith("https:") and urlsplit(url).hostname not in LOOPBACK_NAMES:
        raise ImproperlyConfigured(
            f"{of}_KEY would cross a network in the clear; use an https: address in "
            f"{of}_URL, one on this machine, or unset the key."
        )
    return {"url": url, "name": name, "key": key}


def alert_settings(environ: Mapping[str, str] = os.environ) -> dict[str, str] | None:
    """``url`` and ``secret`` of the receiver of alerts, or None.

    Raises:
        ImproperlyConfigured: also for an address without a secret: nobody could tell an alert of
            ours from another's.
    """
    url, secret = value("NANOVM_ALERT_URL", environ), value("NANOVM_ALERT_SECRET", environ)
    if url and not secret:
        raise ImproperlyConfigured(
            "NANOVM_ALERT_URL is set; set the secret that signs alerts in NANOVM_ALERT_SECRET."
        )
    return {"url": url, "secret": secret} if url else None


def allowed_hosts(environ: Mapping[str, str] = os.environ) -> list[str]:
    """The loopback names, and those in ``NANOVM_HOSTS`` and ``NANOVM_ORIGINS``, without a port."""
    outside = [urlsplit(each).hostname or "" for each in value("NANOVM_ORIGINS", environ)]
    named = [f"[{host}]" if ":" in host else host for host in outside]  # IPv6: as Django writes it
    return [*LOOPBACK_HOSTS, *value("NANOVM_HOSTS", environ), *named]
