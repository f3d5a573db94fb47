"""The address of the live socket."""

from django.urls import path

from dashboard.runs.consumers import RunConsumer

websocket_urlpatterns = [path("ws/runs/<slug:code>/", RunConsumer.as_asgi())]
