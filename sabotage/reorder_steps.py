"""``reorder_steps``: the run is led on under a program whose steps were swapped."""

import re
import tomllib
from collections.abc import Callable, Mapping

from nanovm_core.canonical import digest
from nanovm_core.errors import ProgramError
from nanovm_core.loading import load_program
from pipeline import runtime
from pipeline.models import Run
from sabotage import raw
from sabotage.deliveries import delivering
from sabotage.evidence import Found, is_driven, sealed_since, see
from sabotage.judging import answer
from sabotage.shape import Fired, InjectionError, Injector, Judgement, Param, Target
from sabotage.waiting import wait_until

NAME = "reorder_steps"
ACTOR = f"attacker:{NAME}"
NEXT = re.compile(r'(?m)^next\s*=\s*"[^"]*"')
# how the attack is made → the event by which the runtime answers it, and in whose name
ANSWERS = {
    "swap the stored program": ("ProgramRefused", "runtime"),
    "resume under a permuted program": ("ResumeRequested", ACTOR),
    "queue message of a permuted program": ("DeliveryReceived", "queue"),
}


def inject(target: Target) -> Fired:
    """Swap two steps of the run's own program, and offer the result in the chosen way."""
    how = str(target.values["how"])
    source = permuted(bytes(target.run.program_source))
    facts = {
        "how": how,
        "expected": target.run.program_hash,
        "found": digest(b"nanovm/program/v1\0", source),
        "permuted_program": _fault(source),
    }
    fired = WAYS[how](target, source, str(facts["found"]))
    return Fired(decisions=fired.decisions, facts={**facts, **fired.facts})


def judge(found: Found, fired: Fired) -> Judgement:
    """BLOCKED by the program's hash, IGNORED after the end."""
    event, actor = ANSWERS[str(fired.facts["how"])]
    queued = fired.facts.get("door") == "queue"
    judged = answer(found, fired, events={event}, actor=actor, queued=queued)
    current = digest(b"nanovm/program/v1\0", bytes(found.run.program_source))
    facts = {"goes_on_under_its_own": current == fired.facts["expected"]}
    return Judgement(
        verdict=judged.verdict,
        rule=judged.rule,
        where=judged.where,
        event=judged.event,
        facts=facts,
    )


def permuted(source: bytes) -> bytes:
    """The program with the step that pays put before the step that authorizes it.

    Raises:
        InjectionError: it has no such two steps, or was exchanged already.
    """
    text = source.decode("utf-8", "replace")
    try:
        after = _swapped({row["name"]: row for row in tomllib.loads(text)["steps"]})
    except (tomllib.TOMLDecodeError, KeyError, StopIteration) as error:
        raise InjectionError("The stored program has no two steps to swap.") from error
    head, *blocks = text.split("[[steps]]")
    return "[[steps]]".join([head, *(_led(block, after) for block in blocks)]).encode()


def _swapped(steps: Mapping[str, Mapping[str, str]]) -> dict[str, str]:
    """The new ``next`` of the steps that change it: a → pay → authorize → z."""
    authorize = next(row["name"] for row in steps.values() if row["kind"] == "pure")
    pay = steps[authorize]["next"]
    before = next(row["name"] for row in steps.values() if row["next"] == authorize)
    return {before: pay, pay: authorize, authorize: steps[pay]["next"]}


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
    raw.change_run(target.run, "program_source", source)
    wait_until(lambda: _answered(target, "ProgramRefused") or not is_driven(target.run_id))
    if not _answered(target, "ProgramRefused"):
        runtime.check(target.run_id)
    return Fired()


def _resume(target: Target, _source: bytes, found: str) -> Fired:
    return Fired(decisions=(runtime.resume(target.run_id, target.actor, program=found),))


def _queue(target: Target, _source: bytes, found: str) -> Fired:
    with delivering(target.run_id, found, 1) as door:
        pass
    wait_until(lambda: _answered(target, "DeliveryReceived"))
    return Fired(facts={"door": door})


def _answered(target: Target, event: str) -> bool:
    run = Run.objects.get(id=target.run.id)
    sealed = any(each.event == event for each in sealed_since(run, target.before.length))
    before, after = target.before.absorbed, see(target.run_id).absorbed
    return sealed or after.get(event, 0) > before.get(event, 0)


WAYS: Mapping[str, Callable[[Target, bytes, str], Fired]] = {
    "swap the stored program": _swap,
    "resume under a permuted program": _resume,
    "queue message of a permuted program": _queue,
}

INJECTOR = Injector(
    name=NAME,
    claim="A run continues under the program of its genesis, or not at all.",
    wants="Have the payment made before it is authorized.",
    stopped_by="The program's hash, which the genesis names and every message must bear.",
    params=(
        Param(
            name="how",
            label="How",
            kind="choice",
            default="swap the stored program",
            choices=tuple(WAYS),
        ),
    ),
    inject=inject,
    judge=judge,
)
