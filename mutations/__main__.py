"""Run any module in a process whose one guard is gone: ``python -m mutations ID -- MODULE …``."""

import argparse
import runpy
import sys
from pathlib import Path

from mutations.patching import LISTS, MutationError, install, load, named


def main(arguments: list[str]) -> None:
    """Remove the guard, then become the module or the script that is named after ``--``."""
    parser = argparse.ArgumentParser(
        prog="python -m mutations",
        usage="%(prog)s [--lists FOLDER] [ID -- MODULE [ARGUMENT ...]]",
        description="Run a module without one guard; without an ID, list the mutations. "
        "Processes that the module starts have all their guards.",
    )
    parser.add_argument("--lists", type=Path, default=LISTS, help="the folder of the lists")
    parser.add_argument("id", nargs="?", help="the mutation")
    parser.add_argument("command", nargs="*", help="a module or a script, and its arguments")
    given = parser.parse_args(arguments)
    if given.id is None:
        for mutation in load(given.lists):
            print(f"{mutation.id}\t{mutation.file}\t{mutation.code}\t{mutation.guard}")
        return
    if not given.command:
        parser.error("name what to run after --, as in: ID -- pytest -q")
    mutation = named(given.id, given.lists)
    install(mutation)
    print(f"Without the guard {mutation.id} ({mutation.file}).", file=sys.stderr)
    sys.argv = given.command
    if given.command[0].endswith(".py"):
        runpy.run_path(given.command[0], run_name="__main__")
    else:
        runpy.run_module(given.command[0], run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except MutationError as error:
        sys.exit(f"mutations: {error}")
