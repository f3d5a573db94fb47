"""The settings, strict by default; the environment names what differs between machines."""

from ipaddress import IPv4Network, IPv6Network
from pathlib import Path
from secrets import token_urlsafe
from typing import Any

from config import walls
from config.database import sqlite
from config.environment import (
    BASE_DIR,
    UPLOAD_SIZE_BYTES_MAX,
    alert_settings,
    allowed_hosts,
    data_folder,
    endpoint_settings,
    secret_key,
    stripe_settings,
    value,
)

NANOVM_DATA = data_folder()
REDIS_URL: str | None = value("REDIS_URL")
STRIPE = stripe_settings()
STRIPE_WEBHOOK_SECRET: str = value("STRIPE_WEBHOOK_SECRET")  # of the endpoint here; empty: none
NANOVM_STRIPE_SHARED = bool(value("NANOVM_STRIPE_SHARED"))  # others pay at its account, too
NANOVM_MODEL = endpoint_settings()  # an endpoint in the model's place; None: none
NANOVM_ADVISOR = endpoint_settings("NANOVM_ADVISOR")  # that says how risky a payment is
NANOVM_ALERT = alert_settings()  # the receiver of alerts; None: they are on the pages alone
NANOVM_METRICS_TOKEN: str = value("NANOVM_METRICS_TOKEN")  # who may read /metrics; empty: nobody
NANOVM_RETENTION: int = value("NANOVM_RETENTION")  # days that a document is kept from erasure
NANOVM_EXPIRE_DAYS: int = value("NANOVM_EXPIRE_DAYS")  # unchanged, then a workspace is erased
NANOVM_QUOTA_FACTOR: int = value("NANOVM_QUOTA_FACTOR")  # what each quota is multiplied by
NANOVM_AGENT: str = value("NANOVM_AGENT")  # whose tools this process uses; empty: all tools
NANOVM_PROCESS: str = value("NANOVM_PROCESS")  # begins the names of its leases; empty: none does
NANOVM_WORKER_THREADS: int = value("NANOVM_WORKER_THREADS")  # of all workers of an agent together
# The policy that new runs are judged by, read anew for each; None: the one that is shipped.
NANOVM_POLICY: Path | None = value("NANOVM_POLICY")
NANOVM_GATE: Path | None = value("NANOVM_GATE")  # a folder of programs for agents from outside
# Whether the shipped attacks are made on a copy before a visitor asks for it.
NANOVM_COPIES_AHEAD = bool(value("NANOVM_COPIES_AHEAD"))

DEBUG = False
# A process behind walls answers no browser, and is kept from the file.
SECRET_KEY = token_urlsafe(64) if walls.said else secret_key(NANOVM_DATA)
ALLOWED_HOSTS = allowed_hosts()
CSRF_TRUSTED_ORIGINS: list[str] = value("NANOVM_ORIGINS")
# Whose word on a visitor's address and scheme is taken.
NANOVM_PROXIES: list[IPv4Network | IPv6Network] = value("NANOVM_PROXY")
ROOT_URLCONF = "config.urls"
ASGI_APPLICATION = "config.asgi.application"

INSTALLED_APPS = ["django.contrib.staticfiles", "config", "dashboard", "sabotage"]
INSTALLED_APPS += [
    "pipeline",
    "gate",
    "engine",
]  # an application of one's own stands beside pipeline

MIDDLEWARE = [
    "gate.doors.errors.JsonErrors",
    "django.middleware.security.SecurityMiddleware",
    "config.middleware.answer_headers",
    "config.middleware.utf8_forms",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "config.middleware.CountedRequests",
    "config.middleware.StorableText",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
]

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {"context_processors": ["django.template.context_processors.request"]},
    }
]

DATABASES = {"default": value("DATABASE_URL") or sqlite(NANOVM_DATA)}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

# An upload is a document full of personal data: it stays in memory until it is encrypted.
FILE_UPLOAD_HANDLERS = ["django.core.files.uploadhandler.MemoryFileUploadHandler"]
FILE_UPLOAD_MAX_MEMORY_SIZE = UPLOAD_SIZE_BYTES_MAX
DATA_UPLOAD_MAX_MEMORY_SIZE = UPLOAD_SIZE_BYTES_MAX
MEDIA_ROOT = NANOVM_DATA / "media"

# WhiteNoise reads the folders once, when the server starts: nothing to collect first.
STATIC_URL = "/static/"
STATICFILES_DIRS = [BASE_DIR / "static"]
WHITENOISE_USE_FINDERS = True

SECURE_CONTENT_TYPE_NOSNIFF = True
SECURE_REFERRER_POLICY = "same-origin"
SECURE_CROSS_ORIGIN_OPENER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"
OVER_TLS = bool(CSRF_TRUSTED_ORIGINS) and CSRF_TRUSTED_ORIGINS[0].startswith("https:")
SECURE_HSTS_SECONDS = 365 * 24 * 3600 if OVER_TLS else 0
CSRF_COOKIE_SECURE = SESSION_COOKIE_SECURE = OVER_TLS
CSRF_COOKIE_HTTPONLY = True
CSRF_COOKIE_SAMESITE = "Lax"
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = "Lax"

USE_TZ = True
TIME_ZONE = "UTC"
USE_I18N = False
LANGUAGE_CODE = "en"

if REDIS_URL:
    CHANNEL_LAYERS: dict[str, Any] = {
        "default": {
            "BACKEND": "channels_redis.pubsub.RedisPubSubChannelLayer",
            "CONFIG": {"hosts": [REDIS_URL]},
        }
    }
else:
    CHANNEL_LAYERS = {"default": {"BACKEND": "channels.layers.InMemoryChannelLayer"}}

# Paths only: Django logs no query string and no body, and task arguments are logged nowhere.
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"line": {"format": "%(asctime)s %(levelname)s %(name)s %(message)s"}},
    "filters": {"secrets": {"()": "engine.ops.log_files.WithoutSecrets"}},
    "handlers": {
        "stderr": {"class": "logging.StreamHandler", "formatter": "line", "filters": ["secrets"]},
        "file": {
            "class": "logging.handlers.WatchedFileHandler",
            "filename": NANOVM_DATA / "logs" / "app.log",
            "delay": True,
            "formatter": "line",
            "filters": ["secrets"],
        },
    },
    # Behind walls a process writes to its own log alone, which it has open as its stderr.
    "root": {"handlers": ["stderr"] if walls.said else ["stderr", "file"], "level": "INFO"},
    "loggers": {
        "django": {"handlers": [], "level": "WARNING", "propagate": True},
        "httpx2": {"level": "WARNING"},  # below that it names the address of the model
        # Both names are the MCP library's; below this it quotes what was sent and answered.
        "mcp": {"level": "CRITICAL"},
        "client": {"level": "CRITICAL"},
        "stripe": {"level": "WARNING"},  # below that it names payment objects
        "django.dispatch": {"level": "CRITICAL"},  # it quotes errors; engine.signals names them
        "celery.app.trace": {"level": "WARNING"},  # a line a task, and there is one each sweep
        "celery.worker.strategy": {"level": "WARNING"},
    },
}
