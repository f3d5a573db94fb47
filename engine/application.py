"""The port: what an application gives the engine, and the applications that are installed.

The engine runs any program and keeps the evidence of it. What a program's tools do, which tables
are its own, what of it is personal: its ``Application`` says so. A run names its own by the name of
its program, which its genesis seals.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias
from uuid import UUID

from django.db.models import Model, OuterRef, QuerySet

from engine.damage import Damage
from engine.errors import NotSentError
from engine.models import Run, Workspace
from engine.store import state_file
from engine.work import Answer, Work
from nanovm_core.core.envelope import Stored
from nanovm_core.core.messages import NOTHING, Snapshot
from nanovm_core.core.program import Program
from nanovm_core.errors import ProgramError

Adapter: TypeAlias = Callable[[Work], Answer]
# Currency and minor units that a call paid, by the ``in`` of its intent and the ``out`` of its
# result, in which anything may be missing; None: nothing.
Paid: TypeAlias = Callable[[Mapping[str, Any], Mapping[str, Any]], tuple[str, int] | None]
DEFAULT = "default"  # the policy of runs for which nobody names one


class ErasableRows(NamedTuple):
    """Personal data that is in no run: whose rows a workspace has, and how one is erased."""

    rows: Callable[[UUID | OuterRef], QuerySet[Any]]
    erase: Callable[[Any, str, str], Any]  # row, reason, actor: the Certificate


class Application:
    """A program with its policies, adapters and tables. Subclass it, and ``install`` one.

    What is not overridden is nothing: no tables, nothing personal beside what the vault holds.
    """

    name: str  # of its program
    program_file: Path
    policy_files: Mapping[str, Path]  # by name, DEFAULT among them
    paying: Mapping[str, Paid] = {}  # by tool
    slow_tools: frozenset[str] = frozenset()  # of few slots, each for seconds of a core
    tables: Mapping[type[Model], tuple[str, ...]] = {}  # with the columns that rows are found by
    key_owners: Mapping[str, type[Model]] = {}  # by what begins a subject's name in the key store
    erasable: Sequence[ErasableRows] = ()
    labels: Mapping[str, str] = {}  # of slots, as people read them
    codes: Collection[str] = ()  # of its rules and reasons: spans and figures name no other text
    why_kept: Mapping[str, str] = {}  # what erasures keep, as certificates say it, and why

    def source(self) -> bytes:
        """The source of the program that new runs begin under."""
        return self.program_file.read_bytes()

    def policy_file(self, name: str) -> Path:
        """Where a policy is; an operator may have put another in its place."""
        return self.policy_files[name]

    def policy_source(self, name: str = DEFAULT) -> bytes:
        """The source of a policy by name, as it is on disk now: new runs need no restart.

        Raises:
            ProgramError: PRG-003 where there is no such policy, or its file cannot be read.
        """
        if name not in self.policy_files:
            names = (*self.policy_files,)
            raise ProgramError("PRG-003", f"there is no policy {name!r}; there are {names}")
        file = self.policy_file(name)
        try:
            return state_file.read_plain(file)
        except OSError as error:
            raise ProgramError(
                "PRG-003", f"the policy file {file} cannot be read: {error.strerror}"
            ) from error

    # --- what its tools do -------------------------------------------------------------------

    def adapters(self) -> Mapping[str, Adapter]:
        """What does the effects of each tool."""
        raise NotImplementedError(f"{self.name} has no adapters")

    def questions(self) -> Mapping[str, Callable[..., Answer]]:
        """By tool, what asks the far side for an effect that it answered is under way.

        It is called with the work, and ``is_late``: what is still under way is taken back then.
        """
        return {}

    def outside(self, program: Program, tool: str) -> bool:
        """Whether whoever asked makes the calls of a tool, under a warrant, and no process here.

        ``program``: a run's own, which may be of an earlier release.
        """
        return False

    def terms(self, run: Run, now: Snapshot) -> Mapping[str, str]:
        """What an approval of the run is bound to besides policy and program, by name.

        Each a hash or version as it is now, without a personal value; empty for what cannot be
        read, which nobody can approve. It is read under the log's lock.
        """
        return NOTHING

    def worker_started(self) -> None:
        """Prepare the process of a worker that uses its slow tools; of each, where it has none."""

    def recorded(self, run: Run, before: Snapshot | None, now: Snapshot) -> None:
        """Keep its rows of a run equal to the value that a commit stores, in that commit.

        It is called for every run, of its own program or of another, under the log's lock.
        ``before``: the value of the commit before; None for a new run.
        """

    def upgraded(self) -> None:
        """Fill tables that an older release had not, in the transaction of the upgrade."""

    def sweep(self) -> None:
        """Look every two seconds for work that no message announced."""

    def tidy(self) -> None:
        """Delete old data once an hour."""

    # --- what it discloses and what is erased -------------------------------------------------

    def amount(self, values: Mapping[str, Any]) -> str:
        """The amount of money in the values of an envelope, as people write it; else empty."""
        return ""

    def instruction(self, model: str) -> str:
        """The text that this model is sent beside what it is shown; empty for none."""
        return ""

    def passed_over(self, slots: Mapping[str, Any]) -> frozenset[str]:
        """The steps of its program that a run with these slots never comes to; pages skip them."""
        return frozenset()

    def sent_beside(self, tool: str) -> Sequence[str]:
        """Which of run, code and key a tool's request bears as metadata; none: it is no request."""
        return ()

    def disclosed(self, workspace: Workspace) -> Iterator[tuple[str, bytes, bytes]]:
        """Ref, random bytes and value of each commitment of the log that is no run's."""
        return iter(())

    def files_of(self, run_id: str) -> Sequence[Path]:
        """Files outside of the vault that may repeat a run's values: an erasure deletes them."""
        return ()

    def erased(self, run: Run) -> None:
        """Delete what its rows hold of the run's values, in the commit that hides any of them."""

    def kept(self, run: Run) -> tuple[str, ...]:
        """What an erasure of the run leaves elsewhere, in words."""
        return ()

    # --- what is audited, and taken over after a restore --------------------------------------

    def audit_log(self, workspace: Workspace) -> Iterator[Damage]:
        """What is bad in its tables, compared with what the log seals."""
        return iter(())

    def audit_run(
        self, workspace: Workspace, run: Run, envelopes: Sequence[Stored]
    ) -> Iterator[Damage]:
        """What is bad in its rows of one run."""
        return iter(())

    def audit_journal(self) -> Iterator[Damage]:
        """What the erasure journal names, and is there again."""
        return iter(())

    def counted(self) -> Mapping[str, int]:
        """How many rows of each kind an audit recomputes, by its plural."""
        return {}

    def came_back(self) -> int:
        """How much of what was erased in its tables a backup brought back."""
        return 0

    def erase_again(self) -> tuple[str, ...]:
        """Erase what came back; the places that still hold it, in words."""
        return ()

    def hand_over(self, old: Workspace, new: Workspace, actor: str) -> None:
        """Carry its rows over from a log that a restore closes to the one that goes on."""


