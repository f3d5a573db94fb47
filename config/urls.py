"""The addresses of the project."""

from django.templatetags.static import static
from django.urls import include, path
from django.views.generic import RedirectView

from config import webhooks
from config.health import healthz
from config.metrics import metrics

urlpatterns = [
    path("webhooks/stripe/", webhooks.stripe, name="stripe_webhook"),
    path("healthz", healthz, name="healthz"),
    path("metrics", metrics, name="metrics"),
    path("gate/", include("gate.urls")),
    # Asked for by browsers wherever an answer is no page and cannot name its icon.
    path("favicon.ico", RedirectView.as_view(url=static("favicon.svg"))),
    path("", include("dashboard.urls")),
]
