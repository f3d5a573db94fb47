"""Fires an attack of the gallery at fresh runs of its own."""

from collections.abc import Mapping

from engine.models import Workspace
from pipeline.register import sample_register
from sabotage.fire import fire
from sabotage.gallery import SCENARIOS
from sabotage.kit.injector import InjectionError
from sabotage.models import Attack


def fire_scenario(
    owner: Workspace, name: str, params: Mapping[str, str], idempotency_key: str
) -> Attack:
    """Fire a gallery attack at a fresh run of its own, and keep it in the owner's workspace.

    An scenario that must be alone gets a workspace of its own for its runs. The same key
    returns the same attack and makes nothing.

    Raises:
        InjectionError: the attack cannot be made so; the fresh run stays as it is.
    """
    scenario = SCENARIOS.get(name)
    if scenario is None:
        raise InjectionError(f"The gallery has no {name!r}; it has {', '.join(SCENARIOS)}.")
    values = scenario.injector.read(params)
    known = Attack.objects.filter(workspace=owner, idempotency_key=idempotency_key).first()
    if idempotency_key and known is not None:
        return fire(str(known.run_id), name, params, idempotency_key, owner.id)
    run = scenario.make_run(sample_register.new_workspace() if scenario.alone else owner, values)
    return fire(str(run.id), name, params, idempotency_key, owner.id)
