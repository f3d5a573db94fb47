"""The message that has a worker look at Stripe: an event arrived that is about a run."""

from engine.runtime import queue

LOOK = "pipeline.worker.tasks.look"  # as messages that wait in a queue name the task


def tell(run_id: str) -> None:
    """Queue a message that makes a worker read Stripe's record of a run's payment.

    It is no delivery to the run: the run is told nothing. The sweep makes its loss good.
    """
    queue.send(LOOK, [str(run_id)])