_INSTALLED: dict[str, Application] = {}
_NONE = Application()


def install(application: Application) -> None:
    """Let the engine run this application's program beside those that are installed.

    Raises:
        ValueError: another application has a program of that name.
    """
    if _INSTALLED.setdefault(application.name, application) is not application:
        raise ValueError(f"Two applications have the program {application.name!r}: rename one.")


def installed() -> tuple[Application, ...]:
    """The applications, the first installed first: that one's program names a new log."""
    return (*_INSTALLED.values(),)


def main() -> Application:
    """The application that was installed first.

    Raises:
        LookupError: none is.
    """
    if not _INSTALLED:
        raise LookupError("No application is installed: add one to INSTALLED_APPS.")
    return installed()[0]


def amount_of(values: Mapping[str, Any]) -> str:
    """The amount of money in the values of an envelope, as its application writes it."""
    return next(filter(None, (each.amount(values) for each in installed())), "")


def codes() -> frozenset[str]:
    """The codes of rules and reasons."""
    return frozenset[str]().union(*(each.codes for each in installed()))


def paying() -> Mapping[str, Paid]:
    """The tools that pay, and what reads how much."""
    return {tool: paid for each in installed() for tool, paid in each.paying.items()}


def named(program: str) -> Application:
    """The application of the program of this name; where it is not installed, one with nothing."""
    return _INSTALLED.get(program, _NONE)


def is_outside(program: Program, tool: str) -> bool:
    """Whether no process here makes the calls of a tool in runs of this program."""
    return _INSTALLED.get(program.name, _NONE).outside(program, tool)


def label_of(slot: str) -> str:
    """A slot's name as people read it."""
    found = (each.labels.get(slot, "") for each in installed())
    return next(filter(None, found), slot.replace("_", " ").capitalize())


def why_kept(line: str) -> str:
    """Why an erasure keeps this, in a sentence."""
    found = (each.why_kept.get(line, "") for each in installed())
    return next(filter(None, found), "Its application gives no reason.")


def of_program(name: str) -> Application:
    """The application of the program of this name.

    Raises:
        NotSentError: RUN-003, where it is not installed here. Nothing was done; it is tried again
            for a while, and then the program decides.
    """
    found = _INSTALLED.get(name)
    if found is None:
        raise NotSentError("RUN-003", f"No application for the program {name} is installed here.")
    return found
