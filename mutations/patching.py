"""The list of mutations, and a process in which modules are compiled without their guards."""

import re
import sys
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cache
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType
from typing import cast

ROOT = Path(__file__).resolve().parent.parent
LISTS = Path(__file__).resolve().parent

_ID = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")


class MutationError(Exception):
    """The list is wrong, or does not fit the source any more: mend the list."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutation:
    """One guard, and the change of source text that removes it.

    ``find`` occurs exactly once in ``file``. ``tests`` are test files (or single tests of one),
    at least one of which fails without the guard.
    """

    id: str
    file: str
    guard: str
    find: str
    replace: str
    tests: tuple[str, ...]

    @property
    def module(self) -> str:
        """The dotted name under which Python imports ``file``."""
        return self.file.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def load(folder: Path = LISTS) -> tuple[Mutation, ...]:
    """Every mutation of the lists in ``folder``, in the order of the files and their entries.

    Raises:
        MutationError: where an entry is incomplete, names what is not there, or is there twice.
    """
    found: dict[str, Mutation] = {}
    for path in sorted(folder.glob("*.toml")):
        try:
            entries = tomllib.loads(path.read_text(encoding="utf-8"))["mutation"]
        except (tomllib.TOMLDecodeError, KeyError) as error:
            raise MutationError(f"{path.name} is no list of [[mutation]] tables: {error}") from None
        for entry in entries:
            mutation = _read(path.name, entry)
            if mutation.id in found:
                raise MutationError(f"{path.name}: {mutation.id} is listed twice; rename one.")
            found[mutation.id] = mutation
    return tuple(found.values())


def named(mutation_id: str, folder: Path = LISTS) -> Mutation:
    """The mutation of that id."""
    known = _by_id(folder)
    if mutation_id not in known:
        raise MutationError(
            f"No mutation is called {mutation_id!r}; `python -m mutations` lists them."
        )
    return known[mutation_id]


@cache
def _by_id(folder: Path) -> Mapping[str, Mutation]:
    return {each.id: each for each in load(folder)}


def apply(source: str, mutation: Mutation) -> str:
    """The source without the guard, every other line at its old number.

    Line numbers stay, because the runtime tells which line decided.

    Raises:
        MutationError: where ``find`` does not occur exactly once.
    """
    count = source.count(mutation.find)
    if count != 1:
        raise MutationError(
            f"{mutation.id}: its `find` occurs {count} times in {mutation.file}, not once; "
            "write the guard as it stands there now."
        )
    before, _, after = source.partition(mutation.find)
    line, end, rest = after.partition("\n")
    gap = "\n" * (mutation.find.count("\n") - mutation.replace.count("\n"))
    return before + mutation.replace + line + end + gap + rest


def install(*mutations: Mutation) -> None:
    """Compile the mutations' modules without their guards when this process imports them.

    There is no way back: start a process for it. Processes that this one starts are whole
    again, unless they are forks that imported a module before, or the readers of a copy.

    Raises:
        MutationError: where a module was imported before, or a ``find`` is not there once.
    """
    for file, chosen in by_file(mutations).items():
        if chosen[0].module in sys.modules:
            raise MutationError(f"{chosen[0].module} is imported already: start a fresh process.")
        apply_all((ROOT / file).read_text(encoding="utf-8"), chosen)
        sys.meta_path.insert(0, _Finder(chosen))


def installed() -> tuple[Mutation, ...]:
    """The mutations without whose guards this process imports."""
    finders = [each for each in sys.meta_path if isinstance(each, _Finder)]
    return tuple(mutation for each in finders for mutation in each.mutations)


def apply_all(source: str, mutations: Iterable[Mutation]) -> str:
    """The source without the guards of several mutations of one file, in their order."""
    for mutation in mutations:
        source = apply(source, mutation)
    return source


def line_of(mutation: Mutation) -> int:
    """The line at which the guard begins in its file.

    Raises:
        MutationError: where ``find`` does not occur exactly once.
    """
    source = (ROOT / mutation.file).read_text(encoding="utf-8")
    apply(source, mutation)
    whole = source.partition(mutation.find)[0] + mutation.find
    found = mutation.find.lstrip("\n")
    return whole.count("\n") - found.count("\n") + 1


def by_file(mutations: Iterable[Mutation]) -> dict[str, list[Mutation]]:
    """The mutations of each file, in their order."""
    found: dict[str, list[Mutation]] = {}
    for mutation in mutations:
        found.setdefault(mutation.file, []).append(mutation)
    return found


class _Finder(MetaPathFinder):
    """Finds the one module, where it always is, and has it loaded without its guards."""

    def __init__(self, mutations: Sequence[Mutation]) -> None:
        self.mutations = mutations

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        mutation = self.mutations[0]
        if fullname != mutation.module:
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is None or spec.origin is None or Path(spec.origin) != ROOT / mutation.file:
            raise MutationError(f"{fullname} is imported from elsewhere than {ROOT}.")
        spec.loader = _Loader(fullname, spec.origin, self.mutations)
        return spec


class _Loader(SourceFileLoader):
    """Loads a module from its mutated source; byte code is neither read nor written."""

    def __init__(self, fullname: str, path: str, mutations: Sequence[Mutation]) -> None:
        super().__init__(fullname, path)
        self.mutations = mutations

    def get_source(self, fullname: str) -> str:
        return apply_all(Path(self.path).read_text(encoding="utf-8"), self.mutations)

    def get_code(self, fullname: str) -> CodeType:
        return self.source_to_code(self.get_source(fullname), self.path)


def _read(name: str, entry: Mapping[str, object]) -> Mutation:
    known = {field.name for field in fields(Mutation)}
    wrong = sorted(known ^ entry.keys())
    where = f"{name}: {entry.get('id', 'an entry without id')}"
    if wrong:
        raise MutationError(f"{where}: these keys are missing or unknown: {', '.join(wrong)}.")
    tests = entry["tests"]
    texts = {key: value for key, value in entry.items() if key != "tests"}
    if not isinstance(tests, list) or not all(
        isinstance(v, str) for v in [*texts.values(), *tests]
    ):
        raise MutationError(f"{where}: `tests` is a list of strings, the rest are strings.")
    mutation = Mutation(**cast("dict[str, str]", texts), tests=tuple(tests))
    fault = _fault(mutation)
    if fault:
        raise MutationError(f"{where}: {fault}")
    return mutation


def _fault(mutation: Mutation) -> str:
    """What is wrong with an entry, apart from the source it speaks of."""
    files = [mutation.file, *(test.partition("::")[0] for test in mutation.tests)]
    missing = [file for file in files if not (file.endswith(".py") and (ROOT / file).is_file())]
    faults = {
        "an id is lower-case words with hyphens between them.": not _ID.fullmatch(mutation.id),
        "say in a sentence what the guard stops.": not mutation.guard.endswith("."),
        "name the tests that fail without it.": not mutation.tests,
        f"there are no such Python files: {missing}.": bool(missing),
        "`replace` must differ from `find`.": mutation.replace == mutation.find,
        "`replace` may not have more lines than `find`.": (
            mutation.replace.count("\n") > mutation.find.count("\n")
        ),
    }
    return next((text for text, wrong in faults.items() if wrong), "")
