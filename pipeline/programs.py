"""Programs and policies: the files we ship, and the copies that runs carry."""

from functools import lru_cache
from pathlib import Path

from nanovm_core.errors import ProgramError, VerificationError
from nanovm_core.policy import Policy, load_policy
from nanovm_core.program import Program, load_program
from pipeline.models import Run

FOLDER = Path(__file__).parent
PROGRAM_FILE = FOLDER / "invoice_payment.toml"
POLICIES = ("default", "no_limits")


def shipped_program() -> bytes:
    """The source of the program that new runs begin under."""
    return PROGRAM_FILE.read_bytes()


def shipped_policy(name: str) -> bytes:
    """The source of a policy by name; only the shipped names exist."""
    if name not in POLICIES:
        raise ProgramError("PRG-003", f"there is no policy {name!r}; there are {POLICIES}")
    return (FOLDER / "policies" / f"{name}.toml").read_bytes()


@lru_cache(maxsize=64)
def compiled(source: bytes) -> Program:
    """The compiled program of these bytes."""
    return load_program(source)


@lru_cache(maxsize=64)
def compiled_policy(source: bytes) -> Policy:
    """The compiled policy of these bytes."""
    return load_policy(source)


def current() -> Program:
    """The shipped program under the default policy: what new runs begin under."""
    policy = compiled_policy(shipped_policy("default"))
    return compiled(shipped_program()).under(policy)


def found_hash(run: Run) -> str:
    """The hash of the program that lies beside the run now; empty where it is no program."""
    try:
        return compiled(bytes(run.program_source)).hash
    except ProgramError:
        return ""


def found_policy(run: Run) -> str:
    """The hash of the policy that lies beside the run now; empty where it is no policy."""
    try:
        return compiled_policy(bytes(run.policy_source)).hash
    except ProgramError:
        return ""


def program_of(run: Run) -> Program:
    """The program of a run, under its policy: by the hashes the run began with, or not at all.

    Where the stored copy is another program, the shipped one serves if it has the right hash;
    ``found_hash`` tells the caller that the copy was exchanged.

    Raises:
        VerificationError: PRG-011, where nothing has the hash the genesis names.
    """
    policy = _policy_of(run)
    for source in (bytes(run.program_source), shipped_program()):
        try:
            program = compiled(source)
        except ProgramError:
            continue
        if program.hash == run.program_hash:
            return program.under(policy)
    raise VerificationError(
        "PRG-011",
        "The run's program is gone: no copy has the hash of its genesis.",
        at=0,
        expected=run.program_hash,
        found=found_hash(run),
    )


def _policy_of(run: Run) -> Policy:
    sources = [bytes(run.policy_source), *(shipped_policy(name) for name in POLICIES)]
    for source in sources:
        try:
            policy = compiled_policy(source)
        except ProgramError:
            continue
        if policy.hash == run.policy_hash:
            return policy
    raise VerificationError(
        "PRG-011",
        "The run's policy is gone: no copy has the hash of its genesis.",
        at=0,
        expected=run.policy_hash,
    )
