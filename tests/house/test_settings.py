"""What the settings take from the environment, and refuse."""

import importlib.util
import os
import stat
import subprocess
import sys
import traceback
from pathlib import Path

import pytest
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.db import connection
from kombu.exceptions import OperationalError

from config.celery import app
from config.environment import (
    SANDBOX_KEY,
    SETTINGS,
    allowed_hosts,
    data_folder,
    endpoint_settings,
    secret_key,
    stripe_settings,
    value,
)
from tests.house.demo import ROOT


def mode(path: Path) -> int:
    """The permission bits of a file."""
    return stat.S_IMODE(path.stat().st_mode)


def test_a_missing_data_folder_is_made_for_its_owner_alone(tmp_path: Path) -> None:
    folder = data_folder({"NANOVM_DATA": str(tmp_path / "new")})
    assert folder == tmp_path / "new"
    assert mode(folder) == 0o700
    assert value("NANOVM_DATA", {}) == ROOT / "var"


def test_a_data_folder_that_cannot_be_made_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ImproperlyConfigured, match="set NANOVM_DATA to a folder"):
        data_folder({"NANOVM_DATA": str(tmp_path / "file" / "data")})


def test_the_secret_key_is_made_once_and_kept_secret(tmp_path: Path) -> None:
    first = secret_key(tmp_path)
    assert len(first) >= 50
    assert secret_key(tmp_path) == first
    assert mode(tmp_path / "secret_key") == 0o600
    assert os.listdir(tmp_path) == ["secret_key"]


def test_a_secret_key_that_cannot_be_made_or_read_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "secret_key").mkdir()
    for folder in (tmp_path, tmp_path / "none"):
        with pytest.raises(ImproperlyConfigured, match="cannot be made or read") as caught:
            secret_key(folder)
        assert str(folder / "secret_key") in str(caught.value)


def test_processes_that_start_at_once_agree_on_the_secret_key(tmp_path: Path) -> None:
    script = (
        "import sys; from pathlib import Path; from config.environment import secret_key; "
        "sys.stdin.read(); print(secret_key(Path(sys.argv[1])))"
    )
    command = [sys.executable, "-c", script, str(tmp_path)]
    started = [
        subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        for _ in range(4)
    ]
    for process in started:
        assert process.stdin is not None
        process.stdin.close()  # all are up: now they race
        process.stdin = None
    keys = {process.communicate()[0].strip() for process in started}
    assert len(keys) == 1
    assert len(keys.pop()) >= 50


@pytest.mark.parametrize("kind", ["sk_live", "rk_live", "pk_test"])
def test_a_live_key_and_one_of_another_kind_are_refused_and_not_repeated(kind: str) -> None:
    key = f"{kind}_0123456789"
    with pytest.raises(ImproperlyConfigured, match="is not a Stripe test key") as refusal:
        stripe_settings({"STRIPE_SECRET_KEY": key})
    assert key not in str(refusal.value)


@pytest.mark.parametrize(
    ("environ", "key", "base", "local"),
    [
        ({}, SANDBOX_KEY, None, True),  # payments go to the counterpart
        ({"STRIPE_SECRET_KEY": "sk_test_01234"}, "sk_test_01234", None, False),  # Stripe's own
        ({"STRIPE_API_BASE": "http://127.0.0.1:4711"}, SANDBOX_KEY, "http://127.0.0.1:4711", True),
    ],
)
def test_a_key_and_an_address_say_where_payments_go(
    environ: dict[str, str], key: str, base: str | None, local: bool
) -> None:
    assert stripe_settings(environ) == {"key": key, "api_base": base, "local": local}


def test_the_counterpart_is_on_this_machine_or_refused() -> None:
    with pytest.raises(ImproperlyConfigured, match="STRIPE_API_BASE is not the address"):
        stripe_settings({"STRIPE_API_BASE": "http://127.0.0.1.evil.example"})


def test_hosts_are_the_loopback_names_and_those_that_are_named() -> None:
    loopback = ["127.0.0.1", "localhost", "[::1]"]
    assert allowed_hosts({}) == loopback
    named = {"NANOVM_HOSTS": " a.example ,b.example,"}
    assert allowed_hosts(named) == [*loopback, "a.example", "b.example"]
    outside = {"NANOVM_ORIGINS": "https://pay.example, https://[2001:db8::1]:8443"}
    assert allowed_hosts(outside) == [*loopback, "pay.example", "[2001:db8::1]"]


@pytest.mark.parametrize(
    "text",
    [
        *(
            "pay.example",
            "https://",
            "https://pay.example/",
            "https://*.example",
            "ftp://a.example",
        ),
        *("https://a@b.example", "https://pay.example?x", "https://a.example,http://b.example"),
        "https://a.example https://b.example",
    ],
)
def test_what_is_no_origin_is_refused_in_words(text: str) -> None:
    with pytest.raises(ImproperlyConfigured, match="NANOVM_ORIGINS"):
        value("NANOVM_ORIGINS", {"NANOVM_ORIGINS": text})


def test_the_proxy_is_an_address_a_network_or_refused_in_words() -> None:
    networks = value("NANOVM_PROXY", {"NANOVM_PROXY": "127.0.0.1, 10.1.0.0/16, ::1"})
    assert [str(each) for each in networks] == ["127.0.0.1/32", "10.1.0.0/16", "::1/128"]
    for text in ("1", "nginx", "10.1.0.1/16", "127.0.0.1:80"):
        with pytest.raises(ImproperlyConfigured, match="NANOVM_PROXY"):
            value("NANOVM_PROXY", {"NANOVM_PROXY": text})


