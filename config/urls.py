"""The addresses of the project."""

from django.conf import settings
from django.urls import include, path

from config.health import healthz

urlpatterns = [path("healthz", healthz, name="healthz")]
if (settings.BASE_DIR / "dashboard" / "urls.py").exists():
    urlpatterns.append(path("", include("dashboard.urls")))
