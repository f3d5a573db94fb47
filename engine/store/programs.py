"""Programs and policies: the files we ship, and the copies that runs carry."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

from engine.application import Application, installed, main
from engine.models import Run
from nanovm_core.core.authority.policy import Policy
from nanovm_core.core.program import Program
from nanovm_core.delegation import narrowed
from nanovm_core.errors import ProgramError, RefusedError, VerificationError
from nanovm_core.loading import load_policy, load_program

ASK = "agent.ask"  # the tool by which an agent that others wrote is asked for its call
OWN_MAX = 64  # programs that are found by comparing
_OWN: dict[tuple[str, str], tuple[bytes, bytes, Program]] = {}
_SHAPES: dict[str, Program] = {}  # by hash, what runs are shown by


def program_at(file: Path, policy: Path | None = None) -> Program:
    """The program in a file, under the policy it names (a path beside it), or under this one.

    A program that names none is judged by its own rules alone.

    Raises:
        ProgramError: PRG-… where program or policy is at fault; OSError where one is not there.
    """
    program = load_program(file.read_bytes())
    if policy is None and program.policy_file:
        policy = file.parent / program.policy_file
    return program if policy is None else program.under(load_policy(policy.read_bytes()))


@lru_cache(maxsize=64)
def compiled(source: bytes) -> Program:
    """The compiled program of these bytes."""
    return load_program(source)


@lru_cache(maxsize=64)
def compiled_policy(source: bytes) -> Policy:
    """The compiled policy of these bytes."""
    return load_policy(source)


@lru_cache(maxsize=64)
def ruled(source: bytes, policy: bytes) -> Program:
    """The compiled program under the compiled policy."""
    return compiled(source).under(compiled_policy(policy))


def current(application: Application) -> Program:
    """An application's program under the policy in force: what its new runs begin under."""
    return ruled(application.source(), application.policy_source())


def found_hash(run: Run) -> str:
    """The hash of the program beside the run now; empty where it is no program."""
    is_own = _copy_of(run) is not None
    return run.program_hash if is_own else _hash_of(compiled, run.program_source)


def found_policy(run: Run) -> str:
    """The hash of the policy beside the run now; empty where it is no policy."""
    return _hash_of(compiled_policy, run.policy_source)


def _hash_of(load: Callable[[bytes], Program | Policy], source: bytes) -> str:
    try:
        return load(source).hash
    except ProgramError:
        return ""


def program_of(run: Run) -> Program:
    """The program of a run, under its policy: by the hashes the run began with, or not at all.

    Where the stored copy is another program, an application's serves if it has the right hash;
    ``found_hash`` tells the caller that the copy was exchanged.

    Raises:
        VerificationError: PRG-011, where nothing has the hash the genesis names, or what lies
            beside the run as its narrower grants is none.
    """
    found = _copy_of(run) or _searched(run)
    return _narrowed(found, run) if run.narrowed_grants else found


def _copy_of(run: Run) -> Program | None:
    """The program of the copies beside a run, where its hashes stand for them.

    They are compared with those that were compiled under these hashes, and not hashed each time.
    """
    source, policy = run.program_source, run.policy_source
    named = (run.program_hash, run.policy_hash)
    before = _OWN.get(named)
    if before is not None and before[:2] == (source, policy):
        return before[2]
    known = _compiled(source, policy)
    if known is None or (known.hash, known.policy.hash) != named:
        return None
    if len(_OWN) < OWN_MAX:
        _OWN[named] = (source, policy, known)
    return known


def _narrowed(program: Program, run: Run) -> Program:
    """The program with the narrower grants that its run began under."""
    try:
        return program.attenuated(narrowed.decoded(run.narrowed_grants))
    except RefusedError as error:
        raise VerificationError("PRG-011", error.text, at=0) from error


@lru_cache(maxsize=64)
def _compiled(source: bytes, policy: bytes) -> Program | None:
    """The program of the copies beside a run; None where one of them is none."""
    try:
        return ruled(source, policy)
    except ProgramError:
        return None


def _searched(run: Run) -> Program:
    """The run's program, where a copy beside it was exchanged."""
    right = (each for each in _policies(run) if _hash_of(compiled_policy, each) == run.policy_hash)
    policy = next(right, None)
    if policy is None:
        raise _missing("policy", run.policy_hash)
    for source in (run.program_source, *(each.source() for each in installed())):
        known = _compiled(source, policy)
        if known is not None and known.hash == run.program_hash:
            return known
    raise _missing("program", run.program_hash, found_hash(run))


def _missing(what: str, expected: str, found: str = "") -> VerificationError:
    text = f"The run's {what} is missing: no copy has the hash that its genesis names."
    return VerificationError("PRG-011", text, at=0, expected=expected, found=found)


def _policies(run: Run) -> Iterator[bytes]:
    """The copy beside the run, and what applications have."""
    yield run.policy_source
    for application in installed():
        for name in application.policy_files:
            with suppress(ProgramError):  # a file that cannot be read is no copy of it
                yield application.policy_source(name)


def source_of(run: Run) -> bytes | None:
    """The true source of a run's program among the applications'; None where it is of none."""
    sources = (each.source() for each in installed())
    return next((each for each in sources if compiled(each).hash == run.program_hash), None)


def is_gate(program: Program) -> bool:
    """Whether each run of a program is one call of an agent that others wrote."""
    return program.steps[program.first].tool == ASK


def shape_of(run: Run) -> Program:
    """The program that a run is shown by: its own, or the first application's where it is lost."""
    if run.program_hash not in _SHAPES:
        try:
            own = program_of(run)
        except VerificationError:
            return current(main())
        if len(_SHAPES) >= OWN_MAX:
            _SHAPES.clear()
        _SHAPES[run.program_hash] = own
    return _SHAPES[run.program_hash]