@pytest.mark.parametrize("origin", ["https://pay.example", "http://pay.example", ""])
def test_over_tls_cookies_are_secure_and_tls_is_remembered(
    origin: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NANOVM_ORIGINS", origin)
    spec = importlib.util.find_spec("config.settings")
    assert spec is not None
    assert spec.loader is not None
    made = importlib.util.module_from_spec(spec)  # a second one beside that of the tests
    spec.loader.exec_module(made)
    over_tls = origin.startswith("https:")
    assert [over_tls, over_tls] == [made.CSRF_COOKIE_SECURE, made.SESSION_COOKIE_SECURE]
    assert (made.SECURE_HSTS_SECONDS > 0) is over_tls
    assert ([origin] if origin else []) == made.CSRF_TRUSTED_ORIGINS


@pytest.mark.django_db
def test_the_database_is_durable_and_takes_the_write_lock_first() -> None:
    with connection.cursor() as cursor:
        assert cursor.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        assert cursor.execute("PRAGMA synchronous").fetchone() == (2,)
        assert cursor.execute("PRAGMA foreign_keys").fetchone() == (1,)
    assert connection.settings_dict["OPTIONS"]["transaction_mode"] == "IMMEDIATE"


def test_the_tests_do_not_touch_the_data_of_an_installation() -> None:
    assert ROOT not in settings.NANOVM_DATA.parents


def test_without_a_queue_server_queueing_fails_in_words() -> None:
    assert settings.REDIS_URL is None
    with pytest.raises(OperationalError, match="refused"):
        app.send_task("nobody.takes.it")


@pytest.mark.parametrize(
    ("name", "least", "most", "default"),
    [
        ("NANOVM_RETENTION", 0, 36_525, 0),
        ("NANOVM_EXPIRE_DAYS", 0, 36_525, 90),
        ("NANOVM_QUOTA_FACTOR", 0, 1_000, 1),
        ("NANOVM_WORKER_THREADS", 1, sys.maxsize, 4),
        ("NANOVM_COPIES_AHEAD", 0, 1, 1),
    ],
)
def test_a_number_is_whole_and_within_its_limits(
    name: str, least: int, most: int, default: int
) -> None:
    assert [value(name, {name: str(each)}) for each in (least, most)] == [least, most]
    assert value(name, {}) == value(name, {name: ""}) == default
    for text in (str(least - 1), str(most + 1), "four", "1.5", "\u0661", "9" * 5_000):
        with pytest.raises(ImproperlyConfigured, match=f"{name} is not"):
            value(name, {name: text})


def refusal_of(name: str, text: str) -> str:
    """All that a log shows of it; empty where the text is taken."""
    try:
        value(name, {name: text})
    except ImproperlyConfigured as error:
        return "".join(traceback.format_exception(error))
    return ""


@pytest.mark.parametrize("name", SETTINGS)
def test_no_refusal_repeats_the_text(name: str) -> None:
    texts = ("hunter2\n", "http://u:hunter2@h:hunter2", "postgresql://u:p@h/n?hunter2")
    said = [refusal_of(name, text) for text in texts]
    assert any(said) is (SETTINGS[name].must_be != "text")
    assert "hunter2" not in "".join(said)


def endpoint(url: str, key: str = "", name: str = "tiny") -> object:
    named = {"NANOVM_MODEL_URL": url, "NANOVM_MODEL_NAME": name, "NANOVM_MODEL_KEY": key}
    return endpoint_settings(environ={setting: value for setting, value in named.items() if value})


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1:11434/v1", "http://[::1]:8080", "https://models.example/v1/"]
)
def test_an_endpoint_is_taken_as_it_is_named(url: str) -> None:
    assert endpoint(url, "sk-1") == {"url": url, "name": "tiny", "key": "sk-1"}
    assert endpoint("", "sk-1") is None


@pytest.mark.parametrize(
    "url",
    [
        *("models.example/v1", "file:///etc/passwd", "http://", "http://models.example:99999"),
        *("http://models.example:0", "https://user:secret@models.example"),
        *("https://models.example/v1?key=secret", "https://models.example/v1#x"),
        *("https://models.example/a b", "https://models.example/\r\nX: y"),
        "https://mödels.example",
    ],
)
def test_an_address_that_is_no_base_is_refused(url: str) -> None:
    with pytest.raises(ImproperlyConfigured, match="NANOVM_MODEL_URL") as caught:
        endpoint(url)
    assert "secret" not in str(caught.value)


def test_an_endpoint_without_a_models_name_is_refused() -> None:
    with pytest.raises(ImproperlyConfigured, match="NANOVM_MODEL_NAME"):
        endpoint("http://127.0.0.1:1", name="")


@pytest.mark.parametrize(
    ("url", "key"),
    [
        ("http://models.example/v1", "secret"),
        ("http://127.0.0.1.evil.example", "secret"),
        ("https://models.example", "secret\r\nX: y"),
        ("https://models.example", "secret é"),
        ("https://models.example", "secret key"),
    ],
)
def test_a_key_that_cannot_be_kept_or_sent_is_refused(url: str, key: str) -> None:
    with pytest.raises(ImproperlyConfigured, match="NANOVM_MODEL_KEY") as caught:
        endpoint(url, key)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("secret", ["sk_test_1", "whsec_a b", "whsec_\u00e4", "whsec_\n"])
def test_what_is_no_webhook_secret_is_refused_and_not_repeated(secret: str) -> None:
    with pytest.raises(ImproperlyConfigured, match="STRIPE_WEBHOOK_SECRET") as caught:
        value("STRIPE_WEBHOOK_SECRET", {"STRIPE_WEBHOOK_SECRET": secret})
    assert secret not in str(caught.value)
    good = {"STRIPE_WEBHOOK_SECRET": "whsec_1"}
    assert [value("STRIPE_WEBHOOK_SECRET", each) for each in (good, {})] == ["whsec_1", ""]
