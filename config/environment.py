"""What the settings take from the environment, checked once."""

import os
import secrets
import tempfile
from collections.abc import Mapping
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from typing import TypedDict
from urllib.parse import urlsplit

from django.core.exceptions import ImproperlyConfigured

LOOPBACK_NAMES = ("127.0.0.1", "localhost", "::1")
LOOPBACK_HOSTS = ("127.0.0.1", "localhost", "[::1]")
UPLOAD_SIZE_BYTES_MAX = 11 * 1024 * 1024  # the largest PDF (10 MB) and the form around it
RETENTION_DAYS_MAX = 36_525  # a hundred years
EXPIRE_DAYS = 90
QUOTA_FACTOR_MAX = 1_000
SANDBOX_KEY = "sk_test_nanovm_demo"
TEST_KEY_PREFIXES = ("sk_test_", "rk_test_")
LIVE_KEY_PREFIXES = ("sk_live_", "rk_live_")


class StripeSettings(TypedDict):
    """Which Stripe the application talks to; ``local`` means our own counterpart."""

    key: str
    api_base: str | None
    local: bool


class ModelSettings(TypedDict):
    """Which OpenAI-compatible endpoint may take the model's place; the key may be empty."""

    url: str
    name: str
    key: str


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


def retention_days(environ: Mapping[str, str]) -> int:
    """For how many days a document is kept from erasure; 0: no law keeps any."""
    return _days(environ, "NANOVM_RETENTION", 0, "then nothing is kept from erasure")


def expire_days(environ: Mapping[str, str]) -> int:
    """After how many days without a change a workspace is erased; 0: never."""
    then = f"then a workspace is erased after {EXPIRE_DAYS} days without a change (0: never)"
    return _days(environ, "NANOVM_EXPIRE_DAYS", EXPIRE_DAYS, then)


def _days(environ: Mapping[str, str], name: str, default: int, then: str) -> int:
    text = environ.get(name) or str(default)
    if not (text.isascii() and text.isdigit() and int(text) <= RETENTION_DAYS_MAX):
        raise ImproperlyConfigured(
            f"{name} is {text!r}; set it to a number of days, 0 to {RETENTION_DAYS_MAX}, or leave "
            f"it out: {then}."
        )
    return int(text)


def quota_factor(environ: Mapping[str, str]) -> int:
    """What each quota is multiplied by: for a class behind one address. 0: nothing is counted."""
    text = environ.get("NANOVM_QUOTA_FACTOR") or "1"
    if not (text.isascii() and text.isdigit() and int(text) <= QUOTA_FACTOR_MAX):
        raise ImproperlyConfigured(
            f"NANOVM_QUOTA_FACTOR is {text!r}; set it to a whole number, 1 to {QUOTA_FACTOR_MAX}, "
            "to 0 for no quotas, or leave it out: then they are as they are shipped."
        )
    return int(text)


def worker_threads(environ: Mapping[str, str]) -> int:
    """The threads of all workers together, by which the caps of a workspace are counted; 4."""
    text = environ.get("NANOVM_WORKER_THREADS") or "4"
    if not (text.isascii() and text.isdigit() and int(text) >= 1):
        raise ImproperlyConfigured(
            f"NANOVM_WORKER_THREADS is {text!r}; set it to the number of threads of all workers "
            "together, or unset it."
        )
    return int(text)


def secret_key(folder: Path) -> str:
    """The signing key of this data folder, made at the first start.

    Several processes may start at once: one of them makes the key, and all read the same.

    Raises:
        ImproperlyConfigured: where the folder takes no file or gives none back.
    """
    path = folder / "secret_key"
    try:
        if not path.exists():
            _write_once(path, secrets.token_urlsafe(64))
        return path.read_text(encoding="ascii").strip()
    except OSError as error:
        raise ImproperlyConfigured(
            f"The file {path} cannot be made or read ({error.strerror}); see that its disk has "
            "room and that you may write to the folder, or set NANOVM_DATA to another one."
        ) from error


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
    if api_base and urlsplit(api_base).hostname not in LOOPBACK_NAMES:
        raise ImproperlyConfigured(
            "STRIPE_API_BASE names another machine, but it is the address of the local "
            "counterpart; use a loopback address or unset it."
        )
    local = api_base is not None or not key
    return {"key": key or SANDBOX_KEY, "api_base": api_base, "local": local}


