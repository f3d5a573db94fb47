"""What an approval is bound to, as it is now: policy, program, and what the application adds."""

from collections.abc import Mapping

from engine.application import DEFAULT, Application, of_program
from engine.models import Run
from engine.store import programs
from nanovm_core.core.messages import Snapshot
from nanovm_core.errors import ProgramError

UNREADABLE = ""  # what nobody can agree to


def terms_of(run: Run, now: Snapshot) -> Mapping[str, str]:
    """A hash or version by name, UNREADABLE for what cannot be read.

    Raises:
        VerificationError: PRG-011, the run's own program is lost.
        NotSentError: RUN-003, its application is not installed here.
    """
    program = programs.program_of(run)
    application = of_program(program.name)
    return {
        "policy": _policy_in_force(application, program.policy.name),
        "program": _program_in_force(application),
        **application.terms(run, now),
    }


def written(terms: Mapping[str, str]) -> str:
    """Terms as a form carries them."""
    return " ".join(f"{name}={value}" for name, value in sorted(terms.items()))


def read(text: str) -> Mapping[str, str]:
    """Terms as ``written`` gave them; anything else agrees with nothing."""
    pairs = [each.partition("=") for each in text.split()]
    return {name: value for name, _, value in pairs}


def _policy_in_force(application: Application, name: str) -> str:
    """The policy of this name, as it is on disk; the default one where none has it any more."""
    try:
        found = {
            key: programs.compiled_policy(application.policy_source(key))
            for key in application.policy_files
        }
    except ProgramError:
        return UNREADABLE
    named = (each for each in found.values() if each.name == name)
    return next(named, found[DEFAULT]).hash


def _program_in_force(application: Application) -> str:
    try:
        return programs.compiled(application.source()).hash
    except (OSError, ProgramError):
        return UNREADABLE
