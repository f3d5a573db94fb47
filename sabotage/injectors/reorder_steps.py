"""``reorder_steps``: the run is led on under a program whose steps were swapped."""

import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from engine.runtime import api
from nanovm_core.core.canonical import digest
from nanovm_core.core.events import EffectDone
from nanovm_core.errors import ProgramError
from nanovm_core.loading import load_program
from sabotage.doors import tamper_db
from sabotage.doors.redeliver import deliver
from sabotage.kit.assessment import assess_events
from sabotage.kit.derived_keys import key_of
from sabotage.kit.evidence import Evidence, is_answered, is_driven
from sabotage.kit.injector import Assessment, Fired, InjectionError, Injector, Target, choice
from sabotage.kit.waiting import wait_until

NAME = "reorder_steps"
ACTOR = f"attacker:{NAME}"
FIRST = re.compile(r'(?m)^first\s*=\s*"[^"]*"')
NEXT = re.compile(r'(?m)^next\s*=\s*(?:"[^"]*"|\[.*\])')
# how the attack is made → the event by which the runtime answers it, and in whose name
ANSWERS = {
    "swap the stored program": ("ProgramRefused", "runtime"),
    "resume under a permuted program": ("ResumeRequested", ACTOR),
    "queue message of a permuted program": ("DeliveryReceived", "queue"),
    "results in the reverse order": ("EffectDone", ACTOR),
}
# the order that is asked for → the step that is put before the one it follows
ORDERS = {
    f"{later} before {earlier}": later
    for earlier, later in (
        ("authorize", "charge"),
        ("charge", "seal"),
        ("propose", "authorize"),
        ("vault", "propose"),
        ("extract", "vault"),
        ("receive", "extract"),
    )
}


def inject(target: Target) -> Fired:
    """Swap two steps of the run's own program, and offer the result in the chosen way."""
    how = str(target.values["how"])
    order = str(target.values["order"])
    own = bytes(target.run.program_source)
    source = permuted(own, ORDERS[order])
    facts = {
        "how": how,
        "order": order,
        "at_step": target.before.step,
        "expected": target.run.program_hash,
        "found": digest(b"nanovm/program/v1\0", source),
        "permuted_program": _fault(source),
        "proposed": _order(source),
        "granted": _order(own),
    }
    fired = WAYS[how](target, source, str(facts["found"]))
    return Fired(decisions=fired.decisions, facts={**facts, **fired.facts})


def assess(found: Evidence, fired: Fired) -> Assessment:
    """BLOCKED by the program's hash, IGNORED after the end."""
    event, actor = ANSWERS[str(fired.facts["how"])]
    queued = fired.facts.get("door") == "queue"
    judged = assess_events(found, fired, events={event}, actor=actor, queued=queued)
    current = digest(b"nanovm/program/v1\0", bytes(found.run.program_source))
    facts = {"goes_on_under_its_own": current == fired.facts["expected"]}
    return replace(judged, facts=facts)


def permuted(source: bytes, later: str) -> bytes:
    """The program with the step ``later`` put before the one that it follows.

    Raises:
        InjectionError: it has no such two steps, or was exchanged already.
    """
    text = source.decode("utf-8", "replace")
    try:
        after, first = _swapped(tomllib.loads(text), later)
    except (tomllib.TOMLDecodeError, KeyError, StopIteration) as error:
        raise InjectionError("The stored program does not have these two steps.") from error
    head, *blocks = text.split("[[steps]]")
    head = FIRST.sub(f'first = "{first}"', head)
    return "[[steps]]".join([head, *(_led(block, after) for block in blocks)]).encode()


def _swapped(program: Mapping[str, Any], later: str) -> tuple[dict[str, str], str]:
    """The new ``next`` of the steps that change it, and the first step: a → later → earlier → z."""
    steps = _following(program)
    earlier = next(name for name, to in steps.items() if to == later)
    before = [name for name, to in steps.items() if to == earlier]
    after = {later: earlier, earlier: steps[later], **dict.fromkeys(before, later)}
    return after, str(later if program["first"] == earlier else program["first"])


def _following(program: Mapping[str, Any]) -> dict[str, str]:
    """The step after each; where one branches, that of a run without advice, which is last."""
    found = {row["name"]: row["next"] for row in program["steps"]}
    return {name: to if isinstance(to, str) else to[-1]["to"] for name, to in found.items()}


def _order(source: bytes) -> list[str]:
    """The steps of a program in the order in which they follow one another."""
    program = tomllib.loads(source.decode())
    steps = _following(program)
    found: list[str] = []
    step = program["first"]
    while step in steps and step not in found:
        found.append(step)
        step = steps[step]
    return found


def _led(block: str, after: Mapping[str, str]) -> str:
    name = tomllib.loads("[[steps]]" + block)["steps"][0]["name"]
    return NEXT.sub(f'next = "{after[name]}"', block) if name in after else block


def _fault(source: bytes) -> str:
    """What the loader says of the permuted program."""
    try:
        load_program(source)
    except ProgramError as error:
        return f"{error.code}: {error.text}"
    return "it loads"


def _swap(target: Target, source: bytes, _found: str) -> Fired:
    tamper_db.change_terms(target.run, "program", source)
    wait_until(
        lambda: (
            is_answered(target.run, target.before, "ProgramRefused") or not is_driven(target.run_id)
        )
    )
    if not is_answered(target.run, target.before, "ProgramRefused"):
        api.check(target.run_id)
    return Fired()


def _resume(target: Target, _source: bytes, found: str) -> Fired:
    return Fired(decisions=(api.resume(target.run_id, target.actor, program=found),))


def _queue(target: Target, _source: bytes, found: str) -> Fired:
    door = deliver(target.run_id, found, 1)
    wait_until(lambda: is_answered(target.run, target.before, "DeliveryReceived"))
    return Fired(facts={"door": door})


def _reversed(target: Target, _source: bytes, _found: str) -> Fired:
    """Bring the result of every step, the last one first."""
    decisions = []
    for name in reversed(_order(bytes(target.run.program_source))):
        event = EffectDone(key=key_of(target.run_id, name))
        decisions.append(api.submit(target.run_id, [event], actor=ACTOR))
    return Fired(decisions=tuple(decisions), facts={"results_brought": len(decisions)})


WAYS: Mapping[str, Callable[[Target, bytes, str], Fired]] = {
    "swap the stored program": _swap,
    "resume under a permuted program": _resume,
    "queue message of a permuted program": _queue,
    "results in the reverse order": _reversed,
}

INJECTOR = Injector(
    name=NAME,
    claim="A run continues only with the program it started with.",
    wants="Make the payment before it is authorized.",
    stopped_by="The program's hash, recorded when the run starts and checked in every message.",
    params=(choice("how", "How", tuple(WAYS)), choice("order", "Order", tuple(ORDERS))),
    inject=inject,
    assess=assess,
)
