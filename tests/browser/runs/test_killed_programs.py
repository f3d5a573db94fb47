"""Every program of the running application is killed: all start again, and a run goes on."""

import json
from functools import partial

import redis
from django.conf import settings

from engine.runtime.queue import QUEUE
from nanovm_core.core.lifecycle import COMPLETED
from pipeline.steps.charge import gateway
from sabotage.kit.waiting import wait_until
from tests.browser import far_side
from tests.house.demo import Demo, launch, processes_of
from tests.house.processes.test_demo import (
    HEALTHY_MS_MAX,
    PROGRAMS,
    begun,
    health,
    healthy,
    kill,
    outcome,
    refused,
)


def test_all_are_killed_and_started_again_and_a_run_goes_on(app: Demo) -> None:
    assert wait_until(partial(healthy, app), HEALTHY_MS_MAX)
    assert any("local Stripe counterpart" in line for line in app.said)
    commands = [command for _, command in processes_of(app.data)]
    assert [part for part in PROGRAMS if not any(part in each for each in commands)] == []
    assert "Another demo runs on the data folder" in refused(launch(app.data))
    env, once_each = app.env, dict.fromkeys(PROGRAMS.values(), 1)
    with begun(app, pace_ms=1_000) as (run, code):
        kill(app, *PROGRAMS)
        assert wait_until(partial(healthy, app, **once_each), HEALTHY_MS_MAX)
        assert app.env == env  # the same addresses and passwords
        dropped = health(app)["dropped"]
        with redis.Redis.from_url(env["REDIS_URL"]) as queue:
            queue.rpush(QUEUE, b"\xff", json.dumps({"body": 7}))
        assert outcome(run) == COMPLETED
    assert health(app)["dropped"] == dropped + 2
    assert far_side.payments(app, code) == [(128450, "eur", "succeeded")]
    unknown = health(app)["webhooks"]["unknown"]
    far = gateway.client(settings.STRIPE["key"], env["STRIPE_API_BASE"], 20)
    made = far.v1.payment_intents.create({"amount": 100, "currency": "eur"})  # of no run
    far.v1.payment_intents.cancel(made.id)
    assert wait_until(lambda: health(app)["webhooks"]["unknown"] > unknown, 30_000), health(app)
