"""The plays behind the golden histories of the deployment gate; ``write_histories`` writes them."""

from collections.abc import Callable
from typing import NamedTuple

from nanovm_core.core.capabilities import grant_id
from nanovm_core.core.events import EffectDone, ResumeRequested, RunStarted
from nanovm_core.core.messages import Recorded
from tests.core.kit.deployment import DEPLOY, OPEN, Deployment, deploy, rollback

Edit = tuple[str, str]
HOUR_MS = 3_600_000
CAREFUL, BOLD = "gate_careful.toml", "gate_bold.toml"


class Script(NamedTuple):
    """A play: on which program, under which policy, and whether its last event is refused."""

    play: Callable[[Deployment], None]
    edits: tuple[Edit, ...] = ()
    policy: str = ""
    risk: int = 1
    frozen: bool = False
    refused: str = ""


def deployed(run: Deployment) -> None:
    """The happy way: a change without risk is rolled out."""
    run.to_end()


def verified(run: Deployment) -> None:
    """A risky change: it waits for its window, is rolled out, and is probed."""
    run.to_verify()
    run.done({"healthy": True})


def tests_failed(run: Deployment) -> None:
    """The first branch: what does not pass its tests is told, not rolled out."""
    run.to_build()
    run.built(tests_failed=3)
    run.done()


def guard_errs(run: Deployment) -> None:
    """The build does not say how many tests failed: the guard errs, and the run fails."""
    run.to_build()
    run.done({"artifact": "v2"})


def restored(run: Deployment) -> None:
    """An error path: the rollout fails twice, and the program takes it back by itself."""
    run.to_deploy()
    run.failed("K8S-500", retry=True)
    run.passes(2_000)
    run.failed("K8S-500", retry=True)
    run.done()
    run.done()


def taken_back(run: Deployment) -> None:
    """A second model step: what does not keep well is taken back, by its own judged call."""
    run.to_remedy()
    run.say(deploy(), tokens=100)
    run.say(rollback(), tokens=100)
    run.done()
    run.done()


def window_missed(run: Deployment) -> None:
    """A wait times out: early ticks change nothing, the late one takes its error path."""
    run.to_window()
    run.passes(1)
    run.passes(1_799_998)
    run.passes(1)
    run.done()


def built_at_the_third_attempt(run: Deployment) -> None:
    """Known failures wait longer each time, in idle; ticks before the time change nothing."""
    run.to_build()
    run.failed("CI-001", retry=True)
    run.passes(499)
    run.passes(200)
    run.failed("CI-001", retry=True)
    run.passes(500)
    run.passes(900)
    run.built()


def never_built(run: Deployment) -> None:
    """Nobody answers: four attempts, each after its pause, and then the error path."""
    run.to_build()
    for _ in range(4):
        run.passes(60_000)
        run.passes(2_000)
    run.done()


def answered_once(run: Deployment) -> None:
    """An answer from elsewhere: for another run, program, key it is refused; it works once."""
    run.to_deploy()
    run.under_way()
    key, out = run.now.awaits, {"release": "r-1"}
    run.arrives(out, run="01990000-0000-7000-8000-00000000dead")
    run.arrives(out, program="0" * 64)
    run.arrives(out, key="0" * 64)
    run.done(out)
    run.arrives(out)
    run.arrives(out, key=key)


def answered_in_a_pause(run: Deployment) -> None:
    """An answer is taken in a pause and begins nothing; what comes next begins after it."""
    run.to_window()
    run.pause()
    run.arrives({"opened_by": "ops"})
    run.resume()
    run.say(deploy(), tokens=900)