def webhook_secret(environ: Mapping[str, str]) -> str:
    """The signing secret of the webhook endpoint; empty where there is none.

    Raises:
        ImproperlyConfigured: for what is no such secret. It is never repeated.
    """
    secret = environ.get("STRIPE_WEBHOOK_SECRET", "")
    plain = secret.isascii() and secret.isprintable() and " " not in secret
    if secret and not (plain and secret.startswith("whsec_")):
        raise ImproperlyConfigured(
            "STRIPE_WEBHOOK_SECRET is no signing secret of a webhook endpoint; use the one that "
            "starts with whsec_, or unset it."
        )
    return secret


def model_settings(environ: Mapping[str, str]) -> ModelSettings | None:
    """The endpoint that may answer as the model, or None: then no run is offered it.

    Raises:
        ImproperlyConfigured: for an address or a key that cannot be sent as it stands, for an
            address without a model's name, and for a key that would cross a network in the
            clear. The key is never repeated.
    """
    url, name = environ.get("NANOVM_MODEL_URL", ""), environ.get("NANOVM_MODEL_NAME", "")
    key = environ.get("NANOVM_MODEL_KEY", "")
    if not url:
        return None
    if not _is_base(url):
        raise ImproperlyConfigured(
            "NANOVM_MODEL_URL is no address of an endpoint; set it to its base, such as "
            "http://127.0.0.1:11434/v1, without a user, a query or a fragment, or unset it."
        )
    if not name:
        raise ImproperlyConfigured("NANOVM_MODEL_URL is set; name its model in NANOVM_MODEL_NAME.")
    if not (key.isascii() and key.isprintable() and " " not in key):
        raise ImproperlyConfigured("NANOVM_MODEL_KEY is no key: set it again, in plain ASCII.")
    if key and not url.startswith("https:") and urlsplit(url).hostname not in LOOPBACK_NAMES:
        raise ImproperlyConfigured(
            "NANOVM_MODEL_KEY would cross a network in the clear; use an https: address in "
            "NANOVM_MODEL_URL, one on this machine, or unset the key."
        )
    return {"url": url, "name": name, "key": key}


def _is_base(url: str) -> bool:
    """Whether this is a whole address to which a path can be added."""
    try:
        parts = urlsplit(url)
        sound = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False
    plain = url.isascii() and url.isprintable() and " " not in url
    return plain and sound and not any(sign in url for sign in "@?#")


def origins(environ: Mapping[str, str]) -> list[str]:
    """Where visitors reach this server from outside: ``NANOVM_ORIGINS``, separated by commas.

    Raises:
        ImproperlyConfigured: for what is no scheme and host, and for some with TLS beside some
            without: a cookie would go to both.
    """
    named = [each.strip() for each in environ.get("NANOVM_ORIGINS", "").split(",") if each.strip()]
    for origin in named:
        if not (_is_base(origin) and urlsplit(origin).path == "" and "*" not in origin):
            raise ImproperlyConfigured(
                f"NANOVM_ORIGINS has {origin!r}; set it to what stands before the path in your "
                "visitors' address bar, such as https://pay.example, or unset it."
            )
    if len({urlsplit(origin).scheme for origin in named}) > 1:
        raise ImproperlyConfigured(
            "NANOVM_ORIGINS has https: and http: origins; name those with https: alone."
        )
    return named


def proxies(environ: Mapping[str, str]) -> list[IPv4Network | IPv6Network]:
    """From where the reverse proxy connects: ``NANOVM_PROXY``, separated by commas.

    Raises:
        ImproperlyConfigured: for what is no address or network.
    """
    named = [each.strip() for each in environ.get("NANOVM_PROXY", "").split(",") if each.strip()]
    try:
        return [ip_network(each) for each in named]
    except ValueError as error:
        raise ImproperlyConfigured(
            f"NANOVM_PROXY is no list of addresses ({error}); set it to the address from which "
            "your reverse proxy connects, such as 127.0.0.1, or unset it."
        ) from error


def allowed_hosts(environ: Mapping[str, str]) -> list[str]:
    """The loopback names, and those in ``NANOVM_HOSTS`` and ``NANOVM_ORIGINS``."""
    named = [host.strip() for host in environ.get("NANOVM_HOSTS", "").split(",")]
    return [*LOOPBACK_HOSTS, *(host for host in named if host), *_hosts_of(origins(environ))]


def _hosts_of(named: list[str]) -> list[str]:
    """The hosts of origins as Django writes them: without a port, an IPv6 address in brackets."""
    hosts = [urlsplit(origin).hostname or "" for origin in named]
    return [f"[{host}]" if ":" in host else host for host in hosts]
