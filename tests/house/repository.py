"""The files of the repository, as git lists them, and how problems with them are named."""

import ast
import subprocess
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent


@cache
def files(*suffixes: str) -> list[Path]:
    """The files of the repository: those that git tracks or would."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, check=True)
    paths = [ROOT / name for name in listed.stdout.decode().split("\0") if name]
    return [path for path in paths if path.is_file() and (not suffixes or path.suffix in suffixes)]


def written(*suffixes: str) -> list[Path]:
    """The files that someone here wrote: neither vendored nor generated."""
    return [path for path in files(*suffixes) if not {"vendor", "migrations"} & {*path.parts}]


def name_of(path: Path) -> str:
    """A path as a person reads it."""
    return path.relative_to(ROOT).as_posix()


def named(path: Path, problems: list[str]) -> list[str]:
    """Problems with the file's name before them."""
    return [f"{name_of(path)}: {problem}" for problem in problems]


@cache
def source_of(path: Path) -> str:
    """The text of a source file."""
    return path.read_text(encoding="utf-8")


@cache
def tree_of(source: str) -> ast.Module:
    """The syntax of a source."""
    return ast.parse(source)
