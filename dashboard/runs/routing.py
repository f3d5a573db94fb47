"""The addresses of sockets: a run's, and all others."""

from django.urls import path, re_path

from dashboard.runs.consumers import NowhereConsumer, RunConsumer

websocket_urlpatterns = [
    path("ws/runs/<slug:code>/", RunConsumer.as_asgi()),
    re_path("", NowhereConsumer.as_asgi()),
]
