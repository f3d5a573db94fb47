"""The ASGI application: pages over HTTP, live pages over a WebSocket from this origin only."""

import os

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")

from asgiref.sync import sync_to_async
from channels.routing import ProtocolTypeRouter, URLRouter
from channels.security.websocket import AllowedHostsOriginValidator
from django.conf import settings
from django.core.asgi import get_asgi_application

http = get_asgi_application()  # loads the applications: before their consumers are imported
http.load_middleware(is_async=False)  # none of ours awaits: one thread answers a request
http.get_response_async = sync_to_async(http.get_response)  # type: ignore[method-assign]

from config.forwarded import Forwarded  # noqa: E402
from config.sockets import CountedSockets, SameOrigin  # noqa: E402
from dashboard.runs.consumers import websocket_urlpatterns  # noqa: E402
from gate.doors.turns import Turns  # noqa: E402

live = CountedSockets(URLRouter(websocket_urlpatterns))
application = Forwarded(
    ProtocolTypeRouter(
        {"http": Turns(http), "websocket": SameOrigin(AllowedHostsOriginValidator(live))}
    ),
    settings.NANOVM_PROXIES,
)
