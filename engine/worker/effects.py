"""Doing an effect by the application's adapters, and asking what became of one."""

from engine.application import of_program
from engine.clock import now_ms
from engine.errors import FailedForNowError, HaltedError, OutcomeUnknownError, PermanentError
from engine.runtime import agents
from engine.runtime import warrants as authority
from engine.runtime.agent_moves import HALTED
from engine.runtime.decide import BegunEffect
from engine.work import Answer, Work, failed
from nanovm_core.core import warrants
from nanovm_core.errors import RefusedError


def work_of(begun: BegunEffect) -> Work:
    """What the adapter of an effect gets that was begun in a commit."""
    return Work(
        run=begun.run,
        program=begun.program,
        slots=begun.slots,
        effect=begun.effect,
        begun_before=begun.before,
        agent=begun.program.acting(begun.effect.tool, begun.snapshot.agent),
        token=begun.token,
    )


def perform(work: Work) -> Answer:
    """Do one effect; a known failure is an answer, not an exception.

    A granted tool is used only under a warrant that covers exactly this call.

    Raises:
        TransientError, OutcomeUnknownError: from an adapter; the effect stays owed.
        HaltedError: its agent was suspended or stopped meanwhile; the effect stays owed.
    """
    application = of_program(work.program.name)
    try:
        if work.effect.tool in work.program.grants:
            check_warrant(work)
        return application.adapters()[work.effect.tool](work)
    except (FailedForNowError, PermanentError) as error:
        return failed(work, error.code, error.text, retry=isinstance(error, FailedForNowError))
    except RefusedError as error:
        if error.code == HALTED:
            raise HaltedError(error.code, error.text) from error
        # Another attempt would have another key, and might pay twice.
        text = f"{error.text} Approve it to authorize the same call again, under the same key."
        raise OutcomeUnknownError(error.code, text) from error


def ask(work: Work, *, is_late: bool) -> Answer | None:
    """Ask the far side what became of an effect that is under way; None where nobody can be asked.

    Nothing is done there, so it needs no warrant; ``is_late``: an effect that is still under way
    is taken back.

    Raises:
        TransientError, OutcomeUnknownError: from an adapter; the effect stays under way.
    """
    asked = of_program(work.program.name).questions().get(work.effect.tool)
    return asked(work, is_late=is_late) if asked else None


def check_warrant(work: Work) -> None:
    """Hold the adapter of a granted tool to the decision: its warrant covers exactly this call.

    Raises:
        RefusedError: CAP-020 and following, where signature, call or time differ, or the grant
            was revoked since; CAP-040, where the agent begins nothing by the log's ledger now.
    """
    bound = warrants.binding(str(work.run.id), work.program.hash, work.effect)
    key, revoked = authority.public_key(), authority.revoked(work.run.workspace, work.program)
    warrants.check(work.token, bound, key, at_ms=now_ms(), revoked=revoked)
    agents.require_running(work.run.workspace_id, work.agent)