def timed_out_and_asked_again(run: Deployment) -> None:
    """Nobody knows what became of a granted call: a person has it asked again, by its key."""
    run.to_deploy()
    run.under_way(run.at_ms + 30_000)
    run.passes(30_000)
    run.approve(by_ms=HOUR_MS // 2)
    run.done({"release": "r-1"})


def timed_out_and_given_up(run: Deployment) -> None:
    """Nobody knows what became of a granted call, and a person gives up: it stays counted."""
    run.to_deploy()
    run.passes(120_000)
    run.decline()


# --- limits ----------------------------------------------------------------------------------


def steps_exhausted(run: Deployment) -> None:
    """The run's own steps are used up: it waits, and nothing but a stop helps it."""
    run.to_plan()
    run.say(deploy())
    run.resume()
    run.kill()


def calls_exhausted(run: Deployment) -> None:
    """The run's own calls are used up."""
    run.to_remedy()
    run.say(rollback(), tokens=10)
    run.resume()


def tokens_exhausted(run: Deployment) -> None:
    """The model's refused answers cost tokens too, until there are none left to ask with."""
    run.to_plan()
    run.say(b"As a language model", tokens=8_000)
    run.say(deploy(), tokens=8_000)
    run.done({"release": "r-1"})
    run.done({"healthy": False})


def clock_over(run: Deployment) -> None:
    """The run's time is over; a pause before did not count."""
    run.to_build()
    run.pause()
    run.resume(by_ms=10**9)
    run.tick(7_200_000 - 20)
    run.built()


def shared_calls_exhausted(run: Deployment) -> None:
    """The agent has no calls left: the run waits until it has."""
    run.to_plan()
    run.ledger = {**OPEN, "agent/calls": 0}
    run.say(deploy())
    run.resume()
    run.ledger = {**OPEN, "agent/calls": 1}
    run.resume()
    run.done({"release": "r-1"})


# --- authority -------------------------------------------------------------------------------


def _taken_away(run: Deployment) -> frozenset[str]:
    return frozenset({grant_id(run.program.grants[DEPLOY])})


def revoked_in_a_pause(run: Deployment) -> None:
    """A grant that is taken back in a pause: what is owed is not handed out again."""
    run.to_deploy()
    run.pause()
    run.revoked = _taken_away(run)
    run.resume()


def expired_in_a_pause(run: Deployment) -> None:
    """A grant that runs out in a pause: what is owed is not handed out again."""
    run.to_deploy()
    run.pause()
    run.resume(by_ms=HOUR_MS)


def revoked_before_the_proposal(run: Deployment) -> None:
    """A grant that is taken back before the model answers: both answers are refused."""
    run.to_plan()
    run.revoked = _taken_away(run)
    run.say(deploy())
    run.say(deploy())
    run.done()


def revoked_before_the_retry(run: Deployment) -> None:
    """A grant that is taken back between two attempts: there is no second one."""
    run.to_deploy()
    run.failed("K8S-500", retry=True)
    run.revoked = _taken_away(run)
    run.passes(2_000)
    run.done()
    run.done()


def soft_rule_holds(run: Deployment) -> None:
    """A soft rule of the program holds many replicas until somebody approves."""
    run.to_deploy(deploy(replicas=11))
    run.approve()
    run.done({"release": "r-1"})


def soft_rule_lifted(run: Deployment) -> None:
    """A policy that lifts the soft rule: nobody is asked."""
    run.to_deploy(deploy(replicas=11))
    run.done({"release": "r-1"})


def hard_rule_stands(run: Deployment) -> None:
    """No policy and no person lifts a hard rule: a freeze is a freeze."""
    run.to_plan()
    run.approve()


def operator_denies(run: Deployment) -> None:
    """A rule of the operator's own denies what the program would have asked somebody about."""
    run.to_plan()
    run.say(deploy(replicas=16))


def flapping(run: Deployment) -> None:
    """More than five calls in a minute and the last three failed: suspended, then approved."""
    run.to_plan()
    ends = ("done", "done", "failed", "failed", "failed")
    called = [Recorded(run.at_ms - 500 + n, DEPLOY, "called", "shipper") for n in range(6)]
    ended = [Recorded(run.at_ms - 400 + n, DEPLOY, end, "shipper") for n, end in enumerate(ends)]
    run.history = (*called, *ended)
    run.say(deploy())
    run.approve()
    run.done({"release": "r-1"})


# --- the last event must be refused ----------------------------------------------------------


def not_accepted_here(run: Deployment) -> None:
    """A granted tool, allowed by every rule, that this step does not accept."""
    run.to_plan()
    run.say(rollback())


def out_of_turn(run: Deployment) -> None:
    """A good proposal that nobody asked for."""
    run.to_deploy()
    run.say(deploy(), key="0" * 64)


def other_program(run: Deployment) -> None:
    """A resumption under another program than the run began under."""
    run.to_deploy()
    run.pause()
    run.feed(ResumeRequested(program="0" * 64))


def started_twice(run: Deployment) -> None:
    """A run begins once."""
    run.to_build()
    run.feed(RunStarted())


def foreign_slot(run: Deployment) -> None:
    """A result that fills a slot of another step."""
    run.to_build()
    run.done({"artifact": "v2", "tests_failed": 0, "opened_by": "nobody"})


def old_key(run: Deployment) -> None:
    """The result of the first attempt, while the second is owed."""
    run.to_build()
    key = run.key
    run.failed("CI-001", retry=True)
    run.passes(2_000)
    run.feed(EffectDone(key=key, out={"artifact": "v1", "tests_failed": 0}), at_ms=run.tick())


SCRIPTS: dict[str, Script] = {
    script.play.__name__: script
    for script in (
        Script(deployed),
        Script(verified, risk=7),
        Script(tests_failed),
        Script(guard_errs),
        Script(restored),
        Script(taken_back, risk=7),
        Script(window_missed, risk=9),
        Script(built_at_the_third_attempt),
        Script(never_built),
        Script(answered_in_a_pause, risk=7),
        Script(timed_out_and_asked_again),
        Script(timed_out_and_given_up),
        Script(steps_exhausted, (("steps_max = 20", "steps_max = 2"),)),
        Script(calls_exhausted, (("calls_max = 4", "calls_max = 1"),), risk=7),
        Script(tokens_exhausted, risk=7),
        Script(clock_over),
        Script(shared_calls_exhausted),
        Script(revoked_before_the_proposal),
        Script(revoked_before_the_retry),
        Script(soft_rule_holds),
        Script(soft_rule_lifted, policy=BOLD),
        Script(flapping, policy=CAREFUL),
        Script(answered_once, risk=7, refused="FSM-015"),
        Script(revoked_in_a_pause, refused="CAP-008"),
        Script(expired_in_a_pause, refused="CAP-007"),
        Script(hard_rule_stands, policy=BOLD, frozen=True, refused="POL-021"),
        Script(operator_denies, policy=CAREFUL, refused="POL-003"),
        Script(not_accepted_here, refused="CAP-002"),
        Script(out_of_turn, refused="FSM-004"),
        Script(other_program, refused="PRG-010"),
        Script(started_twice, refused="FSM-002"),
        Script(foreign_slot, refused="FSM-007"),
        Script(old_key, refused="FSM-001"),
    )
}
