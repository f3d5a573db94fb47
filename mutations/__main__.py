"""Run any module in a process whose guards are gone: ``python -m mutations ID… -- MODULE …``."""

import argparse
import runpy
import sys
from pathlib import Path

from mutations.patching import LISTS, MutationError, install, load, named


def main(arguments: list[str]) -> None:
    """Remove the guards, then become the module or the script that is named after ``--``."""
    parser = argparse.ArgumentParser(
        prog="python -m mutations",
        usage="%(prog)s [--lists FOLDER] [ID ... -- MODULE [ARGUMENT ...]]",
        description="Run a module without some guards; without an ID, list the mutations. "
        "Processes that the module starts have all their guards, but for those in which a copy "
        "reads its documents.",
    )
    parser.add_argument("--lists", type=Path, default=LISTS, help="the folder of the lists")
    parser.add_argument("ids", nargs="*", metavar="ID", help="the mutations")
    own, command = _parted(arguments)
    given = parser.parse_args(own)
    if not given.ids:
        for mutation in load(given.lists):
            print(f"{mutation.id}\t{mutation.file}\t{mutation.guard}")
        return
    if not command:
        parser.error("name what to run after --, as in: ID -- pytest -q")
    mutations = [named(each, given.lists) for each in given.ids]
    install(*mutations)
    for mutation in mutations:
        print(f"Without the guard {mutation.id} ({mutation.file}).", file=sys.stderr)
    sys.argv = command
    if command[0].endswith(".py"):
        runpy.run_path(command[0], run_name="__main__")
    else:
        runpy.run_module(command[0], run_name="__main__", alter_sys=True)


def _parted(arguments: list[str]) -> tuple[list[str], list[str]]:
    """What is ours, and what comes after the first ``--``."""
    if "--" not in arguments:
        return arguments, []
    end = arguments.index("--")
    return arguments[:end], arguments[end + 1 :]


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except MutationError as error:
        sys.exit(f"mutations: {error}")
