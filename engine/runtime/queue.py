"""Waking a run: one message in its agent's queue, whose loss the sweep makes good."""

import logging
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit

from celery import current_app
from django.conf import settings
from kombu.exceptions import OperationalError

from engine.models import Run
from engine.ops.processes import ProcessError
from engine.store import actors, sql

if TYPE_CHECKING:
    from redis import Redis

log = logging.getLogger(__name__)

# The names of tasks: messages that wait in a queue bear them, so they stay as they are.
DRIVE, TURN, SWEEP, TIDY = (
    f"pipeline.worker.tasks.{each}" for each in ("drive", "turn", "sweep", "tidy")
)
# The list at the queue server in which messages of the main agent wait, and all that are no run's;
# those of another agent wait in a list of its own.
QUEUE = "celery"
DROPPED = "nanovm.dropped"  # how many were dropped as malformed, since that server started
ANSWER_SECONDS_MAX = 2
PORT = 6379  # where an address names none
_PLACE = "SELECT program_hash, length, owed_tool FROM pipeline_run WHERE id = %s"


class Place(NamedTuple):
    """Where a run is, by its row: its program's hash, its length, and the tool that it owes."""

    program: str
    length: int
    tool: str


def of_tool(tool: str) -> str:
    """The queue of the agent that uses a tool."""
    return of_agent(actors.of_tool(tool))


def of_agent(agent: str) -> str:
    """The queue of an agent."""
    return QUEUE if agent == actors.main() else f"{QUEUE}.{agent}"


def own() -> tuple[str, ...]:
    """The queues from which this process takes messages: its agent's, or all of them."""
    named = (settings.NANOVM_AGENT,) if settings.NANOVM_AGENT else actors.agents()
    return tuple(of_agent(each) for each in named)


def wake(run_id: str, in_ms: int = 0) -> None:
    """Queue a message that makes a worker drive this run: its id, its program's hash, its length.

    It goes to the agent whose tool the run owes.
    Without a queue (a command that drives runs itself) nothing is sent. Where the queue does
    not answer, the run waits for the sweep.
    """
    if settings.REDIS_URL:
        place = place_of(run_id)
        send(DRIVE, [str(run_id), place.program, place.length], in_ms, to=of_tool(place.tool))


def call_worker(to: str = "") -> None:
    """Queue a message that names no run: whatever is due has its turn, ``to`` whom or here."""
    send(TURN, [], to=to or own()[0])


def send(task: str, args: list[str | int], in_ms: int = 0, to: str = QUEUE) -> None:
    """Queue a message, where there is a queue. If it does not answer, the sweep does the work."""
    if not settings.REDIS_URL:
        return
    try:
        current_app.send_task(task, args=args, countdown=in_ms / 1000, retry=False, queue=to)
    except OperationalError:
        log.warning("the queue does not answer; the sweep will find what is due")


def place_of(run_id: str) -> Place:
    """Where a run is, as its row has it.

    Raises:
        Run.DoesNotExist: where there is no such run.
    """
    for program, length, tool in sql.execute(_PLACE, (sql.key_of(str(run_id)),)):
        return Place(str(program), int(length), str(tool))
    raise Run.DoesNotExist(f"There is no run {run_id}.")


def ping(url: str) -> None:
    """Ask the queue server of this address for a sign of life, once.

    Raises:
        RedisError, OSError, ValueError: it gave none in time, or this is no address.
    """
    with connected(url) as client:
        client.ping()


def counts(url: str) -> tuple[int, int]:
    """How many messages wait at the queue server in all, and how many malformed were dropped.

    Raises:
        RedisError, OSError, ValueError: as for ``ping``.
    """
    with connected(url) as client, client.pipeline(transaction=False) as asked:
        for agent in actors.agents():
            asked.llen(of_agent(agent))
        *waiting, dropped = asked.get(DROPPED).execute()
    return sum(map(int, waiting)), int(dropped or 0)


def connected(url: str) -> "Redis":
    """A client of the queue server of this address, which tries nothing twice."""
    from redis import Redis  # a command starts without the client
    from redis.backoff import NoBackoff
    from redis.retry import Retry

    return Redis.from_url(
        url,
        socket_timeout=ANSWER_SECONDS_MAX,
        socket_connect_timeout=ANSWER_SECONDS_MAX,
        retry=Retry(NoBackoff(), 0),
    )


def require_server(url: str) -> None:
    """Say that the queue server that REDIS_URL names is away, before anything waits for it.

    Raises:
        ProcessError: naming host and port, and nothing else of the address.
    """
    from redis import RedisError
    from redis.exceptions import AuthenticationError, NoPermissionError

    try:
        ping(url)
    except (RedisError, OSError, ValueError) as error:
        is_refusal = isinstance(error, AuthenticationError | NoPermissionError)
        why = "refuses its password" if is_refusal else "does not answer"
        raise ProcessError(
            f"The queue server {why} at {_place(url)}, which REDIS_URL names: start it or mend "
            "REDIS_URL, or unset it, and one is started here."
        ) from error


def _place(url: str) -> str:
    """Host and port of an address, or the path of a socket: never what stands before the @."""
    try:
        parts = urlsplit(url)
        if parts.scheme == "unix":
            return parts.path
        return f"{parts.hostname or 'no host'}:{parts.port or PORT}"
    except ValueError:
        return "an address that cannot be read"
