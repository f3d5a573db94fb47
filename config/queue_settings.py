"""Celery's settings, under Celery's own names."""

import sys

from django.conf import settings

# Without REDIS_URL nothing is queued: an address without a server fails at once.
broker_url = settings.REDIS_URL or "redis://127.0.0.1:1/0"
broker_connection_retry_on_startup = True
broker_transport_options = {
    # With the defaults nothing comes back for over a minute after a worker's SIGKILL. A task
    # that takes longer than this is delivered twice: leases in the database stop the second.
    "visibility_timeout": 30,
    "unacked_restore_interval": 1,
    "unacked_restore_throttle": 1,
    "socket_connect_timeout": 5,
    "socket_timeout": 5,  # of a server that takes the connection and does not answer; BRPOP has 1 s
    # Without these, queueing waits for ever while the server is away, instead of failing.
    "max_retries": 3,
    "interval_start": 0,
    "interval_step": 0.2,
    "interval_max": 0.5,
}
task_acks_late = True
task_reject_on_worker_lost = True
worker_prefetch_multiplier = 1
worker_hijack_root_logger = False
worker_send_task_events = False
# Each thread keeps its connection to the database; Celery would open one for every task, and a new
# one knows no statement. The application itself replaces one that broke.
CELERY_DB_REUSE_MAX = sys.maxsize // 2  # Celery doubles it
task_send_sent_event = False

task_ignore_result = True
result_backend = None
task_serializer = "json"
accept_content = ["json"]
# The worker's own lines carry the task's name and id, never its arguments.
worker_redirect_stdouts = False
